//! Euclidean normalisation.

use super::Op;
use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = x / max(sqrt(sum(x^2)), eps)` over the last dimension, computed in f32: rows of length 1,
/// as `normalize` of PyTorch.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct L2Norm {
    /// The least divisor, usually 1e-12; positive.
    pub eps: f32,
}

impl Rules for L2Norm {
    fn signature(&self) -> Signature {
        Signature::new("l2_norm", &["x"]).in_place(&[0])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.rows()?;
        let valid = self.eps.is_finite() && self.eps > 0.0;
        operands.attribute(valid, "eps", self.eps.into(), "finite and positive")?;
        Ok(TensorSpec::like(x))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(3)
    }
}

impl Graph {
    /// Appends [`L2Norm`].
    pub fn l2_norm(&mut self, x: ValueId, eps: f32) -> Result<ValueId, GraphError> {
        self.apply(Op::from(L2Norm { eps }), &[x])
    }
}
