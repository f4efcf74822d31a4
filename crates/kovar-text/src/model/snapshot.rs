//! Reading the context of a model from its states, and writing it back.

use kovar_core::DType;
use kovar_runtime::{Session, SessionError, StateInfo};

use super::{Checkpoint, Context, Model};

/// A state, or the first rows of a cache.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StateBytes {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// Outermost first.
    pub(super) dims: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl StateBytes {
    /// The first `rows` rows of a state.
    fn read(session: &Session, state: StateInfo, rows: usize) -> Result<Self, SessionError> {
        let (dims, size) = first_rows(&state, rows);
        let mut bytes = vec![0; size];
        session.read_state(&state.name, 0, &mut bytes)?;
        Ok(Self {
            name: state.name,
            dtype: state.dtype,
            dims,
            bytes,
        })
    }

    fn write(&self, session: &Session) -> Result<(), SessionError> {
        session.write_state(&self.name, 0, &self.bytes)
    }
}

/// The dims and the size in bytes of the first `rows` rows of a state.
pub(super) fn first_rows(state: &StateInfo, rows: usize) -> (Vec<usize>, usize) {
    let mut dims = state.dims.to_vec();
    let mut size = state.bytes;
    if let Some(first) = dims.first_mut() {
        let rows = rows.min(*first);
        size = state.bytes.checked_div(*first).unwrap_or(0) * rows;
        *first = rows;
    }
    (dims, size)
}

impl Model {
    /// Saves the states of a recurrent model, so that it can return to the current tokens. This
    /// replaces the previous checkpoint. A model with caches can return to any token without
    /// checkpoints.
    ///
    /// # Errors
    /// The states cannot be read.
    pub fn checkpoint(&mut self) -> Result<(), SessionError> {
        let tokens = self.tokens.len();
        let exists = match &self.context {
            Context::Caches { .. } => true,
            Context::States { checkpoint, .. } => {
                checkpoint.as_ref().is_some_and(|is| is.tokens == tokens)
            }
        };
        if exists {
            return Ok(());
        }
        let states = self.read_states()?;
        if let Context::States { checkpoint, .. } = &mut self.context {
            *checkpoint = Some(Checkpoint { tokens, states });
        }
        Ok(())
    }

    /// The states after the tokens in the context; for caches, only the rows of these tokens.
    pub(super) fn read_states(&mut self) -> Result<Vec<StateBytes>, SessionError> {
        self.sync_states()?;
        let rows = match self.context {
            Context::Caches { .. } => self.tokens.len(),
            Context::States { .. } => usize::MAX,
        };
        let states = self.session.states().into_iter();
        states
            .map(|state| StateBytes::read(&self.session, state, rows))
            .collect()
    }

    /// Replaces the context by `tokens` and the states by `states`, which are those after `tokens`.
    pub(super) fn write_states(
        &mut self,
        tokens: &[u32],
        states: &[StateBytes],
        saved: Option<Checkpoint>,
    ) -> Result<(), SessionError> {
        self.tokens.clear();
        if let Context::States { held, checkpoint } = &mut self.context {
            (*held, *checkpoint) = (None, None);
        }
        states
            .iter()
            .try_for_each(|state| state.write(&self.session))?;
        self.tokens.extend_from_slice(tokens);
        if let Context::States { held, checkpoint } = &mut self.context {
            (*held, *checkpoint) = (Some(tokens.len()), saved);
        }
        Ok(())
    }

    /// Makes the states of a recurrent model match the tokens in the context, from the checkpoint
    /// or by a reset.
    pub(super) fn sync_states(&mut self) -> Result<(), SessionError> {
        let tokens = self.tokens.len();
        let Context::States { held, checkpoint } = &mut self.context else {
            return Ok(());
        };
        if *held == Some(tokens) {
            return Ok(());
        }
        *held = None;
        match checkpoint {
            Some(checkpoint) if checkpoint.tokens == tokens => {
                for state in &checkpoint.states {
                    state.write(&self.session)?;
                }
            }
            _ => self.session.reset_states()?,
        }
        *held = Some(tokens);
        Ok(())
    }
}
