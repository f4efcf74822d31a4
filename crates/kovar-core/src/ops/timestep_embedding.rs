//! Sinusoidal embeddings of diffusion time steps.
//!
//! No model calls it yet; it is for UNets and diffusion transformers.

use super::Op;
use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use crate::DType;
use crate::dims::{Dims, MAX_RANK};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// With `h = dim / 2`, `w[i] = max_period^(-i / (h - downscale_freq_shift))` and the angles
/// `a[i] = scale * t * w[i]`:
///
/// `y[.., i] = sin(a[i])`, `y[.., h + i] = cos(a[i])` for `i < h`, the other way round with
/// `flip_sin_to_cos`, and 0 in the last column of an odd `dim` (Ho et al. 2020; diffusers'
/// `get_timestep_embedding`).
///
/// Angles reach thousands of radians, where an f32 angle is off by 1e-4 and more. This definition
/// is exact: frequencies, angles and their reduction to a period must be precise enough for an f32
/// result, and the CPU computes them in f64. Reference implementations in f32
/// differ from it by the error of their angles.
///
/// - `t`: F32, F16, BF16 or I32, any dims of rank 5 at most.
/// - result: F32, the dims of `t` and then `dim`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimestepEmbedding {
    /// Elements of an embedding, 2 at least.
    pub dim: usize,
    /// Whether the cosines come first.
    pub flip_sin_to_cos: bool,
    /// Taken from `dim / 2` in the exponent, and less than it: 1 in DDPM, 0 in Stable Diffusion.
    pub downscale_freq_shift: f32,
    /// The factor on the time steps; finite.
    pub scale: f32,
    /// The longest period divided by 2 pi (with no shift, not quite reached); greater than 0.
    pub max_period: f32,
}

impl Default for TimestepEmbedding {
    /// The defaults of diffusers, with 256 elements.
    fn default() -> Self {
        Self {
            dim: 256,
            flip_sin_to_cos: false,
            downscale_freq_shift: 1.0,
            scale: 1.0,
            max_period: 10_000.0,
        }
    }
}

/// Time steps.
const TIMES: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::I32];

impl Rules for TimestepEmbedding {
    fn signature(&self) -> Signature {
        Signature::new("timestep_embedding", &["t"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let t = operands.typed(0, TIMES)?.dims();
        operands.rank(0, t.rank() < MAX_RANK, "at most 5 dims")?;
        operands.attribute(self.dim >= 2, "dim", self.dim as f64, "at least 2")?;
        let shift = f64::from(self.downscale_freq_shift);
        operands.attribute(
            shift.is_finite() && shift < (self.dim / 2) as f64,
            "downscale_freq_shift",
            shift,
            "finite and less than half of dim",
        )?;
        operands.finite("scale", self.scale)?;
        operands.attribute(
            self.max_period.is_finite() && self.max_period > 0.0,
            "max_period",
            self.max_period.into(),
            "finite and greater than 0",
        )?;
        Ok(TensorSpec {
            dtype: DType::F32,
            dims: Dims::from_fn(t.rank() + 1, |i| t.get(i).copied().unwrap_or(self.dim)),
        })
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(8)
    }
}

impl Graph {
    /// Appends [`TimestepEmbedding`].
    pub fn timestep_embedding(
        &mut self,
        t: ValueId,
        attributes: TimestepEmbedding,
    ) -> Result<ValueId, GraphError> {
        self.apply(Op::from(attributes), &[t])
    }
}
