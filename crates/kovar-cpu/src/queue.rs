//! The CPU device's queue. It is synchronous: a submission returns when its work is done, tickets
//! are ready at once, and errors come back from the call that caused them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kovar_core::backend::{Buffer, Fence, Program, Queue, ReadTicket};
use kovar_core::error::DeviceError;

use crate::backend::CpuState;
use crate::memory::CpuMemory;
use crate::program::CpuProgram;

/// The one queue of a CPU device. Its mutex makes every access to the device's memory exclusive.
pub(crate) struct CpuQueue {
    shared: Arc<CpuState>,
    /// Pieces of work done.
    done: Mutex<u64>,
}

/// Bytes that were read.
struct Ready(Vec<u8>);

impl ReadTicket for Ready {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        Ok(self.0)
    }
}

impl CpuQueue {
    pub(crate) fn new(shared: Arc<CpuState>) -> Self {
        Self {
            shared,
            done: Mutex::new(0),
        }
    }

    /// Takes the queue for a piece of work. A panic during earlier work left no half-written state
    /// in the mutex.
    fn enter(&self) -> MutexGuard<'_, u64> {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += 1;
        done
    }

    /// The address of a range that is read. Prepared weights have no plain bytes to read.
    fn source(
        &self,
        what: &'static str,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<*const u8, DeviceError> {
        let memory = self.shared.memory(buffer, what)?;
        if matches!(memory, CpuMemory::Weight(_)) {
            return Err(self.shared.foreign(what));
        }
        let range = buffer.range(&self.shared.info.id, what, offset, len)?;
        // SAFETY: the offset is inside the memory or at its end.
        Ok(unsafe { memory.bytes().0.add(range.start) })
    }

    /// The address of a range that is written. Imported memory and weights are read-only.
    fn target(
        &self,
        what: &'static str,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<*mut u8, DeviceError> {
        let memory = self.shared.memory(buffer, what)?;
        let (start, _) = memory.writable().ok_or_else(|| self.shared.foreign(what))?;
        let range = buffer.range(&self.shared.info.id, what, offset, len)?;
        // SAFETY: the offset is inside the memory or at its end.
        Ok(unsafe { start.add(range.start) })
    }
}

impl Queue for CpuQueue {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let to = self.target("write", buffer, offset, bytes.len())?;
        let _held = self.enter();
        // SAFETY: the range was checked, and the queue is held. The memory is the device's own,
        // so `bytes` does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        self.source("read", buffer, offset, len)?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| self.shared.out_of_memory("a read", len))?;
        bytes.resize(len, 0);
        self.read_into(buffer, offset, &mut bytes)?;
        Ok(Box::new(Ready(bytes)))
    }

    fn read_into(
        &self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let from = self.source("read", buffer, offset, bytes.len())?;
        let _held = self.enter();
        // SAFETY: the range was checked, and the queue is held. An exclusive borrow overlaps
        // neither the device's memory nor shared host bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        let source = self.source("copy", from, from_offset, len)?;
        let target = self.target("copy", to, to_offset, len)?;
        let _held = self.enter();
        // SAFETY: both ranges were checked, and the queue is held. Ranges of one buffer that
        // overlap against the contract are copied as if through another buffer.
        unsafe { std::ptr::copy(source, target, len) };
        Ok(())
    }

    fn fill(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), DeviceError> {
        let to = self.target("fill", buffer, offset, len)?;
        let _held = self.enter();
        // SAFETY: the range was checked, and the queue is held.
        unsafe { std::ptr::write_bytes(to, byte, len) };
        Ok(())
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        let program = program
            .as_any()
            .downcast_ref::<CpuProgram>()
            .filter(|program| program.is_of(&self.shared))
            .ok_or_else(|| self.shared.foreign("launch"))?;
        let _held = self.enter();
        // SAFETY: the queue is held, and all access to the device's memory goes through it.
        unsafe { program.run(scalars) }
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        Ok(Fence(*self.enter()))
    }

    fn wait(&self, fence: Fence) -> Result<(), DeviceError> {
        let _ = fence;
        Ok(())
    }
}
