//! Copies of a tensor side by side.
//!
//! No model calls it yet; it is for guidance, which runs a picture twice in one batch.

use super::Op;
use super::rules::{Operands, PLAIN, Rules, Signature, TensorSpec, per_dim};
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, ValueId};

/// `y[i0, i1, ..] = x[i0 % d0, i1 % d1, ..]`: copies of `x` (of dims `d`) side by side along each
/// dimension. (If only sizes of 1 are repeated and the result is only read,
/// [`Graph::broadcast_to`] needs no copy.)
///
/// - `x`: any plain dtype, any dims.
/// - result: dtype of `x`; the dims of `x` times `counts`. The bits of the elements are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Copies along each dimension, outermost first; as many as `x` has dims.
    pub counts: Dims,
}

const PER_DIM: &str = "as many dims as there are counts";

impl Rules for Repeat {
    fn signature(&self) -> Signature {
        Signature::new("repeat", &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, PLAIN)?;
        let (dims, counts) = (x.dims(), &self.counts);
        operands.rank(0, dims.rank() == counts.rank(), PER_DIM)?;
        // A size that overflows is refused with the tensor that would have it.
        Ok(TensorSpec {
            dtype: x.dtype,
            dims: Dims::from_fn(dims.rank(), |at| dims[at].saturating_mul(counts[at])),
        })
    }
}

impl Graph {
    /// Appends [`Repeat`], with a count for each dimension of `x`.
    pub fn repeat(&mut self, x: ValueId, counts: &[usize]) -> Result<ValueId, GraphError> {
        let counts = per_dim(self, "repeat", x, counts, PER_DIM)?;
        self.apply(Op::from(Repeat { counts }), &[x])
    }
}
