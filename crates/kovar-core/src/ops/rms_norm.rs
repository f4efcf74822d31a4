//! Root mean square normalisation.

use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = x / sqrt(mean(x^2) + eps) * weight` over the last dimension (Zhang and Sennrich 2019).
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - `weight` (optional): F32, F16 or BF16, `[n]`.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNorm {
    /// Added to the mean of squares; not negative.
    pub eps: f32,
}

impl Rules for RmsNorm {
    fn signature(&self) -> Signature {
        Signature::new("rms_norm", &["x", "weight"])
            .arity(1..=2)
            .in_place(&[0])
            .classes(&[OpClass::Norm])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.rows()?;
        let n = x.dims().from_end(0);
        operands.factors(n, "[n]", "the last dims must agree")?;
        operands.eps(self.eps)?;
        Ok(TensorSpec::like(x))
    }

    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(2 + inputs.len() as u64)
    }
}

impl Graph {
    /// Appends [`RmsNorm`] with a weight.
    pub fn rms_norm(
        &mut self,
        x: ValueId,
        weight: ValueId,
        eps: f32,
    ) -> Result<ValueId, GraphError> {
        self.apply(Op::from(RmsNorm { eps }), &[x, weight])
    }
}
