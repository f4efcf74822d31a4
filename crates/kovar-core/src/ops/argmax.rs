//! The index of the greatest element.
//!
//! No model calls it yet; it is for greedy decoding that reads no logits back.

use super::Op;
use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[..]` is the index of the greatest of `x[.., :]`, the least index of equal ones. NaN counts
/// as greater than every number, all NaN as equal, and 0 as equal to -0.
///
/// - `x`: F32, F16 or BF16, `[.., n]`, `n` at least 1 and within I32.
/// - result: I32, the dims of `x` without the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argmax;

impl Rules for Argmax {
    fn signature(&self) -> Signature {
        Signature::new("argmax", &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let dims = operands.typed(0, FLOATS)?.dims();
        let n = dims.from_end(0);
        let indexed = dims.rank() >= 1 && n >= 1 && i32::try_from(n).is_ok();
        operands.rank(0, indexed, "[.., n] with n from 1 to the largest I32")?;
        Ok(TensorSpec {
            dtype: DType::I32,
            dims: Dims::from_fn(dims.rank() - 1, |at| dims[at]),
        })
    }

    fn flops(&self, inputs: &[&Value], _output: &Value) -> u64 {
        inputs.iter().map(|x| count(x)).sum()
    }
}

impl Graph {
    /// Appends [`Argmax`].
    pub fn argmax(&mut self, x: ValueId) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Argmax), &[x])
    }
}
