//! Softmax over the last dimension.

use super::Op;
use super::rules::{FLOATS, Operands, Rules, TensorSpec, count};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = softmax(scale * x + mask)` over the last dimension, computed in f32.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - `mask` (optional): F32 or F16, dims that broadcast to those of `x`. Minus infinity excludes
///   an element; a row that is excluded as a whole gives zeros.
/// - result: dtype and dims of `x`. In place on `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// The factor on `x`; finite.
    pub scale: f32,
}

impl Rules for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn operands(&self) -> &'static [&'static str] {
        &["x", "mask"]
    }

    fn arity(&self) -> (std::ops::RangeInclusive<usize>, &'static str) {
        (1..=2, "1 to 2")
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        operands.rank(0, x.dims().rank() >= 1, "[.., n]")?;
        if operands.optional(1).is_some() {
            operands.typed(1, super::attention::MASKS)?;
            operands.broadcasts(1, 0)?;
        }
        operands.attribute(self.scale.is_finite(), "scale", self.scale.into(), "finite")?;
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: *x.dims(),
        })
    }

    fn in_place(&self, i: usize) -> bool {
        i == 0
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        6 * count(output)
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
        self.apply(Op::from(Softmax { scale }), &inputs)
    }
}
