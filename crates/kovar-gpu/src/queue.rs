//! The one in-order queue of a GPU.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kovar_core::backend::{Buffer, Fence, Program, Queue, ReadTicket};
use kovar_core::error::DeviceError;

use crate::backend::Shared;
use crate::memory::GpuMemory;
use crate::program::GpuProgram;
use crate::seam::{BufferUse, Command, Submission};

/// The one queue of a GPU.
pub(crate) struct GpuQueue {
    shared: Arc<Shared>,
    /// Held while work is queued; the last submission.
    last: Mutex<Option<Submission>>,
}

/// Bytes that were read.
struct Ready(Vec<u8>);

impl ReadTicket for Ready {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        Ok(self.0)
    }
}

impl GpuQueue {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            last: Mutex::new(None),
        }
    }

    fn enter(&self) -> MutexGuard<'_, Option<Submission>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(
        &self,
        what: &'static str,
        memory: &GpuMemory,
        offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        if offset.checked_add(len).is_some_and(|end| end <= memory.len) {
            return Ok(());
        }
        Err(DeviceError::OutOfRange {
            device: self.shared.info.id.clone(),
            what,
            offset,
            len,
            buffer_len: memory.len,
        })
    }

    fn submit(
        &self,
        last: &mut Option<Submission>,
        what: &str,
        commands: &[Command<'_>],
    ) -> Result<(), DeviceError> {
        let failed = |error| self.shared.failed(what, error);
        let recording = self.shared.device.record(commands).map_err(failed)?;
        *last = Some(self.shared.device.submit(vec![recording]).map_err(failed)?);
        Ok(())
    }

    /// Writes memory that the queue's users may not.
    pub(crate) fn upload(
        &self,
        memory: &GpuMemory,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let mut last = self.enter();
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        let device = &self.shared.device;
        device
            .write(&memory.buffer, offset as u64, &padded)
            .map_err(|error| self.shared.failed("a write", error))?;
        self.submit(&mut last, "a write", &[])
    }
}

impl Queue for GpuQueue {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let memory = self.shared.memory(buffer, "write")?;
        if !memory.writable {
            return Err(self.shared.foreign("write"));
        }
        self.check("write", memory, offset, bytes.len())?;
        self.upload(memory, offset, bytes)
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        let memory = self.shared.memory(buffer, "read")?;
        self.check("read", memory, offset, len)?;
        let device = &self.shared.device;
        let failed = |error| self.shared.failed("a read", error);
        let mut bytes = vec![0; len];
        let readback = device
            .create_buffer(len as u64, BufferUse::Readback)
            .map_err(failed)?;
        let mut last = self.enter();
        self.submit(
            &mut last,
            "a read",
            &[Command::Copy {
                from: &memory.buffer,
                from_offset: offset as u64,
                to: &readback,
                to_offset: 0,
                len: (len as u64).next_multiple_of(4),
            }],
        )?;
        device.read(&readback, &mut bytes).map_err(failed)?;
        Ok(Box::new(Ready(bytes)))
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        let source = self.shared.memory(from, "copy")?;
        let target = self.shared.memory(to, "copy")?;
        self.check("copy", source, from_offset, len)?;
        self.check("copy", target, to_offset, len)?;
        let mut last = self.enter();
        self.submit(
            &mut last,
            "a copy",
            &[Command::Copy {
                from: &source.buffer,
                from_offset: from_offset as u64,
                to: &target.buffer,
                to_offset: to_offset as u64,
                len: len as u64,
            }],
        )
    }

    fn fill(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), DeviceError> {
        let memory = self.shared.memory(buffer, "fill")?;
        self.check("fill", memory, offset, len)?;
        self.upload(memory, offset, &vec![byte; len])
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        let program = program
            .as_any()
            .downcast_ref::<GpuProgram>()
            .filter(|program| program.is_of(&self.shared))
            .ok_or_else(|| self.shared.foreign("launch"))?;
        let written = program.scalars(scalars)?;
        let mut last = self.enter();
        if let Some(buffer) = written {
            let device = &self.shared.device;
            device
                .write(buffer, 0, bytemuck::cast_slice(scalars))
                .map_err(|error| self.shared.failed("a launch", error))?;
        }
        self.submit(&mut last, "a launch", &program.commands())
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        Ok(Fence(self.enter().map_or(0, |last| last.0)))
    }

    fn wait(&self, fence: Fence) -> Result<(), DeviceError> {
        if self.enter().is_none() {
            return Ok(());
        }
        let waited = self.shared.device.wait(Submission(fence.0));
        waited.map_err(|error| self.shared.failed("waiting", error))
    }
}
