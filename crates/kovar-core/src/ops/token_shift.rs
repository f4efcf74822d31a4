//! The token before each token.

use super::Op;
use super::rules::{FLOATS, Operands, Rules, Signature, TensorSpec};
use crate::error::GraphError;
use crate::graph::{Graph, ScalarId, ValueId};

/// The token before each token, across runs: `y[0] = state`, `y[t] = x[t - 1]`, and afterwards
/// `state` is the last valid row of `x` (the token shift of RWKV, Peng et al. 2023).
///
/// - `x`: F32, F16 or BF16, `[tokens, n]`.
/// - `state` (updated): F32 `[n]`.
/// - result: dtype and dims of `x`.
///
/// Tokens from `n_valid` on are padding: their results are zeros, and the state is the row before
/// them. If no token is valid, the state stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenShift {
    /// The number of valid tokens; all are valid if it is `None` or greater.
    pub n_valid: Option<ScalarId>,
}

/// The operand index of the state.
const STATE: usize = 1;

impl Rules for TokenShift {
    fn signature(&self) -> Signature {
        Signature {
            updates: &[STATE],
            ..Signature::new("token_shift", &["x", "state"])
        }
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let x = operands.typed(0, FLOATS)?;
        let state = operands.typed(STATE, super::wkv7::STATES)?.dims();
        operands.rank(0, x.dims().rank() == 2, "[tokens, n]")?;
        operands.rank(STATE, state.rank() == 1, "[n]")?;
        operands.dims(
            STATE,
            0,
            state[0] == x.dims()[1],
            "the last dims must agree",
        )?;
        Ok(TensorSpec::like(x))
    }

    fn scalar(&self) -> Option<ScalarId> {
        self.n_valid
    }
}

impl Graph {
    /// Appends [`TokenShift`], updating `state`.
    pub fn token_shift(
        &mut self,
        x: ValueId,
        state: ValueId,
        n_valid: Option<ScalarId>,
    ) -> Result<ValueId, GraphError> {
        self.apply(Op::from(TokenShift { n_valid }), &[x, state])
    }
}
