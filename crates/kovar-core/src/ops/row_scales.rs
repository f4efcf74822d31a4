//! Scales of rows that are to be quantised.
//!
//! No model calls it yet; it is for activations of `matmul_i8`.

use super::Op;
use super::rules::{Operands, Rules, Signature, TensorSpec};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[i..] = max_j |x[i.., j]| / 127`: the scales with which
/// [`QuantizeRows`](super::QuantizeRows) makes symmetric 8-bit codes of the rows of `x`. NaN for a
/// row that holds one, 0 for an empty one.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - result: F32, the dims of `x` but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowScales;

impl Rules for RowScales {
    fn signature(&self) -> Signature {
        Signature::new("row_scales", &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.rows()?.dims();
        Ok(TensorSpec {
            dtype: DType::F32,
            dims: Dims::from_fn(x.rank().saturating_sub(1), |i| x[i]),
        })
    }

    fn flops(&self, inputs: &[&Value], _output: &Value) -> u64 {
        inputs.first().map_or(0, |x| super::rules::count(x))
    }
}

impl Graph {
    /// Appends [`RowScales`].
    pub fn row_scales(&mut self, x: ValueId) -> Result<ValueId, GraphError> {
        self.apply(Op::from(RowScales), &[x])
    }
}
