//! Concatenation along a dimension.
//!
//! No model calls it yet; it is for skip connections of UNets.

use super::Op;
use super::rules::{Operands, PLAIN, Rules, Signature, TensorSpec};
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, ValueId};

/// `y` holds the operands one after another along a dimension.
///
/// - operands, two or more: any plain dtype, the same for all; dims that are the same except
///   dimension `dim`.
/// - result: dtype of the operands; their dims with the sum of the sizes along `dim`. The bits of
///   the elements are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat {
    /// The dimension, counted from the outermost.
    pub dim: usize,
}

impl Rules for Concat {
    fn signature(&self) -> Signature {
        Signature::new("concat", &["first", "next"]).arity(2..=usize::MAX)
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let first = operands.typed(0, PLAIN)?;
        let dims = first.dims();
        let rank = dims.rank();
        operands.attribute(
            self.dim < rank,
            "dim",
            self.dim as f64,
            "a dimension of the operands",
        )?;
        let mut size = 0usize;
        let mut i = 0;
        while let Some(x) = operands.optional(i) {
            operands.typed_as(i, 0)?;
            let fits = x.dims().rank() == rank
                && (0..rank).all(|at| at == self.dim || x.dims()[at] == dims[at]);
            let rule = "the sizes must agree along every dimension but `dim`";
            operands.dims(i, 0, fits, rule)?;
            size = size.saturating_add(x.dims()[self.dim]);
            i += 1;
        }
        Ok(TensorSpec {
            dtype: first.dtype,
            dims: Dims::from_fn(rank, |at| if at == self.dim { size } else { dims[at] }),
        })
    }
}

impl Graph {
    /// Appends [`Concat`].
    pub fn concat(&mut self, operands: &[ValueId], dim: usize) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Concat { dim }), operands)
    }
}
