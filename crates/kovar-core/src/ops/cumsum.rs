//! Prefix sums along the last dimension.

use super::Op;
use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[.., i] = x[.., 0] + .. + x[.., i]`, computed in f32 at least.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cumsum;

impl Rules for Cumsum {
    fn signature(&self) -> Signature {
        Signature::new("cumsum", &["x"]).in_place(&[0])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.rows()?;
        Ok(TensorSpec::like(x))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output)
    }
}

impl Graph {
    /// Appends [`Cumsum`].
    pub fn cumsum(&mut self, x: ValueId) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Cumsum), &[x])
    }
}
