//! Products with an 8-bit weight that has a scale for each row.
//!
//! No model calls it yet; it is for INT8 weights, and the 8-bit products of the C API.

use super::rules::{Operands, Rules, Signature, TensorSpec, product_flops};
use super::{Op, OpClass};
use crate::DType;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

const ACTIVATIONS: &[DType] = &[DType::F32, DType::F16, DType::BF16, DType::I8];

/// `y[i.., n] = scales[n] x_scale[i..] sum_k x[i.., k] w[n, k]`.
///
/// - `w`: I8, `[n, k]`.
/// - `scales`: F32, `[n]`.
/// - `x`: `[.., k]`, I8 codes, multiplied in integers, or F32, F16 or BF16.
/// - `x_scale`: F32, the dims of `x` but the last; given if and only if `x` is I8.
/// - result: F32, `[.., n]`.
///
/// [`QuantizeRows`](super::QuantizeRows) makes codes and scales of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatmulI8;

impl Rules for MatmulI8 {
    fn signature(&self) -> Signature {
        Signature::new("matmul_i8", &["w", "scales", "x", "x_scale"])
            .arity(3..=4)
            .classes(&[OpClass::Product])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let w = operands.typed(0, &[DType::I8])?.dims();
        let scales = operands.typed(1, &[DType::F32])?.dims();
        let x = operands.typed(2, ACTIVATIONS)?;
        let codes = x.dtype == DType::I8;
        let x = x.dims();
        operands.rank(0, w.rank() == 2, "[n, k]")?;
        operands.rank(1, scales.rank() == 1, "[n]")?;
        operands.rank(2, x.rank() >= 1, "[.., k]")?;
        operands.dims(1, 0, scales[0] == w[0], "it must have a scale for each row")?;
        let same = x.from_end(0) == w[1];
        operands.dims(2, 0, same, "the last dims must agree")?;
        match (codes, operands.optional(3)) {
            (true, Some(_)) => {
                let x_scale = operands.typed(3, &[DType::F32])?.dims();
                let outer = x.split_last().map(|(_, outer)| outer);
                let rule = "it must have the dims of x but the last";
                operands.dims(3, 2, outer == Some(&x_scale[..]), rule)?;
            }
            (false, None) => {}
            (true, None) => return Err(operands.wrong_number("4 with I8 activations")),
            (false, Some(_)) => return Err(operands.wrong_number("3 with float activations")),
        }
        Ok(TensorSpec {
            dtype: DType::F32,
            dims: x.with_last(w[0]),
        })
    }

    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        product_flops(inputs, output)
    }
}

impl Graph {
    /// Appends [`MatmulI8`], with the scales of I8 activations or without for float ones.
    pub fn matmul_i8(
        &mut self,
        w: ValueId,
        scales: ValueId,
        x: ValueId,
        x_scale: Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = [w, scales, x].into_iter().chain(x_scale).collect();
        self.apply(Op::from(MatmulI8), &inputs)
    }
}
