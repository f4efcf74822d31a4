//! Calls that a test makes fail.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

/// How a call fails. Queued work fails when it runs, unless the kind says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Once, with [`DeviceError::OutOfMemory`].
    OutOfMemory,
    /// Once, with [`DeviceError::TimedOut`].
    TimedOut,
    /// Once, with [`DeviceError::TimedOut`] from the call itself: the work is not queued. Only for
    /// calls that queue work.
    Refused,
    /// With [`DeviceError::Lost`], and so does every call after it.
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

/// How often each kind of call was made.
#[derive(Debug, Default)]
struct Counts([AtomicUsize; Call::Wait as usize + 1]);

impl Counts {
    /// Counts a call, and returns how many of its kind came before it.
    fn add(&self, call: Call) -> usize {
        self.0[call as usize].fetch_add(1, Ordering::SeqCst)
    }
}

/// The planned faults, and the calls made so far.
#[derive(Debug)]
pub(super) struct Faults {
    device: String,
    faults: Vec<Fault>,
    queued: Counts,
    made: Counts,
    is_lost: AtomicBool,
}

impl Faults {
    pub(super) fn new(device: &str, faults: &[Fault]) -> Self {
        Self {
            device: device.to_owned(),
            faults: faults.to_vec(),
            queued: Counts::default(),
            made: Counts::default(),
            is_lost: AtomicBool::new(false),
        }
    }

    pub(super) fn count(&self, call: Call) -> usize {
        self.made.0[call as usize].load(Ordering::SeqCst)
    }

    fn planned(&self, call: Call, nth: usize) -> impl Iterator<Item = FaultKind> {
        let faults = self.faults.iter();
        let planned = faults.filter(move |fault| fault.call == call && fault.nth == nth);
        planned.map(|fault| fault.kind)
    }

    /// Counts work that is to be queued, and fails if it is refused.
    pub(super) fn queue(&self, call: Call) -> Result<(), DeviceError> {
        let nth = self.queued.add(call);
        if self
            .planned(call, nth)
            .any(|kind| kind == FaultKind::Refused)
        {
            return Err(self.timed_out());
        }
        Ok(())
    }

    /// Counts a call, and fails if a fault is planned for it.
    pub(super) fn call(&self, call: Call) -> Result<(), DeviceError> {
        let nth = self.made.add(call);
        let kind = self
            .planned(call, nth)
            .find(|&kind| kind != FaultKind::Refused);
        if kind == Some(FaultKind::Lost) {
            self.is_lost.store(true, Ordering::SeqCst);
        }
        let device = || self.device.clone();
        match kind {
            _ if self.is_lost.load(Ordering::SeqCst) => Err(DeviceError::Lost {
                device: device(),
                reason: PLANTED.to_owned(),
            }),
            Some(FaultKind::OutOfMemory) => Err(DeviceError::OutOfMemory {
                device: device(),
                what: PLANTED.to_owned(),
                requested: 0,
            }),
            Some(_) => Err(self.timed_out()),
            None => Ok(()),
        }
    }

    fn timed_out(&self) -> DeviceError {
        DeviceError::TimedOut {
            device: self.device.clone(),
            what: PLANTED.to_owned(),
            seconds: 0.0,
        }
    }
}

const PLANTED: &str = "a planted fault";
