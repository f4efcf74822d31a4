//! The context of a model taken out of its states, and put back.

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
        session.read_state_range(&state.name, 0, &mut bytes)?;
        Ok(Self {
            name: state.name,
            dtype: state.dtype,
            dims,
            bytes,
        })
    }

    fn write(&self, session: &Session) -> Result<(), SessionError> {
        session.write_state_range(&self.name, 0, &self.bytes)
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
    /// Remembers the states of a recurrent model, so that it can go back to the present tokens; the
    /// checkpoint before is forgotten. A model with caches can go back to any token without.
    ///
    /// # Errors
    /// The states cannot be read.
    pub fn checkpoint(&mut self) -> Result<(), SessionError> {
        let tokens = self.tokens.len();
        let is_there = match &self.context {
            Context::Caches { .. } => true,
            Context::States { checkpoint, .. } => {
                checkpoint.as_ref().is_some_and(|is| is.tokens == tokens)
            }
        };
        if is_there {
            return Ok(());
        }
        let states = self.read_states()?;
        if let Context::States { checkpoint, .. } = &mut self.context {
            *checkpoint = Some(Checkpoint { tokens, states });
        }
        Ok(())
    }

    /// The states as they are after the tokens in the context; of caches the rows of those.
    pub(super) fn read_states(&mut self) -> Result<Vec<StateBytes>, SessionError> {
        self.bring_states()?;
        let rows = match self.context {
            Context::Caches { .. } => self.tokens.len(),
            Context::States { .. } => usize::MAX,
        };
        let states = self.session.states().into_iter();
        states
            .map(|state| StateBytes::read(&self.session, state, rows))
            .collect()
    }

    /// Replaces the context by `tokens`, after which the states are `states`.
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

    /// Brings the states of a recurrent model to where its tokens are.
    pub(super) fn bring_states(&mut self) -> Result<(), SessionError> {
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
