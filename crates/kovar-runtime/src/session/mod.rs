//! Devices with the weights and states that plans share.

mod error;
mod run_state;
mod session_core;
mod states;
mod weights;

use std::fmt;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{DType, HostBytes};

use crate::device::{DeviceId, DeviceSet};
use crate::place::Homes;
use crate::run::{backend, wait_until_idle};

pub use error::SessionError;
pub(crate) use run_state::RunState;
pub(crate) use session_core::{RunGuard, SessionCore};
use states::State;
pub use states::StateInfo;
pub use weights::WeightInfo;

/// Devices, weights and states. Plans that are compiled for one session share its weights (in the
/// form that each device prepared), its states by name, and one arena of activation memory for
/// each device, so that a session is used by one run at a time. Clones are the same
/// session.
#[derive(Clone)]
pub struct Session {
    pub(crate) core: Arc<SessionCore>,
}

/// Device memory that a session holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUsage {
    /// The device's id.
    pub device: String,
    /// Prepared weights, in bytes.
    pub weights: usize,
    /// States, in bytes.
    pub states: usize,
    /// Activation memory, in bytes.
    pub arena: usize,
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
    /// [`SessionError::TooManyDevices`], [`SessionError::NoHome`].
    pub fn with_homes(devices: Vec<Arc<dyn Backend>>, homes: Homes) -> Result<Self, SessionError> {
        if devices.is_empty() {
            return Err(SessionError::NoDevices);
        }
        if devices.len() > DeviceSet::MAX {
            return Err(SessionError::TooManyDevices {
                found: devices.len(),
            });
        }
        let last = homes.last_device().index();
        if last >= devices.len() {
            return Err(SessionError::NoHome {
                device: last,
                devices: devices.len(),
            });
        }
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

    /// Adds a weight: `bytes` are the contiguous elements of a tensor of `dtype` and `dims`. A device
    /// prepares its own form of it when the first plan that reads it is compiled.
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

    /// The weights, in the order in which they were added.
    pub fn weights(&self) -> Vec<WeightInfo> {
        self.core.weights().infos()
    }

    /// The weight of a name.
    pub fn weight(&self, name: &str) -> Option<WeightInfo> {
        self.core.weights().info(name).cloned()
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
        let (weights, states) = (self.core.weights(), self.core.states());
        let devices = self.core.devices.iter().enumerate();
        Ok(devices
            .map(|(i, device)| DeviceUsage {
                device: device.info().id.clone(),
                weights: weights.prepared(i).map(|(_, bytes)| bytes).sum(),
                states: states.bytes(i),
                arena: guard.state.arena_bytes(i),
            })
            .collect())
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

    /// Sets a state to zero, as it was at first.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::Busy`], a device's.
    pub fn reset_state(&self, name: &str) -> Result<(), SessionError> {
        let _guard = self.core.acquire_idle()?;
        let state = self.state(name)?;
        self.zero(&state)?;
        self.wait_for(&state)
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
        let queued = states.iter().try_for_each(|state| self.zero(state));
        let done = wait_until_idle(self.devices());
        queued?;
        Ok(done?)
    }

    /// Reads a whole state, as the runs so far left it.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateSize`], [`SessionError::Busy`], a
    /// device's.
    pub fn read_state(&self, name: &str, bytes: &mut [u8]) -> Result<(), SessionError> {
        self.read(name, bytes, |state, len| check_size(state, len).map(|()| 0))
    }

    /// Overwrites a whole state, for later runs.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateSize`], [`SessionError::Busy`], a
    /// device's.
    pub fn write_state(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        self.write(name, bytes, |state, len| check_size(state, len).map(|()| 0))
    }

    /// Reads the bytes of a state from byte `start` on, as the runs so far left them.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateRange`], [`SessionError::Busy`], a
    /// device's.
    pub fn read_state_range(
        &self,
        name: &str,
        start: usize,
        bytes: &mut [u8],
    ) -> Result<(), SessionError> {
        self.read(name, bytes, |state, len| check_range(state, start, len))
    }

    /// Overwrites the bytes of a state from byte `start` on, for later runs.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateRange`], [`SessionError::Busy`], a
    /// device's.
    pub fn write_state_range(
        &self,
        name: &str,
        start: usize,
        bytes: &[u8],
    ) -> Result<(), SessionError> {
        self.write(name, bytes, |state, len| check_range(state, start, len))
    }

    /// Reads the bytes of a state from where `start` says, which also checks their number.
    fn read(
        &self,
        name: &str,
        bytes: &mut [u8],
        start: impl Fn(&State, usize) -> Result<usize, SessionError>,
    ) -> Result<(), SessionError> {
        let mut guard = self.core.acquire()?;
        guard.state.queue_all(self.devices())?;
        let state = self.state(name)?;
        let start = start(&state, bytes.len())?;
        let queue = backend(self.devices(), state.info.device)?.queue();
        Ok(queue.read_into(&state.buffer, start, bytes)?)
    }

    /// Writes the bytes of a state from where `start` says, which also checks their number.
    fn write(
        &self,
        name: &str,
        bytes: &[u8],
        start: impl Fn(&State, usize) -> Result<usize, SessionError>,
    ) -> Result<(), SessionError> {
        let _guard = self.core.acquire_idle()?;
        let state = self.state(name)?;
        let start = start(&state, bytes.len())?;
        let queue = backend(self.devices(), state.info.device)?.queue();
        queue.write(&state.buffer, start, bytes)?;
        self.wait_for(&state)
    }

    fn zero(&self, state: &State) -> Result<(), SessionError> {
        let queue = backend(self.devices(), state.info.device)?.queue();
        Ok(queue.fill(&state.buffer, 0, state.info.bytes, 0)?)
    }

    fn state(&self, name: &str) -> Result<State, SessionError> {
        self.core.states().get(name).cloned()
    }

    fn wait_for(&self, state: &State) -> Result<(), SessionError> {
        let device = self.devices().get(state.info.device.index());
        Ok(wait_until_idle(device)?)
    }
}

fn check_size(state: &State, found: usize) -> Result<(), SessionError> {
    if state.info.bytes == found {
        return Ok(());
    }
    Err(SessionError::StateSize {
        name: state.info.name.clone(),
        expected: state.info.bytes,
        found,
    })
}

fn check_range(state: &State, start: usize, len: usize) -> Result<usize, SessionError> {
    let end = start.checked_add(len);
    if end.is_some_and(|end| end <= state.info.bytes) {
        return Ok(start);
    }
    Err(SessionError::StateRange {
        name: state.info.name.clone(),
        bytes: state.info.bytes,
        start,
        len,
    })
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("devices", &self.core.devices)
            .finish_non_exhaustive()
    }
}
