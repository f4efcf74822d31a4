//! Images of another size.
//!
//! No model calls it yet; it is for UNets and VAEs.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use super::{Op, window};
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// How the pixels of the resized image are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpscaleMode {
    /// Pixel `i` of `n` is pixel `i h / n`, rounded down, of `h`; computed exactly.
    Nearest,
    /// Along each axis, pixel `i` of `n` is at `t` between the pixels of `h`, and linear between
    /// its two neighbours.
    Bilinear {
        /// If true, the centres of the outermost pixels stay: `t = i (h - 1) / (n - 1)`, or 0 for
        /// `n = 1`. Else the edges of the image stay: `t = max((i + 1/2) h / n - 1/2, 0)`.
        /// Neighbours beyond the last pixel are the last pixel.
        align_corners: bool,
    },
}

/// An image of another size, larger or smaller, as PyTorch's `interpolate` with `size`.
///
/// - `x`: F32, F16 or BF16, `[batch, channels, h, w]`, not empty along `h` and `w`.
/// - result: dtype of `x`, `[batch, channels, size[0], size[1]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upscale {
    /// Rows and columns of the result.
    pub size: [usize; 2],
    /// How pixels are computed.
    pub mode: UpscaleMode,
}

impl Rules for Upscale {
    fn signature(&self) -> Signature {
        Signature::new("upscale", &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        let dims = x.dims();
        let image = dims.rank() == 4 && dims[2] >= 1 && dims[3] >= 1;
        operands.rank(0, image, "[batch, channels, h, w], not empty along h and w")?;
        window::positive(operands, "size", self.size)?;
        let sizes = [dims[0], dims[1], self.size[0], self.size[1]];
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: Dims::from_fn(4, |i| sizes[i]),
        })
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        match self.mode {
            UpscaleMode::Nearest => 0,
            UpscaleMode::Bilinear { .. } => 9 * count(output),
        }
    }
}

impl Graph {
    /// Appends [`Upscale`].
    pub fn upscale(&mut self, attributes: Upscale, x: ValueId) -> Result<ValueId, GraphError> {
        self.apply(Op::from(attributes), &[x])
    }

    /// Appends [`Upscale`] to the nearest pixels of an image `factor` times as large.
    pub fn upscale_by(&mut self, x: ValueId, factor: usize) -> Result<ValueId, GraphError> {
        let dims = *self.value(x)?.dims();
        let size = [1, 0].map(|i| dims.from_end(i).saturating_mul(factor));
        let mode = UpscaleMode::Nearest;
        self.upscale(Upscale { size, mode }, x)
    }
}
