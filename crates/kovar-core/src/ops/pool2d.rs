//! Pooling over two dimensions.
//!
//! No model calls it yet; it is for diffusers' encoders that halve images by pooling.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use super::{Op, window};
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// The reduction over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The greatest element inside the image; NaN if one is NaN.
    Max,
    /// The mean.
    Average {
        /// Whether the zeros of the padding are counted: the sum is divided by `kh kw`, else by
        /// the number of elements inside the image.
        count_include_pad: bool,
    },
}

/// `y[b, c, i, j]` is the greatest or the mean of `x[b, c, i s + u - p, j s + v - p]` over `u` and
/// `v` of the kernel, where `s` and `p` are stride and padding of the axis. As PyTorch's
/// `max_pool2d` and `avg_pool2d` with `ceil_mode=False`.
///
/// - `x`: F32, F16 or BF16, `[batch, channels, h, w]`, not empty along `h` and `w`.
/// - result: dtype of `x`, `[batch, channels, oh, ow]` with `oh = (h + 2 p - kh) / s + 1`, rounded
///   down, and `ow` likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool2d {
    /// The reduction.
    pub kind: PoolKind,
    /// Sizes of the window, `[vertical, horizontal]`.
    pub kernel: [usize; 2],
    /// Steps of the window, `[vertical, horizontal]`.
    pub stride: [usize; 2],
    /// Rows or columns around the image, on each side, `[vertical, horizontal]`; at most half of
    /// the kernel.
    pub padding: [usize; 2],
}

impl Rules for Pool2d {
    fn signature(&self) -> Signature {
        Signature::new("pool2d", &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        let dims = x.dims();
        operands.rank(0, dims.rank() == 4, "[batch, channels, h, w]")?;
        window::positive(operands, "kernel", self.kernel)?;
        window::positive(operands, "stride", self.stride)?;
        let mut sizes = [dims[0], dims[1], 0, 0];
        for axis in 0..2 {
            let (size, kernel) = (dims[2 + axis], self.kernel[axis]);
            let padding = self.padding[axis];
            let rule = "at most half of the kernel";
            operands.attribute(padding <= kernel / 2, "padding", padding as f64, rule)?;
            let positions = window::positions(size, kernel, self.stride[axis], padding, 1);
            let positions = positions.filter(|_| size >= 1);
            let expected = "[batch, channels, h, w], not empty and padded as large as the kernel";
            operands.rank(0, positions.is_some(), expected)?;
            sizes[2 + axis] = positions.unwrap_or(0);
        }
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: Dims::from_fn(4, |i| sizes[i]),
        })
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        let taps = self.kernel[0].saturating_mul(self.kernel[1]) as u64;
        taps.saturating_mul(count(output))
    }
}

impl Graph {
    /// Appends [`Pool2d`].
    pub fn pool2d(&mut self, attributes: Pool2d, x: ValueId) -> Result<ValueId, GraphError> {
        self.apply(Op::from(attributes), &[x])
    }
}
