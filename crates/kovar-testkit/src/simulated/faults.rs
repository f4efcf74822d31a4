//! Calls that fail when a test wants them to.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kovar_core::error::DeviceError;

/// A kind of call on a device or its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `Backend::alloc`
    Alloc,
    /// `Backend::import_host`
    Import,
    /// `Backend::prepare`
    Prepare,
    /// `Backend::compile`
    Compile,
    /// `Queue::write`
    Write,
    /// `Queue::read`
    Read,
    /// `Queue::copy`
    Copy,
    /// `Queue::fill`
    Fill,
    /// `Queue::launch`
    Launch,
    /// `Queue::fence`
    Fence,
    /// `Queue::wait`
    Wait,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Once, with [`DeviceError::OutOfMemory`].
    OutOfMemory,
    /// Once, with [`DeviceError::TimedOut`].
    TimedOut,
    /// With [`DeviceError::Lost`], and every call after it too.
    Lost,
}

/// A call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The kind of call.
    pub call: Call,
    /// Which call of that kind, counted from 0.
    pub nth: usize,
    /// How it fails.
    pub kind: FaultKind,
}

/// The faults to come, and the calls made.
#[derive(Debug)]
pub(super) struct Faults {
    device: String,
    faults: Vec<Fault>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<Call, usize>,
    lost: bool,
}

impl Faults {
    pub(super) fn new(device: &str, faults: &[Fault]) -> Self {
        Self {
            device: device.to_owned(),
            faults: faults.to_vec(),
            state: Mutex::default(),
        }
    }

    pub(super) fn count(&self, call: Call) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.calls.get(&call).copied().unwrap_or(0)
    }

    /// Counts a call, and fails it if it is to fail.
    pub(super) fn check(&self, call: Call) -> Result<(), DeviceError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let made = state.calls.entry(call).or_default();
        let nth = *made;
        *made += 1;
        let device = self.device.clone();
        let fault = self.faults.iter().find(|f| f.call == call && f.nth == nth);
        state.lost |= fault.is_some_and(|fault| fault.kind == FaultKind::Lost);
        if state.lost {
            let reason = "a planted fault".to_owned();
            return Err(DeviceError::Lost { device, reason });
        }
        match fault.map(|fault| fault.kind) {
            Some(FaultKind::OutOfMemory) => Err(DeviceError::OutOfMemory {
                device,
                what: "a planted fault".to_owned(),
                requested: 0,
            }),
            Some(FaultKind::TimedOut) => Err(DeviceError::TimedOut {
                device,
                what: "a planted fault".to_owned(),
                seconds: 0.0,
            }),
            Some(FaultKind::Lost) | None => Ok(()),
        }
    }
}
