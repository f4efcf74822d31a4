//! General products of matrices.
//!
//! No model calls it yet; it is for products of two activations, and `sgemm` of the C API.

use super::dtypes::{FACTORS, FLOATS};
use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass, Precision};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y = alpha op(a) op(b) + beta c`, where `op` may transpose the last two dims.
///
/// - `a`: F32, F16, BF16 or an 8-bit float, `[b.., m, k]`, or `[b.., k, m]` if transposed.
/// - `b`: F32, F16, BF16 or an 8-bit float, `[b.., k, n]`, or `[b.., n, k]` if transposed.
/// - `c` (optional): F32, F16 or BF16; it broadcasts to the result. Not read if `beta` is 0.
/// - result: F32, `[b.., m, n]`. In place on `c`.
///
/// Batch sizes of `a` and `b` are the same or 1, counted from the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm {
    /// The factor of the product.
    pub alpha: f32,
    /// The factor of `c`; unused without `c`.
    pub beta: f32,
    /// Whether `a` is transposed.
    pub transpose_a: bool,
    /// Whether `b` is transposed.
    pub transpose_b: bool,
    /// How exactly.
    pub precision: Precision,
}

impl Default for Gemm {
    /// `y = a b + c`
    fn default() -> Self {
        Self {
            alpha: 1.0,
            beta: 1.0,
            transpose_a: false,
            transpose_b: false,
            precision: Precision::Default,
        }
    }
}

/// The sizes of the last two dims, after the transposition.
fn matrix(dims: &Dims, transposed: bool) -> [usize; 2] {
    let (rows, columns) = (dims.from_end(1), dims.from_end(0));
    if transposed {
        [columns, rows]
    } else {
        [rows, columns]
    }
}

impl Rules for Gemm {
    fn signature(&self) -> Signature {
        Signature::new("gemm", &["a", "b", "c"])
            .arity(2..=3)
            .in_place(&[2])
            .classes(&[OpClass::Product])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let a = operands.typed(0, FACTORS)?.dims();
        let b = operands.typed(1, FACTORS)?.dims();
        operands.rank(0, a.rank() >= 2, "[.., m, k]")?;
        operands.rank(1, b.rank() >= 2, "[.., k, n]")?;
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            operands.finite(name, value)?;
        }
        let [m, a_terms] = matrix(a, self.transpose_a);
        let [b_terms, n] = matrix(b, self.transpose_b);
        operands.dims(1, 0, a_terms == b_terms, "the sizes k must agree")?;
        let rank = a.rank().max(b.rank());
        let agree = (2..rank).all(|i| {
            let (a, b) = (a.from_end(i), b.from_end(i));
            a == b || a == 1 || b == 1
        });
        let rule = "each batch size must be the same or 1, counted from the last";
        operands.dims(1, 0, agree, rule)?;
        let dims = Dims::from_fn(rank, |at| match rank - 1 - at {
            0 => n,
            1 => m,
            i if a.from_end(i) == 1 => b.from_end(i),
            i => a.from_end(i),
        });
        if let Some(c) = operands.optional(2) {
            operands.typed(2, FLOATS)?;
            let fits = c.layout.broadcast_to(dims).is_some();
            operands.dims(2, 0, fits, "it must broadcast to the result [.., m, n]")?;
        }
        Ok(TensorSpec {
            dtype: DType::F32,
            dims,
        })
    }

    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        let terms = inputs
            .first()
            .map_or(0, |a| matrix(a.dims(), self.transpose_a)[1]);
        2 * terms as u64 * count(output)
    }
}

impl Graph {
    /// Appends [`Gemm`], with `c` or without.
    pub fn gemm(
        &mut self,
        attributes: Gemm,
        a: ValueId,
        b: ValueId,
        c: Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = [a, b].into_iter().chain(c).collect();
        self.apply(Op::from(attributes), &inputs)
    }
}
