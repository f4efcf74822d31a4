//! Multiplication by a constant.

use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = scale * x`, computed in f32.
///
/// - `x`: F32, F16 or BF16, any dims.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The factor; finite.
    pub scale: f32,
}

impl Rules for Scale {
    fn signature(&self) -> Signature {
        Signature::new("scale", &["x"])
            .in_place(&[0])
            .classes(&[OpClass::Elementwise])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        operands.finite("scale", self.scale)?;
        Ok(TensorSpec::like(x))
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output)
    }
}

impl Graph {
    /// Appends [`Scale`].
    pub fn scale(&mut self, x: ValueId, scale: f32) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Scale { scale }), &[x])
    }
}
