//! Padding with a constant.

use super::Op;
use super::rules::{Operands, PLAIN, Rules, TensorSpec, per_dim};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y` holds `x` and a constant around it.
///
/// - `x`: any plain dtype, any dims.
/// - result: dtype of `x`; along each dimension `before + size + after` elements. The bits of the
///   elements of `x` are kept; the constant is rounded to nearest, ties to even.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pad {
    /// Elements before `x` along each dimension, outermost first; as many as `x` has dims.
    pub before: Dims,
    /// Elements behind `x` along each dimension.
    pub after: Dims,
    /// The constant; an integer for I32.
    pub value: f32,
}

const PER_DIM: &str = "as many dims as there are sizes of padding before and behind";

impl Rules for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn operands(&self) -> &'static [&'static str] {
        &["x"]
    }

    fn arity(&self) -> (std::ops::RangeInclusive<usize>, &'static str) {
        (1..=1, "1")
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, PLAIN)?;
        let (dims, before, after) = (x.dims(), &self.before, &self.after);
        let rank = dims.rank();
        let fits = before.rank() == rank && after.rank() == rank;
        operands.rank(0, fits, PER_DIM)?;
        if x.dtype == DType::I32 {
            let whole = (self.value as i32) as f32 == self.value && self.value < 2f32.powi(31);
            operands.attribute(whole, "value", self.value.into(), "an integer of 32 bits")?;
        }
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: Dims::from_fn(rank, |at| {
                dims[at]
                    .saturating_add(before[at])
                    .saturating_add(after[at])
            }),
        })
    }

    fn flops(&self, _inputs: &[&Value], _output: &Value) -> u64 {
        0
    }
}

impl Graph {
    /// Appends [`Pad`], with a size before and a size behind for each dimension of `x`.
    pub fn pad(
        &mut self,
        x: ValueId,
        before: &[usize],
        after: &[usize],
        value: f32,
    ) -> Result<ValueId, GraphError> {
        let before = per_dim(self, "pad", x, before, PER_DIM)?;
        let after = per_dim(self, "pad", x, after, PER_DIM)?;
        let op = Op::from(Pad {
            before,
            after,
            value,
        });
        self.apply(op, &[x])
    }
}
