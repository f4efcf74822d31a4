//! Padding with a constant.
//!
//! No model calls it yet; it is for the one-sided padding where VAEs halve an image.

use super::Op;
use super::dtypes::PLAIN;
use super::rules::{Operands, Rules, Signature, TensorSpec, per_dim};
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, ValueId};
use crate::{DType, plain};

/// `y` holds `x` and a constant around it.
///
/// - `x`: any plain dtype, any dims.
/// - result: dtype of `x`; along each dimension `before + size + after` elements. The bits of the
///   elements of `x` are kept; the constant is rounded to nearest, ties to even.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pad {
    /// Elements before `x` along each dimension, outermost first; as many as `x` has dims.
    pub before: Dims,
    /// Elements after `x` along each dimension.
    pub after: Dims,
    /// The constant; for integers and Bool it must be a number of the dtype.
    pub value: f32,
}

const PER_DIM: &str = "as many dims as there are sizes of padding before and after";

/// Whether an integer dtype, or Bool, has the number `value`.
fn is_held(dtype: DType, value: f64) -> bool {
    let (mut bytes, mut held) = ([0; 8], [0]);
    let element = bytes.get_mut(..dtype.block_bytes());
    let stored = element.is_some_and(|bytes| {
        plain::encode_f64(dtype, &[value], bytes).is_ok()
            && plain::decode_i64(dtype, bytes, &mut held).is_ok()
    });
    // In 128 bits, so that a number above the greatest integer does not saturate to it.
    stored && value.fract() == 0.0 && held.map(i128::from) == [value as i128]
}

impl Rules for Pad {
    fn signature(&self) -> Signature {
        Signature::new("pad", &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, PLAIN)?;
        let (dims, before, after) = (x.dims(), &self.before, &self.after);
        let rank = dims.rank();
        let fits = before.rank() == rank && after.rank() == rank;
        operands.rank(0, fits, PER_DIM)?;
        let value = self.value.into();
        let fits = !x.dtype.is_integer() || is_held(x.dtype, value);
        operands.attribute(fits, "value", value, "an integer that the dtype holds")?;
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: Dims::from_fn(rank, |at| {
                dims[at]
                    .saturating_add(before[at])
                    .saturating_add(after[at])
            }),
        })
    }
}

impl Graph {
    /// Appends [`Pad`], with a size before and a size after for each dimension of `x`.
    pub fn pad(
        &mut self,
        x: ValueId,
        before: &[usize],
        after: &[usize],
        value: f32,
    ) -> Result<ValueId, GraphError> {
        let before = per_dim(self, "pad", x, before, PER_DIM)?;
        let after = per_dim(self, "pad", x, after, PER_DIM)?;
        let op = Op::from(Pad {
            before,
            after,
            value,
        });
        self.apply(op, &[x])
    }
}
