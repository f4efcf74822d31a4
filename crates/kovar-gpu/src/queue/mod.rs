//! The one in-order queue of a GPU.
//!
//! Calls append commands. `engine` gathers them into submissions, `ring` holds the bytes of writes
//! until the device has read them, `bytes` moves ranges that begin or end within words, and
//! `progress` holds the poll thread's state. Every submission ends by writing a number, its end
//! mark, which the poll thread checks, because not every API reports failed work.

mod bytes;
mod engine;
mod launch;
mod progress;
mod ring;
#[cfg(test)]
mod tests;
mod transfer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kovar_core::backend::{Buffer, Fence, Program, Queue, ReadTicket};
use kovar_core::error::DeviceError;

pub(crate) use self::engine::{Engine, QueueOptions};
pub(crate) use self::launch::Launch;
pub(crate) use self::progress::{Failure, Reported};
use self::transfer::Reading;
use crate::backend::GpuState;
use crate::memory::GpuMemory;
use crate::profile::DispatchTime;
use crate::program::GpuProgram;

/// The queue of a GPU as one of its users sees it.
pub(crate) struct GpuQueue {
    shared: Arc<GpuState>,
    /// The timed dispatches since the profile began, on the device's clock.
    profile: Mutex<Option<Vec<DispatchTime>>>,
}

/// A read in flight.
struct Ticket {
    shared: Arc<GpuState>,
    reading: Reading,
}

impl ReadTicket for Ticket {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        let Self { shared, reading } = *self;
        let len = reading.len;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| DeviceError::OutOfMemory {
                device: shared.info.id.clone(),
                what: "a read".to_owned(),
                requested: len,
            })?;
        bytes.resize(len, 0);
        let read = reading.finish(&shared.reported, &mut bytes);
        read.map_err(|failure| shared.failure(failure))?;
        Ok(bytes)
    }
}

impl GpuQueue {
    pub(crate) fn new(shared: Arc<GpuState>) -> Self {
        Self {
            shared,
            profile: Mutex::new(None),
        }
    }

    /// The timed dispatches so far; `None` while launches are not timed.
    pub(crate) fn profile(&self) -> MutexGuard<'_, Option<Vec<DispatchTime>>> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If launches are timed, runs the launch dispatch by dispatch. Returns whether it did.
    fn launch_timed(&self, launch: Launch<'_>) -> Result<bool, DeviceError> {
        let mut profile = self.profile();
        let Some(dispatches) = profile.as_mut() else {
            return Ok(false);
        };
        let timed = self.done(self.shared.engine.launch_timed(launch))?;
        let times = timed.iter().zip(launch.dispatches);
        dispatches.extend(times.map(|(timed, dispatch)| DispatchTime {
            op: dispatch.op,
            kernel: dispatch.kernel,
            node: dispatch.node,
            start: timed.start,
            nanoseconds: timed.end.saturating_sub(timed.start),
        }));
        Ok(true)
    }

    /// The memory to read, and where the checked range begins in its buffer.
    fn source<'b>(
        &self,
        what: &'static str,
        buffer: &'b Buffer,
        offset: usize,
        len: usize,
    ) -> Result<(&'b GpuMemory, u64), DeviceError> {
        let memory = self.shared.memory(buffer, what)?;
        let range = buffer.range(&self.shared.info.id, what, offset, len)?;
        Ok((memory, memory.start + range.start as u64))
    }

    /// The memory to write, likewise. Imported memory and weights are read-only.
    fn target<'b>(
        &self,
        what: &'static str,
        buffer: &'b Buffer,
        offset: usize,
        len: usize,
    ) -> Result<(&'b GpuMemory, u64), DeviceError> {
        let (memory, at) = self.source(what, buffer, offset, len)?;
        if !memory.writable {
            return Err(self.shared.foreign(what));
        }
        Ok((memory, at))
    }

    fn done<T>(&self, done: Result<T, Failure>) -> Result<T, DeviceError> {
        done.map_err(|failure| self.shared.failure(failure))
    }

    fn reading(&self, buffer: &Buffer, offset: usize, len: usize) -> Result<Reading, DeviceError> {
        let (memory, at) = self.source("read", buffer, offset, len)?;
        self.done(self.shared.engine.read(&memory.buffer, at, len))
    }

    /// The launch of a program of this device, with checked scalars.
    fn launched<'p>(
        &self,
        program: &'p dyn Program,
        scalars: &'p [i32],
    ) -> Result<Launch<'p>, DeviceError> {
        let program = program
            .as_any()
            .downcast_ref::<GpuProgram>()
            .filter(|program| program.is_of(&self.shared))
            .ok_or_else(|| self.shared.foreign("launch"))?;
        program.launch(scalars)
    }
}

impl Queue for GpuQueue {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let (memory, at) = self.target("write", buffer, offset, bytes.len())?;
        self.done(self.shared.engine.write(&memory.buffer, at, bytes))
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        Ok(Box::new(Ticket {
            shared: self.shared.clone(),
            reading: self.reading(buffer, offset, len)?,
        }))
    }

    fn read_into(
        &self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let reading = self.reading(buffer, offset, bytes.len())?;
        self.done(reading.finish(&self.shared.reported, bytes))
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        let (source, from) = self.source("copy", from, from_offset, len)?;
        let (target, to) = self.target("copy", to, to_offset, len)?;
        let engine = &self.shared.engine;
        self.done(engine.copy((&source.buffer, from), (&target.buffer, to), len as u64))
    }

    fn fill(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), DeviceError> {
        let (memory, at) = self.target("fill", buffer, offset, len)?;
        let engine = &self.shared.engine;
        self.done(engine.fill(&memory.buffer, at, len as u64, byte))
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        let launch = self.launched(program, scalars)?;
        if self.launch_timed(launch)? {
            return Ok(());
        }
        self.done(self.shared.engine.launch(launch, None).map(|_| ()))
    }

    fn launch_while(
        &self,
        program: &dyn Program,
        scalars: &[i32],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, DeviceError> {
        let launch = self.launched(program, scalars)?;
        if self.profile().is_some() {
            if !go_on() {
                return Ok(false);
            }
            if self.launch_timed(launch)? {
                return Ok(true);
            }
        }
        self.done(self.shared.engine.launch(launch, Some(go_on)))
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        self.done(self.shared.engine.fence().map(Fence))
    }

    fn wait(&self, fence: Fence) -> Result<(), DeviceError> {
        self.done(self.shared.engine.wait(fence.0, &self.shared.reported))
    }
}
