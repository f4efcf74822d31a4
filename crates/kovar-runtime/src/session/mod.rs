//! Devices with the weights and states that plans share.

mod error;
mod memory_usage;
mod run_state;
mod session_core;
mod states;
mod weights;

use std::fmt;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{DType, HostBytes};

use crate::device::{DeviceId, DeviceSet, Devices};
use crate::place::Homes;
use crate::run::wait_until_idle;

pub use error::SessionError;
pub(crate) use memory_usage::MemoryUsage;
pub use memory_usage::{DeviceUsage, OverBudget};
pub(crate) use run_state::RunState;
pub(crate) use session_core::{RunGuard, SessionCore};
use states::State;
pub use states::StateInfo;

/// Devices, weights and states. The plans of a session share its weights, which each device
/// prepares once, its states, by name, and one arena of activation memory for each device. So one
/// run uses a session at a time. Clones refer to the same session.
#[derive(Clone)]
pub struct Session {
    pub(crate) core: Arc<SessionCore>,
}

impl Session {
    /// A session without weights and states, whose homes will be on the first device.
    ///
    /// # Errors
    /// [`SessionError::NoDevices`], [`SessionError::DuplicateDevice`],
    /// [`SessionError::TooManyDevices`].
    pub fn new(devices: Vec<Arc<dyn Backend>>) -> Result<Self, SessionError> {
        Self::with_homes(devices, Homes::all_on(DeviceId::FIRST))
    }

    /// A session without weights and states, whose homes will be those of `homes`.
    ///
    /// # Errors
    /// [`SessionError::NoDevices`], [`SessionError::DuplicateDevice`],
    /// [`SessionError::TooManyDevices`], [`SessionError::UnknownDevice`].
    pub fn with_homes(devices: Vec<Arc<dyn Backend>>, homes: Homes) -> Result<Self, SessionError> {
        if devices.is_empty() {
            return Err(SessionError::NoDevices);
        }
        if devices.len() > DeviceSet::MAX {
            return Err(SessionError::TooManyDevices {
                found: devices.len(),
            });
        }
        homes.check(devices.len())?;
        for (i, device) in devices.iter().enumerate() {
            let id = &device.info().id;
            if devices.iter().take(i).any(|other| other.info().id == *id) {
                return Err(SessionError::DuplicateDevice { id: id.clone() });
            }
        }
        Ok(Self {
            core: Arc::new(SessionCore::new(devices, homes)),
        })
    }

    /// The devices, by [`DeviceId`].
    pub fn devices(&self) -> &[Arc<dyn Backend>] {
        &self.core.devices
    }

    /// The homes of weights and states.
    pub fn homes(&self) -> &Homes {
        &self.core.homes
    }

    /// Adds a weight: `bytes` are the contiguous elements of a tensor of `dtype` and `dims`. A
    /// device prepares its own form of it when the first plan that reads it is compiled.
    ///
    /// # Errors
    /// [`SessionError::DuplicateWeight`], [`SessionError::WeightShape`],
    /// [`SessionError::WeightSize`].
    pub fn add_weight(
        &self,
        name: &str,
        dtype: DType,
        dims: &[usize],
        bytes: HostBytes,
    ) -> Result<(), SessionError> {
        let n_devices = self.devices().len();
        let mut weights = self.core.weights();
        weights.add(name, dtype, dims, bytes, n_devices)
    }

    /// The states of the plans compiled so far.
    pub fn states(&self) -> Vec<StateInfo> {
        let states = self.core.states();
        states.iter().map(|state| state.info.clone()).collect()
    }

    /// Device memory that the session holds, by device.
    ///
    /// # Errors
    /// [`SessionError::Busy`].
    pub fn memory(&self) -> Result<Vec<DeviceUsage>, SessionError> {
        let guard = self.core.acquire()?;
        Ok(MemoryUsage::of(&self.core, &guard.state).by_device(self.devices()))
    }

    /// Waits until the runs so far are done on all devices, and returns the first error of those
    /// that were not waited for. No later run reports it again.
    ///
    /// # Errors
    /// [`SessionError::Busy`], a device's.
    pub fn wait(&self) -> Result<(), SessionError> {
        let mut guard = self.core.acquire()?;
        Ok(guard.state.wait_until_idle(self.devices())?)
    }

    /// Sets all states to zero. An error of earlier runs that were not waited for is logged as a
    /// warning, and no later run reports it.
    ///
    /// # Errors
    /// [`SessionError::Busy`], a device's.
    pub fn reset_states(&self) -> Result<(), SessionError> {
        let mut guard = self.core.acquire_idle()?;
        if let Some(error) = guard.state.failed.take() {
            tracing::warn!("a run that was not waited for failed: {error}");
        }
        let states: Vec<State> = self.core.states().iter().cloned().collect();
        let queued = states.iter().try_for_each(|State { info, buffer }| {
            let queue = self.devices().at(info.device).queue();
            queue.fill(buffer, 0, info.bytes, 0)
        });
        let done = wait_until_idle(self.devices());
        queued?;
        Ok(done?)
    }

    /// Reads the bytes of a state from byte `start` on, as the runs so far left them. The first
    /// plan that has a state makes it.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateRange`], [`SessionError::Busy`], a
    /// device's.
    pub fn read_state(
        &self,
        name: &str,
        start: usize,
        bytes: &mut [u8],
    ) -> Result<(), SessionError> {
        let mut guard = self.core.acquire()?;
        guard.state.queue_all(self.devices())?;
        let state = self.state_with(name, start, bytes.len())?;
        let queue = self.devices().at(state.info.device).queue();
        Ok(queue.read_into(&state.buffer, start, bytes)?)
    }

    /// Overwrites the bytes of a state from byte `start` on, for later runs.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateRange`], [`SessionError::Busy`], a
    /// device's.
    pub fn write_state(&self, name: &str, start: usize, bytes: &[u8]) -> Result<(), SessionError> {
        let _guard = self.core.acquire_idle()?;
        let state = self.state_with(name, start, bytes.len())?;
        let device = state.info.device;
        let queue = self.devices().at(device).queue();
        queue.write(&state.buffer, start, bytes)?;
        Ok(wait_until_idle(self.devices().get(device.index()))?)
    }

    /// The state of a name, which has `len` bytes from byte `start` on.
    fn state_with(&self, name: &str, start: usize, len: usize) -> Result<State, SessionError> {
        let state = self.core.states().get(name)?.clone();
        let (bytes, end) = (state.info.bytes, start.checked_add(len));
        if end.is_some_and(|end| end <= bytes) {
            return Ok(state);
        }
        Err(SessionError::StateRange {
            name: name.to_owned(),
            bytes,
            start,
            len,
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("devices", &self.core.devices)
            .finish_non_exhaustive()
    }
}
