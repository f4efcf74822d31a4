//! Rows as symmetric 8-bit codes.
//!
//! No model calls it yet; it is for activations of `matmul_i8`.

use super::Op;
use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use crate::DType;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[i.., j] = round(x[i.., j] / scales[i..])`, the quotient in f32, halves to even, clamped to
/// -127..127; 0 where the quotient is NaN. Code times scale stands for the element.
///
/// - `x`: F32, F16 or BF16, `[.., n]`.
/// - `scales`: F32, the dims of `x` but the last, as [`RowScales`](super::RowScales) gives them.
/// - result: I8, dims of `x`.
///
/// Codes and scales are two values because their dtypes and sizes differ;
/// [`Graph::quantize_rows`] makes both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantizeRows;

impl Rules for QuantizeRows {
    fn signature(&self) -> Signature {
        Signature::new("quantize_rows", &["x", "scales"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?.dims();
        let scales = operands.typed(1, &[DType::F32])?.dims();
        operands.rank(0, x.rank() >= 1, "[.., n]")?;
        let outer = x.split_last().map(|(_, outer)| outer);
        let rule = "it must have the dims of x but the last";
        operands.dims(1, 0, outer == Some(&scales[..]), rule)?;
        Ok(TensorSpec {
            dtype: DType::I8,
            dims: *x,
        })
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        2 * count(output)
    }
}

impl Graph {
    /// Appends [`RowScales`](super::RowScales) and [`QuantizeRows`] with them: the codes and the
    /// scales.
    pub fn quantize_rows(&mut self, x: ValueId) -> Result<(ValueId, ValueId), GraphError> {
        let scales = self.row_scales(x)?;
        let codes = self.apply(Op::from(QuantizeRows), &[x, scales])?;
        Ok((codes, scales))
    }
}
