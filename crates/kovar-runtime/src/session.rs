//! Devices with the weights and states that plans share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use kovar_core::backend::Backend;
use kovar_core::{DType, HostBytes};

use crate::arena::Running;
use crate::check::Violation;
use crate::device::{DeviceId, DeviceSet};
use crate::error::SessionError;
use crate::homes::Homes;
use crate::settle::settle;
use crate::states::{State, StateInfo, States};
use crate::weights::{WeightInfo, Weights};

/// Devices, weights and states. Plans that are compiled for one session share its weights (in the
/// form that each device prepared), its states by name, and one arena of activation memory for
/// each device, so that only one run of a session is under way at a time. Clones are the same
/// session.
#[derive(Clone)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
}

/// Device memory that a session holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUse {
    /// The device's id.
    pub device: String,
    /// Prepared weights, in bytes.
    pub weights: usize,
    /// States, in bytes.
    pub states: usize,
    /// Activation memory, in bytes.
    pub arena: usize,
}

/// Locks are taken in the order of the fields.
pub(crate) struct Shared {
    pub(crate) devices: Vec<Arc<dyn Backend>>,
    pub(crate) homes: Homes,
    running: Mutex<Running>,
    weights: Mutex<Weights>,
    states: Mutex<States>,
    holder: Mutex<Option<ThreadId>>,
}

/// The calling thread already has the right to run.
#[derive(Debug)]
pub(crate) struct Held;

/// The right to run, and to use the arenas.
pub(crate) struct RunGuard<'s> {
    pub(crate) running: MutexGuard<'s, Running>,
    holder: &'s Mutex<Option<ThreadId>>,
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        *lock(self.holder) = None;
    }
}

/// What the mutexes hold is whole between any two calls of a backend, so a panic of one thread
/// leaves it usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Waits until no run is under way.
    pub(crate) fn acquire(&self) -> Result<RunGuard<'_>, Held> {
        let thread = thread::current().id();
        if *lock(&self.holder) == Some(thread) {
            return Err(Held);
        }
        let running = lock(&self.running);
        *lock(&self.holder) = Some(thread);
        Ok(RunGuard {
            running,
            holder: &self.holder,
        })
    }

    /// Waits until no run is under way and all devices are done with those that nobody waited for.
    /// What failed of them is for the next run to tell, not for what is done in between.
    pub(crate) fn acquire_settled(&self) -> Result<RunGuard<'_>, Held> {
        let mut guard = self.acquire()?;
        let running = &mut guard.running;
        if running.unsettled {
            running.failed = running.settle(self).err();
        }
        Ok(guard)
    }

    /// A device by its position.
    pub(crate) fn backend(&self, device: DeviceId) -> Result<&Arc<dyn Backend>, Violation> {
        let backend = self.devices.get(device.index());
        backend.ok_or(Violation::NoDevice {
            device: device.index(),
        })
    }

    pub(crate) fn weights(&self) -> MutexGuard<'_, Weights> {
        lock(&self.weights)
    }

    pub(crate) fn states(&self) -> MutexGuard<'_, States> {
        lock(&self.states)
    }
}

impl Session {
    /// A session without weights and states. They will have their homes on the first device.
    ///
    /// # Errors
    /// [`SessionError::NoDevices`], [`SessionError::DuplicateDevice`],
    /// [`SessionError::TooManyDevices`].
    pub fn new(devices: Vec<Arc<dyn Backend>>) -> Result<Self, SessionError> {
        Self::with_homes(devices, Homes::all_on(DeviceId::FIRST))
    }

    /// A session without weights and states, which will have their homes where `homes` says.
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
        let shared = Shared {
            homes,
            running: Mutex::new(Running::new(devices.len())),
            weights: Mutex::default(),
            states: Mutex::default(),
            holder: Mutex::default(),
            devices,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// The devices, by [`DeviceId`].
    pub fn devices(&self) -> &[Arc<dyn Backend>] {
        &self.shared.devices
    }

    /// Where weights and states live.
    pub fn homes(&self) -> &Homes {
        &self.shared.homes
    }

    /// Adds a weight: `bytes` are the contiguous elements of a tensor of `dtype` and `dims`. The
    /// device brings it into its own form when the first plan that reads it is compiled.
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
        let n_devices = self.shared.devices.len();
        self.shared
            .weights()
            .add(name, dtype, dims, bytes, n_devices)
    }

    /// The weights, in the order in which they were added.
    pub fn weights(&self) -> Vec<WeightInfo> {
        self.shared.weights().infos()
    }

    /// The weight of a name.
    pub fn weight(&self, name: &str) -> Option<WeightInfo> {
        self.shared.weights().info(name).cloned()
    }

    /// The states of the plans compiled so far.
    pub fn states(&self) -> Vec<StateInfo> {
        let states = self.shared.states();
        states.iter().map(|state| state.info.clone()).collect()
    }

    /// Device memory that the session holds, by device.
    pub fn memory(&self) -> Result<Vec<DeviceUse>, SessionError> {
        let guard = self.shared.acquire()?;
        let (weights, states) = (self.shared.weights(), self.shared.states());
        let devices = self.shared.devices.iter().enumerate();
        Ok(devices
            .map(|(i, device)| DeviceUse {
                device: device.info().id.clone(),
                weights: weights.prepared(i).map(|(_, bytes)| bytes).sum(),
                states: states.bytes(i),
                arena: guard.running.bytes(i),
            })
            .collect())
    }

    /// Waits until the runs so far are done on all devices, and returns the first error of those
    /// that nobody waited for. No later run tells it again.
    ///
    /// # Errors
    /// [`SessionError::Busy`], a device's.
    pub fn wait(&self) -> Result<(), SessionError> {
        let mut guard = self.shared.acquire()?;
        Ok(guard.running.settle(&self.shared)?)
    }

    /// Sets a state to zero, as it was at first.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::Busy`], a device's.
    pub fn reset_state(&self, name: &str) -> Result<(), SessionError> {
        let _guard = self.shared.acquire_settled()?;
        let state = self.shared.states().get(name)?.clone();
        self.zero(&state)?;
        Ok(settle([self.backend(&state)?])?)
    }

    /// Sets all states to zero. What failed of runs that nobody waited for is told by no later run.
    ///
    /// # Errors
    /// [`SessionError::Busy`], a device's.
    pub fn reset_states(&self) -> Result<(), SessionError> {
        let mut guard = self.shared.acquire_settled()?;
        if let Some(error) = guard.running.failed.take() {
            tracing::warn!("a run that nobody waited for failed: {error}");
        }
        let states: Vec<State> = self.shared.states().iter().cloned().collect();
        let queued = states.iter().try_for_each(|state| self.zero(state));
        let done = settle(&self.shared.devices);
        queued?;
        Ok(done?)
    }

    /// Reads a whole state, as the runs so far left it.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateSize`], [`SessionError::Busy`], a
    /// device's.
    pub fn read_state(&self, name: &str, bytes: &mut [u8]) -> Result<(), SessionError> {
        let mut guard = self.shared.acquire()?;
        guard.running.finish(&self.shared)?;
        let state = self.shared.states().get(name)?.clone();
        check_size(&state, bytes.len())?;
        self.read(&state, 0, bytes)
    }

    /// Overwrites a whole state, for the runs to come.
    ///
    /// # Errors
    /// [`SessionError::UnknownState`], [`SessionError::StateSize`], [`SessionError::Busy`], a
    /// device's.
    pub fn write_state(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        let _guard = self.shared.acquire_settled()?;
        let state = self.shared.states().get(name)?.clone();
        check_size(&state, bytes.len())?;
        self.write(&state, 0, bytes)
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
        let mut guard = self.shared.acquire()?;
        guard.running.finish(&self.shared)?;
        let state = self.shared.states().get(name)?.clone();
        check_range(&state, start, bytes.len())?;
        self.read(&state, start, bytes)
    }

    /// Overwrites the bytes of a state from byte `start` on, for the runs to come.
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
        let _guard = self.shared.acquire_settled()?;
        let state = self.shared.states().get(name)?.clone();
        check_range(&state, start, bytes.len())?;
        self.write(&state, start, bytes)
    }

    fn read(&self, state: &State, start: usize, bytes: &mut [u8]) -> Result<(), SessionError> {
        let queue = self.backend(state)?.queue();
        Ok(queue.read_into(&state.buffer, start, bytes)?)
    }

    fn write(&self, state: &State, start: usize, bytes: &[u8]) -> Result<(), SessionError> {
        let queue = self.backend(state)?.queue();
        queue.write(&state.buffer, start, bytes)?;
        Ok(settle([self.backend(state)?])?)
    }

    fn zero(&self, state: &State) -> Result<(), SessionError> {
        let queue = self.backend(state)?.queue();
        Ok(queue.fill(&state.buffer, 0, state.info.bytes, 0)?)
    }

    fn backend(&self, state: &State) -> Result<&Arc<dyn Backend>, SessionError> {
        Ok(self.shared.backend(state.info.device)?)
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

fn check_range(state: &State, start: usize, len: usize) -> Result<(), SessionError> {
    let end = start.checked_add(len);
    if end.is_some_and(|end| end <= state.info.bytes) {
        return Ok(());
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
            .field("devices", &self.shared.devices)
            .finish_non_exhaustive()
    }
}
