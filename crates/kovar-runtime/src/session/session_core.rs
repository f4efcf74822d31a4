//! What all clones of a session, and its plans, share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use kovar_core::backend::Backend;

use super::error::SessionError;
use super::run_state::RunState;
use super::states::States;
use super::weights::Weights;
use crate::place::Homes;

/// What all clones of a session, and its plans, share. Locks are taken in the order of the fields.
pub(crate) struct SessionCore {
    pub(crate) devices: Vec<Arc<dyn Backend>>,
    pub(crate) homes: Homes,
    run_state: Mutex<RunState>,
    weights: Mutex<Weights>,
    states: Mutex<States>,
    /// The thread that has the [`RunGuard`].
    holder: Mutex<Option<ThreadId>>,
    warnings: Mutex<HashSet<String>>,
}

/// The right to run and to use the activation memory; one thread has it at a time.
pub(crate) struct RunGuard<'s> {
    pub(crate) state: MutexGuard<'s, RunState>,
    holder: &'s Mutex<Option<ThreadId>>,
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        *lock(self.holder) = None;
    }
}

/// The data of the mutexes is consistent between any two calls of a backend, so it stays usable
/// after another thread has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionCore {
    pub(super) fn new(devices: Vec<Arc<dyn Backend>>, homes: Homes) -> Self {
        Self {
            homes,
            run_state: Mutex::new(RunState::new(devices.len())),
            weights: Mutex::default(),
            states: Mutex::default(),
            holder: Mutex::default(),
            warnings: Mutex::default(),
            devices,
        }
    }

    /// Waits until no other thread has the guard; [`SessionError::Busy`] if this thread has it.
    pub(crate) fn acquire(&self) -> Result<RunGuard<'_>, SessionError> {
        let thread = thread::current().id();
        if *lock(&self.holder) == Some(thread) {
            return Err(SessionError::Busy);
        }
        let state = lock(&self.run_state);
        *lock(&self.holder) = Some(thread);
        Ok(RunGuard {
            state,
            holder: &self.holder,
        })
    }

    /// Waits until no other thread has the guard and all devices are idle. An error of earlier runs
    /// is kept for the next run to report.
    pub(crate) fn acquire_idle(&self) -> Result<RunGuard<'_>, SessionError> {
        let mut guard = self.acquire()?;
        let state = &mut guard.state;
        if state.may_be_busy {
            state.failed = state.wait_until_idle(&self.devices).err();
        }
        Ok(guard)
    }

    /// Whether a warning is given for the first time.
    pub(crate) fn is_first(&self, warning: &str) -> bool {
        lock(&self.warnings).insert(warning.to_owned())
    }

    pub(crate) fn weights(&self) -> MutexGuard<'_, Weights> {
        lock(&self.weights)
    }

    pub(crate) fn states(&self) -> MutexGuard<'_, States> {
        lock(&self.states)
    }
}
