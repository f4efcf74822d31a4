//! Layer normalisation.

use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias` over the last dimension (Ba et al.
/// 2016), where `var(x) = mean((x - mean(x))^2)`; computed in f32, sums of long rows in f64.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - `weight` (optional): F32, F16 or BF16, `[n]`.
/// - `bias` (optional, with a weight only): F32, F16 or BF16, `[n]`.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// Added to the variance; not negative.
    pub eps: f32,
}

impl Rules for LayerNorm {
    fn signature(&self) -> Signature {
        Signature::new("layer_norm", &["x", "weight", "bias"])
            .arity(1..=3)
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
        count(output).saturating_mul(5 + inputs.len() as u64)
    }
}

impl Graph {
    /// Appends [`LayerNorm`] with a weight and perhaps a bias.
    pub fn layer_norm(
        &mut self,
        x: ValueId,
        weight: ValueId,
        bias: Option<ValueId>,
        eps: f32,
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = [x, weight].into_iter().chain(bias).collect();
        self.apply(Op::from(LayerNorm { eps }), &inputs)
    }
}
