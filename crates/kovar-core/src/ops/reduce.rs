//! Sums and means over the last dimension.

use super::Op;
use super::rules::{Operands, Rules, Signature, TensorSpec, count, kinds};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

kinds! {
    /// Which reduction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    ReduceKind {
        /// The sum; 0 of no elements.
        Sum => "sum",
        /// The sum divided by the number of elements; NaN of no elements.
        Mean => "mean",
    }
}

/// `y[.., 0] = sum(x[.., :])` or the mean, computed in f32 at least.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - result: dtype of `x`, `[.., 1]`, which broadcasts to `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// Which reduction.
    pub kind: ReduceKind,
}

impl Rules for Reduce {
    fn signature(&self) -> Signature {
        Signature::new(self.kind.name(), &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.rows()?;
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: x.dims().with_last(1),
        })
    }

    fn flops(&self, inputs: &[&Value], _output: &Value) -> u64 {
        inputs.iter().map(|x| count(x)).sum()
    }
}

impl Graph {
    /// Appends the sum over the last dimension.
    pub fn sum(&mut self, x: ValueId) -> Result<ValueId, GraphError> {
        let kind = ReduceKind::Sum;
        self.apply(Op::from(Reduce { kind }), &[x])
    }

    /// Appends the mean over the last dimension.
    pub fn mean(&mut self, x: ValueId) -> Result<ValueId, GraphError> {
        let kind = ReduceKind::Mean;
        self.apply(Op::from(Reduce { kind }), &[x])
    }
}
