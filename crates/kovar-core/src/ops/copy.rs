//! Copies, casts and makes contiguous.
//!
//! No model calls it yet; it is for casts and permuted images of image models.

use super::dtypes::{COPIES, ENCODED, PLAIN, WEIGHTS};
use super::rules::{Operands, Rules, Signature, TensorSpec};
use super::{Op, OpClass};
use crate::DType;
use crate::error::GraphError;
use crate::graph::{Graph, ValueId};

/// `y = x` as another dtype, in row-major order or into a given destination.
///
/// - `x`: any plain dtype, any dims; for a result of 32, 16 or 8-bit floats or of Q8_0 any float or
///   quantised dtype.
/// - result: `dtype` (plain or Q8_0), the dims of `x`. Plain dtypes are cast by the rules of
///   [`plain`](crate::plain), Q8_0 is encoded as by [`quant::encode`](crate::quant::encode). A copy
///   to the same dtype keeps the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The result's dtype.
    pub dtype: DType,
}

impl Rules for Copy {
    fn signature(&self) -> Signature {
        Signature::new("copy", &["x"]).classes(&[OpClass::Copy])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        operands.result(self.dtype, COPIES)?;
        let x = operands.typed(
            0,
            match self.dtype {
                block if block.is_quantized() => WEIGHTS,
                float if ENCODED.contains(&float) => &DType::ALL,
                _ => PLAIN,
            },
        )?;
        let whole = x.dims().from_end(0).is_multiple_of(self.dtype.block_len());
        operands.rank(0, whole, "rows of whole blocks of the result's dtype")?;
        Ok(TensorSpec {
            dtype: self.dtype,
            dims: *x.dims(),
        })
    }
}

impl Graph {
    /// Appends a cast of `x` to `dtype`.
    pub fn cast(&mut self, x: ValueId, dtype: DType) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Copy { dtype }), &[x])
    }

    /// Appends a copy of `x` into `destination`, cast to the destination's dtype.
    pub fn copy_into(&mut self, x: ValueId, destination: ValueId) -> Result<ValueId, GraphError> {
        let dtype = self.value(destination)?.dtype;
        self.apply_into(Op::from(Copy { dtype }), &[x], destination)
    }

    /// `x` itself if it is contiguous, else a copy that is.
    pub fn contiguous(&mut self, x: ValueId) -> Result<ValueId, GraphError> {
        let value = self.value(x)?;
        if value.layout.is_contiguous() {
            return Ok(x);
        }
        let dtype = value.dtype;
        self.cast(x, dtype)
    }
}
