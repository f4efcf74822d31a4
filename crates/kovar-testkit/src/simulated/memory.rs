//! The memory of a simulated device.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kovar_core::backend::{Buffer, DeviceMemory};
use kovar_core::error::DeviceError;

use super::SimulatedOptions;
use super::events::{Events, Stage};
use super::faults::{Call, Faults};

/// What a device's memory, programs and queue share. Two devices are the same if and only if they
/// share it.
#[derive(Debug)]
pub(super) struct Device {
    pub id: String,
    pub faults: Faults,
    events: Option<Events>,
    max_buffer_bytes: usize,
    memory_bytes: Option<u64>,
    allocated: AtomicU64,
}

impl Device {
    pub(super) fn new(options: &SimulatedOptions) -> Self {
        Self {
            id: options.id.clone(),
            faults: Faults::new(&options.id, &options.faults),
            events: options.events.clone(),
            max_buffer_bytes: options.max_buffer_bytes,
            memory_bytes: options.memory_bytes,
            allocated: AtomicU64::new(0),
        }
    }

    pub(super) fn call(&self, call: Call) -> Result<(), DeviceError> {
        self.faults.check(call)
    }

    /// Records what happened to a piece of work.
    pub(super) fn note(&self, call: Call, stage: Stage, bytes: usize) {
        if let Some(events) = &self.events {
            events.add(&self.id, call, stage, bytes);
        }
    }

    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::SeqCst)
    }

    pub(super) fn foreign(&self, what: &'static str) -> DeviceError {
        DeviceError::Foreign {
            device: self.id.clone(),
            what,
        }
    }

    /// The device's own memory behind a buffer.
    pub(super) fn own<'b>(
        self: &Arc<Self>,
        buffer: &'b Buffer,
        what: &'static str,
    ) -> Result<&'b SimulatedMemory, DeviceError> {
        buffer
            .downcast::<SimulatedMemory>()
            .filter(|memory| Arc::ptr_eq(&memory.device, self))
            .ok_or_else(|| self.foreign(what))
    }

    fn reserve(&self, what: &str, bytes: usize) -> Result<(), DeviceError> {
        let most = self.memory_bytes.unwrap_or(u64::MAX);
        let fits = |used: u64| used.checked_add(bytes as u64).filter(|&used| used <= most);
        let order = Ordering::SeqCst;
        if bytes > self.max_buffer_bytes || self.allocated.fetch_update(order, order, fits).is_err()
        {
            return Err(DeviceError::OutOfMemory {
                device: self.id.clone(),
                what: what.to_owned(),
                requested: bytes,
            });
        }
        Ok(())
    }
}

/// What memory holds.
#[derive(Debug)]
pub(super) enum Contents {
    /// Bytes that the queue reads and writes.
    Plain(Mutex<Vec<u8>>),
    /// A weight, which only programs read.
    Prepared(Vec<u8>),
}

impl Contents {
    pub(super) fn plain(bytes: Vec<u8>) -> Self {
        Self::Plain(Mutex::new(bytes))
    }
}

/// Memory that belongs to one device.
#[derive(Debug)]
pub(super) struct SimulatedMemory {
    device: Arc<Device>,
    len: usize,
    contents: Contents,
}

impl SimulatedMemory {
    pub(super) fn new(
        device: &Arc<Device>,
        what: &str,
        contents: Contents,
    ) -> Result<Self, DeviceError> {
        let len = match &contents {
            Contents::Plain(bytes) => bytes.lock().unwrap_or_else(PoisonError::into_inner).len(),
            Contents::Prepared(bytes) => bytes.len(),
        };
        device.reserve(what, len)?;
        Ok(Self {
            device: device.clone(),
            len,
            contents,
        })
    }

    /// Whether this is a weight that only programs read.
    pub(super) fn is_prepared(&self) -> bool {
        matches!(self.contents, Contents::Prepared(_))
    }

    /// The checked range of `len` bytes from `offset` on.
    pub(super) fn range(
        &self,
        what: &'static str,
        offset: usize,
        len: usize,
    ) -> Result<Range<usize>, DeviceError> {
        match offset.checked_add(len).filter(|&end| end <= self.len) {
            Some(end) => Ok(offset..end),
            None => Err(DeviceError::OutOfRange {
                device: self.device.id.clone(),
                what,
                offset,
                len,
                buffer_len: self.len,
            }),
        }
    }

    /// Calls `read` with all bytes.
    pub(super) fn read<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        match &self.contents {
            Contents::Plain(bytes) => read(&bytes.lock().unwrap_or_else(PoisonError::into_inner)),
            Contents::Prepared(bytes) => read(bytes),
        }
    }

    /// Calls `write` with all bytes; a prepared weight is refused.
    pub(super) fn write<T>(
        &self,
        what: &'static str,
        write: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, DeviceError> {
        match &self.contents {
            Contents::Plain(bytes) => Ok(write(
                &mut bytes.lock().unwrap_or_else(PoisonError::into_inner),
            )),
            Contents::Prepared(_) => Err(self.device.foreign(what)),
        }
    }
}

impl Drop for SimulatedMemory {
    fn drop(&mut self) {
        self.device
            .allocated
            .fetch_sub(self.len as u64, Ordering::SeqCst);
    }
}

impl DeviceMemory for SimulatedMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
