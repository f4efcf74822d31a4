//! The memory of a simulated device.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kovar_core::backend::{Buffer, DeviceMemory};
use kovar_core::error::DeviceError;

use super::events::Stage;
use super::faults::{Call, Faults};
use super::options::{Executor, SimulatedOptions};

/// The identity of a device, to which its memory, programs and queue refer. Two devices are the
/// same if and only if they refer to the same value.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) options: SimulatedOptions,
    pub(super) faults: Faults,
    allocated: AtomicU64,
}

impl Device {
    pub(super) fn new(options: SimulatedOptions) -> Self {
        Self {
            faults: Faults::new(&options.id, &options.faults),
            allocated: AtomicU64::new(0),
            options,
        }
    }

    pub(super) fn id(&self) -> String {
        self.options.id.clone()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.options.executor == Executor::Idle
    }

    /// Logs what happened to a piece of work.
    pub(super) fn note(&self, call: Call, stage: Stage, bytes: usize) {
        if let Some(events) = &self.options.events {
            events.add(&self.options.id, call, stage, bytes);
        }
    }

    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::SeqCst)
    }

    pub(super) fn foreign(&self, what: &'static str) -> DeviceError {
        DeviceError::Foreign {
            device: self.id(),
            what,
        }
    }

    /// The device's own memory in a buffer.
    pub(super) fn own<'b>(
        self: &Arc<Self>,
        buffer: &'b Buffer,
        what: &'static str,
    ) -> Result<&'b SimulatedMemory, DeviceError> {
        buffer
            .downcast::<SimulatedMemory>()
            .filter(|memory| Arc::ptr_eq(&memory.0.device, self))
            .ok_or_else(|| self.foreign(what))
    }

    fn reserve(&self, what: &str, bytes: usize) -> Result<(), DeviceError> {
        let most = self.options.memory_bytes.unwrap_or(u64::MAX);
        let fits = |used: u64| used.checked_add(bytes as u64).filter(|&used| used <= most);
        let order = Ordering::SeqCst;
        if bytes > self.options.max_buffer_bytes
            || self.allocated.fetch_update(order, order, fits).is_err()
        {
            return Err(DeviceError::OutOfMemory {
                device: self.id(),
                what: what.to_owned(),
                requested: bytes,
            });
        }
        Ok(())
    }
}

/// Memory that belongs to one device; clones are the same memory.
#[derive(Clone, Debug)]
pub(super) struct SimulatedMemory(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    device: Arc<Device>,
    len: usize,
    /// Whether this is a weight that only programs read.
    is_prepared: bool,
    /// Empty on an idle device.
    bytes: Mutex<Vec<u8>>,
}

impl SimulatedMemory {
    /// Memory of `len` bytes with the given content.
    pub(super) fn new(
        device: &Arc<Device>,
        what: &str,
        is_prepared: bool,
        len: usize,
        content: impl FnOnce() -> Vec<u8>,
    ) -> Result<Self, DeviceError> {
        device.reserve(what, len)?;
        let bytes = if device.is_idle() {
            Vec::new()
        } else {
            content()
        };
        Ok(Self(Arc::new(Contents {
            device: device.clone(),
            len,
            is_prepared,
            bytes: Mutex::new(bytes),
        })))
    }

    /// Whether this is a weight that only programs read.
    pub(super) fn is_prepared(&self) -> bool {
        self.0.is_prepared
    }

    /// Calls `access` with all bytes.
    pub(super) fn with<T>(&self, access: impl FnOnce(&mut [u8]) -> T) -> T {
        access(&mut self.0.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        let allocated = &self.device.allocated;
        allocated.fetch_sub(self.len as u64, Ordering::SeqCst);
    }
}

impl DeviceMemory for SimulatedMemory {
    fn len(&self) -> usize {
        self.0.len
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
