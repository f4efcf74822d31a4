//! The state recurrence of RWKV-7.

use super::Op;
use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec, count};
use crate::DType;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::{Graph, ScalarId, Value, ValueId};

/// For each token in turn and each head, with the head's state `S` after the token before
/// (Peng et al. 2025; `x070` in the reference implementation):
/// `S = S diag(w) + (S a) b^T + v k^T`, `y = S r`; computed in f32.
///
/// - `r`, `w`, `k`, `v`, `a`, `b`: F32, F16 or BF16, `[tokens, heads, n]`. `w` is the decay itself,
///   between 0 and 1, not its logarithm; the model's removal key `kk` and rate `iclr` enter as
///   `a = -kk`, `b = kk * iclr`.
/// - `state` (updated): F32 `[heads, n, n]`, rows by the elements of `v`, columns by those of `k`.
/// - result: dtype of `r`, `[tokens, heads, n]`.
///
/// Tokens from `n_valid` on are padding: they leave the state alone and their results are zeros.
/// A sequence gives the same results as its tokens one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wkv7 {
    /// The number of valid tokens; all are valid if it is `None` or greater.
    pub n_valid: Option<ScalarId>,
}

/// Recurrent states.
pub(super) const STATES: &[DType] = &[DType::F32];

/// The operand index of the state.
const STATE: usize = 6;

impl Rules for Wkv7 {
    fn signature(&self) -> Signature {
        Signature {
            updates: &[STATE],
            ..Signature::new("wkv7", &["r", "w", "k", "v", "a", "b", "state"])
        }
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let r = operands.typed(0, FLOATS)?;
        let dims = r.dims();
        operands.rank(0, dims.rank() == 3, "[tokens, heads, n]")?;
        for i in 1..STATE {
            let same = operands.typed(i, FLOATS)?.dims() == dims;
            operands.dims(i, 0, same, "the dims must agree")?;
        }
        let state = *operands.typed(STATE, STATES)?.dims();
        let square = state == Dims::from_fn(3, |i| [dims[1], dims[2], dims[2]][i]);
        operands.dims(STATE, 0, square, "[heads, n, n] for [tokens, heads, n]")?;
        Ok(TensorSpec {
            dtype: r.dtype,
            dims: *dims,
        })
    }

    fn scalar(&self) -> Option<ScalarId> {
        self.n_valid
    }

    fn flops(&self, _inputs: &[&Value], output: &Value) -> u64 {
        9 * count(output) * output.dims().from_end(0) as u64
    }
}

impl Graph {
    /// Appends [`Wkv7`] over `[r, w, k, v, a, b]`, updating `state`.
    pub fn wkv7(
        &mut self,
        rwkvab: [ValueId; 6],
        state: ValueId,
        n_valid: Option<ScalarId>,
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = rwkvab.into_iter().chain([state]).collect();
        self.apply(Op::from(Wkv7 { n_valid }), &inputs)
    }
}
