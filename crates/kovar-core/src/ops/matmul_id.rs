//! Products with the weights of chosen experts.
//!
//! No model calls it yet; it is for mixtures of experts.

use super::dtypes::{FLOATS, INDICES, WEIGHTS};
use super::rules::{Operands, Rules, Signature, TensorSpec, count, product_flops, touched_bytes};
use super::{Cost, Op, OpClass, Precision};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[t, s, n] = sum_k x[t, s', k] * w[ids[t, s], n, k]`, the product of a mixture of experts:
/// each token is multiplied with the experts that its ids name.
///
/// - `w`: F32, F16, BF16, an 8-bit float or any quantised dtype, `[experts, n, k]`.
/// - `x`: F32, F16 or BF16, `[tokens, used, k]` with `s' = s`, or `[tokens, 1, k]` with `s' = 0`.
/// - `ids`: I32, `[tokens, used]`. An id outside `0..experts` gives a row of zeros.
/// - result: F32, `[tokens, used, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MatmulId {
    /// How exactly.
    pub precision: Precision,
}

impl Rules for MatmulId {
    fn signature(&self) -> Signature {
        Signature::new("matmul_id", &["w", "x", "ids"]).classes(&[OpClass::Product])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let w = operands.typed(0, WEIGHTS)?.dims();
        let x = operands.typed(1, FLOATS)?.dims();
        let ids = operands.typed(2, INDICES)?.dims();
        operands.rank(0, w.rank() == 3, "[experts, n, k]")?;
        operands.rank(1, x.rank() == 3, "[tokens, used or 1, k]")?;
        operands.rank(2, ids.rank() == 2, "[tokens, used]")?;
        operands.dims(1, 0, x[2] == w[2], "the last dims must agree")?;
        operands.dims(2, 1, ids[0] == x[0], "the numbers of tokens must agree")?;
        let rule = "the second dim of x must be that of ids, or 1";
        operands.dims(2, 1, x[1] == ids[1] || x[1] == 1, rule)?;
        let sizes = [ids[0], ids[1], w[1]];
        Ok(TensorSpec {
            dtype: DType::F32,
            dims: Dims::from_fn(3, |i| sizes[i]),
        })
    }

    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        product_flops(inputs, output)
    }

    /// Counts one expert as read for each id, up to the number of experts.
    fn cost(&self, inputs: &[&Value], output: &Value) -> Cost {
        let ids: u64 = inputs.get(2).map_or(0, |ids| count(ids));
        let read = inputs.iter().enumerate().map(|(i, value)| {
            let bytes = touched_bytes(value);
            let experts = value.dims().first().map_or(1, |&n| n as u64).max(1);
            if i == 0 {
                bytes / experts * ids.min(experts)
            } else {
                bytes
            }
        });
        Cost {
            flops: self.flops(inputs, output),
            bytes_read: read.sum(),
            bytes_written: touched_bytes(output),
        }
    }
}

impl Graph {
    /// Appends [`MatmulId`] of default precision.
    pub fn matmul_id(
        &mut self,
        w: ValueId,
        x: ValueId,
        ids: ValueId,
    ) -> Result<ValueId, GraphError> {
        self.apply(Op::from(MatmulId::default()), &[w, x, ids])
    }
}
