//! Rotary position embedding by matrices, with attention's permutation.
//!
//! No model calls it yet; it is for the three-axis tables of diffusion transformers, and the C API.

use super::rope::Pairing;
use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use super::{Op, rope};
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};
use crate::layout::Layout;

/// Multiplies each pair of a head by its 2 x 2 matrix, and puts heads before tokens:
/// `y[b, h, t, slot_r] = x[b, t, h, slot_0] table[t, i, r, 0] +
/// x[b, t, h, slot_1] table[t, i, r, 1]` for `r` in 0 and 1, where `slot_0` and `slot_1` are the
/// slots of pair `i`.
///
/// - `x`: F32, F16 or BF16, `[batch, tokens, heads, d]`, `d` even.
/// - `table`: F32 `[tokens, d / 2, 2, 2]`, for a rotation `cos, -sin, sin, cos` of each angle. All
///   heads and batches share it.
/// - result: dtype of `x`, `[batch, heads, tokens, d]`.
///
/// In place on `x` if the destination is the window of `x` with tokens and heads swapped: every
/// element then stays in its place. No other window is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RopeApply {
    /// Which elements are a pair: `(2i, 2i + 1)` or `(i, i + d / 2)`.
    pub pairing: Pairing,
}

/// From `[batch, tokens, heads, d]` to `[batch, heads, tokens, d]`.
const ORDER: [usize; 4] = [0, 2, 1, 3];

impl Rules for RopeApply {
    fn signature(&self) -> Signature {
        Signature::new("rope_apply", &["x", "table"]).in_place(&[0])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        let dims = x.dims();
        let table = operands.typed(1, rope::TABLES)?.dims();
        operands.rank(0, dims.rank() == 4, "[batch, tokens, heads, d]")?;
        operands.rank(0, dims[3].is_multiple_of(2), "an even last dim")?;
        let matrices = table.rank() == 4 && table[2..] == [2, 2];
        operands.rank(1, matrices, "[tokens, d / 2, 2, 2]")?;
        operands.dims(
            1,
            0,
            table[0] == dims[1],
            "one row of the table for each token",
        )?;
        operands.dims(1, 0, table[1] == dims[3] / 2, "one matrix for each pair")?;
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: Dims::from_fn(4, |i| dims[ORDER[i]]),
        })
    }

    fn in_place_window(&self, i: usize, operand: &Layout) -> Option<Layout> {
        operand.permute(&ORDER).filter(|_| i == 0)
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        count(output).saturating_mul(3)
    }
}

impl Graph {
    /// Appends [`RopeApply`] with a fresh, contiguous result.
    pub fn rope_apply(
        &mut self,
        x: ValueId,
        table: ValueId,
        pairing: Pairing,
    ) -> Result<ValueId, GraphError> {
        self.apply(Op::from(RopeApply { pairing }), &[x, table])
    }

    /// Appends [`RopeApply`] over `x` in place, and returns the window of `x` with tokens and
    /// heads swapped.
    pub fn rope_apply_in_place(
        &mut self,
        x: ValueId,
        table: ValueId,
        pairing: Pairing,
    ) -> Result<ValueId, GraphError> {
        let swapped = self.permute(x, &ORDER)?;
        self.apply_into(Op::from(RopeApply { pairing }), &[x, table], swapped)
    }
}
