//! Softmax over the last dimension.
//!
//! No model calls it yet; it is for the C API; models use `attention`.

use super::Op;
use super::dtypes::MASKS;
use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = softmax(scale * x + slope(head) * mask)` over the last dimension, computed in f32.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - `mask` (optional): F32 or F16, dims that broadcast to those of `x`. Minus infinity excludes
///   an element; a row that is excluded as a whole gives zeros.
/// - with `max_bias`: there is a mask, of distances `-(i - j)` (and minus infinity), and `x` is
///   `[.., heads, queries, n]`.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// The factor on `x`; finite.
    pub scale: f32,
    /// ALiBi (Press et al. 2022): the slopes of `n` heads, `n` a power of two, are the geometric
    /// sequence from `2^(-max_bias / n)` down to `2^-max_bias`. For another number of heads, with
    /// `m` the power of two below it, the first `m` heads have the slopes of `m` heads, and the
    /// rest every other slope of `2 m` heads, from the first on. 8 in the paper; between 0 and 64.
    /// At 0 every slope is 1.
    pub max_bias: f32,
}

impl Rules for Softmax {
    fn signature(&self) -> Signature {
        Signature::new("softmax", &["x", "mask"])
            .arity(1..=2)
            .in_place(&[0])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.rows()?;
        if operands.optional(1).is_some() {
            operands.typed(1, MASKS)?;
            operands.broadcasts(1, 0)?;
        }
        if self.max_bias != 0.0 {
            let valid = self.max_bias > 0.0 && self.max_bias <= 64.0;
            operands.attribute(valid, "max_bias", self.max_bias.into(), "between 0 and 64")?;
            let masked = operands.optional(1).is_some();
            let rule = "0 if there is no mask";
            operands.attribute(masked, "max_bias", self.max_bias.into(), rule)?;
            operands.rank(0, x.dims().rank() >= 3, "[.., heads, queries, n]")?;
        }
        operands.finite("scale", self.scale)?;
        Ok(TensorSpec::like(x))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(6)
    }
}

impl Softmax {
    /// Without ALiBi.
    pub fn new(scale: f32) -> Self {
        Self {
            scale,
            max_bias: 0.0,
        }
    }

    /// The factor of a head on the mask.
    pub fn slope(&self, head: usize, heads: usize) -> f64 {
        let power = heads
            .checked_ilog2()
            .map_or(1.0, |log| f64::from(log).exp2());
        let step = f64::from(self.max_bias) / power;
        let head = head as f64;
        if self.max_bias == 0.0 {
            1.0
        } else if head < power {
            (-step * (head + 1.0)).exp2()
        } else {
            (-step / 2.0 * (2.0 * (head - power) + 1.0)).exp2()
        }
    }
}

impl Graph {
    /// Appends [`Softmax`], with a mask or without.
    pub fn softmax(
        &mut self,
        x: ValueId,
        mask: Option<ValueId>,
        scale: f32,
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = std::iter::once(x).chain(mask).collect();
        self.apply(Op::from(Softmax::new(scale)), &inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slopes(max_bias: f32, heads: usize) -> Vec<f64> {
        let op = Softmax {
            scale: 1.0,
            max_bias,
        };
        (0..heads).map(|head| op.slope(head, heads)).collect()
    }

    #[test]
    fn slopes_are_those_of_the_paper() {
        let halves: Vec<f64> = (1..=8).map(|i| f64::from(-i).exp2()).collect();
        assert_eq!(slopes(8.0, 8), halves);
        let roots = slopes(8.0, 16);
        assert_eq!(
            (roots[0], roots[1], roots[15]),
            (0.5f64.sqrt(), 0.5, halves[7])
        );
        // Twelve heads: those of eight, then every other one of sixteen.
        let twelve = slopes(8.0, 12);
        assert_eq!(twelve[..8], halves);
        assert_eq!(twelve[8..], [roots[0], roots[2], roots[4], roots[6]]);
        assert_eq!(slopes(0.0, 3), [1.0; 3]);
    }
}
