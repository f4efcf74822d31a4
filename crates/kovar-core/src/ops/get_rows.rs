//! Rows of a table by index.

use super::dtypes::{INDICES, WEIGHTS};
use super::rules::{Operands, Rules, Signature, TensorSpec, count, touched_bytes};
use super::{Cost, Op};
use crate::DType;
use crate::dims::{Dims, MAX_RANK};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[i.., :] = table[ids[i..], :]`.
///
/// - `table`: any dtype, `[rows, n]`.
/// - `ids`: I32, any dims of rank 5 at most. An index outside `0..rows` gives a row of zeros.
/// - result: F32 for a table of [`WEIGHTS`], which is decoded, else the dtype of the table, whose
///   bits are kept; the dims of `ids` and then `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetRows;

impl Rules for GetRows {
    fn signature(&self) -> Signature {
        Signature::new("get_rows", &["table", "ids"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let dtype = operands.typed(0, &DType::ALL)?.dtype;
        let table = operands.get(0).dims();
        let ids = operands.typed(1, INDICES)?.dims();
        operands.rank(0, table.rank() == 2, "[rows, n]")?;
        operands.rank(1, ids.rank() < MAX_RANK, "at most 5 dims")?;
        let row = table.from_end(0);
        Ok(TensorSpec {
            dtype: if WEIGHTS.contains(&dtype) {
                DType::F32
            } else {
                dtype
            },
            dims: Dims::from_fn(ids.rank() + 1, |i| ids.get(i).copied().unwrap_or(row)),
        })
    }

    fn cost(&self, inputs: &[&Value], output: &Value) -> Cost {
        let rows: u64 = inputs.get(1).map_or(0, |ids| count(ids));
        let row_bytes = inputs.first().map_or(0, |table| {
            touched_bytes(table) / (table.dims().from_end(1) as u64).max(1)
        });
        Cost {
            flops: 0,
            bytes_read: row_bytes.saturating_add(4).saturating_mul(rows),
            bytes_written: touched_bytes(output),
        }
    }
}

impl Graph {
    /// Appends [`GetRows`].
    pub fn get_rows(&mut self, table: ValueId, ids: ValueId) -> Result<ValueId, GraphError> {
        self.apply(Op::from(GetRows), &[table, ids])
    }
}
