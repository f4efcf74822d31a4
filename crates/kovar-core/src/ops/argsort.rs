//! Indices in the order of the elements.
//!
//! No model calls it yet; `top_k` chooses the experts of `matmul_id`.

use super::Op;
use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use crate::DType;
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// Which elements come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortOrder {
    /// The least.
    Ascending,
    /// The greatest.
    Descending,
}

/// `x[.., y[.., 0]], x[.., y[.., 1]], ..` are the elements of `x[.., :]` in order, or the first
/// `k` of them.
///
/// The order is stable: of equal elements the one of the lesser index comes first, ascending and
/// descending. NaN counts as greater than every number, all NaN as equal, and 0 as equal to -0.
///
/// - `x`: F32, F16 or BF16, `[.., n]`, `n` within I32.
/// - result: I32, the dims of `x`, or `[.., k]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argsort {
    /// Which elements come first.
    pub order: SortOrder,
    /// The number of indices, `n` at most; all if it is `None`. With a number, the operation is
    /// named `top_k`.
    pub k: Option<usize>,
}

impl Rules for Argsort {
    fn signature(&self) -> Signature {
        let name = match self.k {
            Some(_) => "top_k",
            None => "argsort",
        };
        Signature::new(name, &["x"])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let dims = operands.typed(0, FLOATS)?.dims();
        let n = dims.from_end(0);
        let indexed = dims.rank() >= 1 && i32::try_from(n).is_ok();
        operands.rank(0, indexed, "[.., n] with n within I32")?;
        let k = self.k.unwrap_or(n);
        let rule = "the size of the last dimension at most";
        operands.attribute(k <= n, "k", k as f64, rule)?;
        Ok(TensorSpec {
            dtype: DType::I32,
            dims: dims.with_last(k),
        })
    }

    fn flops(&self, inputs: &[&Value], _output: &Value) -> u64 {
        let x = inputs.iter().map(|x| {
            let n = x.dims().from_end(0).max(1) as u64;
            count(x).saturating_mul(u64::from(n.ilog2().max(1)))
        });
        x.sum()
    }
}

impl Graph {
    /// Appends the indices of all elements in order.
    pub fn argsort(&mut self, x: ValueId, order: SortOrder) -> Result<ValueId, GraphError> {
        self.apply(Op::from(Argsort { order, k: None }), &[x])
    }

    /// Appends the indices of the `k` greatest elements, the greatest first.
    pub fn top_k(&mut self, x: ValueId, k: usize) -> Result<ValueId, GraphError> {
        let (order, k) = (SortOrder::Descending, Some(k));
        self.apply(Op::from(Argsort { order, k }), &[x])
    }
}
