//! Writes rows by index, such as the keys and values of a cache.

use super::dtypes::{ENCODED, FLOATS, INDICES, PLAIN, only};
use super::rules::{Operands, Rules, Signature, TensorSpec, total_bytes, touched_bytes};
use super::{Cost, Op, OpClass};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `destination[ids[i], ..] = x[i, ..]`; the other rows stay as they are.
///
/// - `x`: any plain dtype, `[n, ..]`.
/// - `ids`: I32 `[n]`. An index outside the destination's rows skips its row of `x`. The valid
///   indices must differ; which of two equal ones wins is not specified.
/// - destination: of the dtype of `x`, whose bits are kept, or, if `x` is F32, F16 or BF16, any of
///   those, an 8-bit float or Q8_0, encoded as by [`Copy`](super::Copy); `[rows, ..]` with the
///   inner dims of `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetRows;

impl Rules for SetRows {
    fn signature(&self) -> Signature {
        Signature {
            writes_partially: true,
            ..Signature::new("set_rows", &["x", "ids"]).classes(&[OpClass::SetRows])
        }
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let dtype = operands.typed(0, PLAIN)?.dtype;
        let x = operands.get(0).dims();
        let ids = operands.typed(1, INDICES)?.dims();
        let destination = operands.destination()?;
        let allowed = if FLOATS.contains(&dtype) {
            ENCODED
        } else {
            only(dtype)
        };
        if !allowed.contains(&destination.dtype) {
            return Err(GraphError::OperandDType {
                op: self.signature().name,
                operand: "destination",
                found: destination.dtype,
                allowed,
            });
        }
        operands.rank(0, x.rank() >= 2, "[n, ..] with rows of rank 1 or more")?;
        operands.rank(1, ids.rank() == 1, "[n]")?;
        operands.dims(1, 0, ids[0] == x[0], "one index for each row")?;
        let rows = destination.dims();
        if rows.rank() != x.rank() || rows[1..] != x[1..] {
            return Err(GraphError::OperandDims {
                op: self.signature().name,
                operand: "x",
                found: *x,
                other: "destination",
                other_dims: *rows,
                rule: "all dims but the first must agree",
            });
        }
        Ok(TensorSpec {
            dtype: destination.dtype,
            dims: *rows,
        })
    }

    fn cost(&self, inputs: &[&Value], output: &Value) -> Cost {
        let rows = inputs.get(1).map_or(0, |ids| ids.dims().from_end(0)) as u64;
        let all_rows = output.dims().first().map_or(1, |&rows| rows as u64).max(1);
        Cost {
            flops: 0,
            bytes_read: total_bytes(inputs),
            bytes_written: (touched_bytes(output) / all_rows).saturating_mul(rows),
        }
    }
}

impl Graph {
    /// Appends [`SetRows`] into `destination`, and returns `destination`.
    pub fn set_rows(
        &mut self,
        destination: ValueId,
        x: ValueId,
        ids: ValueId,
    ) -> Result<ValueId, GraphError> {
        self.apply_into(Op::from(SetRows), &[x, ids], destination)
    }
}
