//! Group normalisation.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c]`, where mean and variance are those of
/// the `channels / groups` consecutive channels, in one batch, to which channel `c` belongs (Wu
/// and He 2018); computed in f32, sums in f64.
///
/// - `x`: F32, F16 or BF16, `[batch, channels, ..]`.
/// - `weight` (optional): F32, F16 or BF16, `[channels]`.
/// - `bias` (optional, with a weight only): F32, F16 or BF16, `[channels]`.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNorm {
    /// A divisor of the number of channels, 1 or more.
    pub groups: usize,
    /// Added to the variance; not negative.
    pub eps: f32,
}

impl Rules for GroupNorm {
    fn signature(&self) -> Signature {
        Signature::new("group_norm", &["x", "weight", "bias"])
            .arity(1..=3)
            .in_place(&[0])
            .classes(&[OpClass::Norm])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        operands.rank(0, x.dims().rank() >= 2, "[batch, channels, ..]")?;
        let channels = x.dims()[1];
        let divides = self.groups > 0 && channels.is_multiple_of(self.groups);
        let rule = "a divisor of the number of channels";
        operands.attribute(divides, "groups", self.groups as f64, rule)?;
        operands.factors(channels, "[channels]", "one element for each channel")?;
        operands.eps(self.eps)?;
        Ok(TensorSpec::like(x))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(6)
    }
}

impl Graph {
    /// Appends [`GroupNorm`] with a weight and a bias.
    pub fn group_norm(
        &mut self,
        x: ValueId,
        weight: ValueId,
        bias: ValueId,
        groups: usize,
        eps: f32,
    ) -> Result<ValueId, GraphError> {
        self.apply(Op::from(GroupNorm { groups, eps }), &[x, weight, bias])
    }
}
