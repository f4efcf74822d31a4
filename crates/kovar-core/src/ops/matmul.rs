//! Products with a weight on the left.

use super::dtypes::{FLOATS, WEIGHTS};
use super::rules::{Operands, Rules, Signature, TensorSpec, product_flops};
use super::{Op, OpClass, Precision};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[b.., m, n] = sum_k x[b.., m, k] * w[b'.., n, k]`, that is `y = x w^T` for each batch.
///
/// - `w`: F32, F16, BF16, an 8-bit float or any quantised dtype, `[b'.., n, k]`.
/// - `x`: F32, F16 or BF16, `[b.., m, k]` of the same rank or a higher one.
/// - result: F32, `[b.., m, n]`.
///
/// Each batch size of `x` is a multiple of that of `w`, counted from the last; index `i` of `x`
/// is multiplied with index `i / (b / b')` of `w`, so that consecutive heads share one (grouped
/// heads).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Matmul {
    /// How exactly.
    pub precision: Precision,
}

impl Rules for Matmul {
    fn signature(&self) -> Signature {
        Signature::new("matmul", &["w", "x"]).classes(&[OpClass::Product])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let w = operands.typed(0, WEIGHTS)?.dims();
        let x = operands.typed(1, FLOATS)?.dims();
        operands.rank(0, w.rank() >= 2, "[.., n, k]")?;
        operands.rank(
            1,
            x.rank() >= w.rank(),
            "[.., m, k], of the rank of w or higher",
        )?;
        operands.dims(
            1,
            0,
            x.from_end(0) == w.from_end(0),
            "the last dims must agree",
        )?;
        let multiples = (2..w.rank()).all(|i| {
            let (x, w) = (x.from_end(i), w.from_end(i));
            x == w || (w != 0 && x.is_multiple_of(w))
        });
        operands.dims(
            1,
            0,
            multiples,
            "each batch size of x must be a multiple of w's",
        )?;
        let last = x.rank() - 1;
        Ok(TensorSpec {
            dtype: DType::F32,
            dims: Dims::from_fn(x.rank(), |i| if i == last { w.from_end(1) } else { x[i] }),
        })
    }

    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        product_flops(inputs, output)
    }
}

impl Graph {
    /// Appends [`Matmul`] of default precision.
    pub fn matmul(&mut self, w: ValueId, x: ValueId) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Matmul::default()), &[w, x])
    }
}
