//! The queue of a simulated device.

use std::sync::{Arc, Mutex, PoisonError};

use kovar_core::backend::{Buffer, Fence, Program, Queue, ReadTicket};
use kovar_core::error::DeviceError;

use super::faults::Call;
use super::memory::{Device, SimulatedMemory};
use super::program::SimulatedProgram;

#[derive(Debug)]
pub(super) struct SimulatedQueue {
    device: Arc<Device>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queued: u64,
    /// The first error of work in flight, until a wait takes it.
    pending: Option<DeviceError>,
}

struct Ticket(Result<Vec<u8>, DeviceError>);

impl ReadTicket for Ticket {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        self.0
    }
}

impl SimulatedQueue {
    pub(super) fn new(device: Arc<Device>) -> Self {
        Self {
            device,
            state: Mutex::default(),
        }
    }

    /// Memory that the queue can read and write.
    fn plain<'b>(
        &self,
        buffer: &'b Buffer,
        what: &'static str,
    ) -> Result<&'b SimulatedMemory, DeviceError> {
        let memory = self.device.own(buffer, what)?;
        if memory.is_prepared() {
            return Err(self.device.foreign(what));
        }
        Ok(memory)
    }

    /// Runs `work` behind all work before it; its error waits for a wait.
    fn enqueue(&self, call: Call, work: impl FnOnce() -> Result<(), DeviceError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.queued += 1;
        let done = self.device.call(call).and_then(|()| match state.pending {
            // Work behind failed work is void.
            Some(_) => Ok(()),
            None => work(),
        });
        if let Err(error) = done {
            state.pending.get_or_insert(error);
        }
    }

    fn take_error(&self) -> Result<(), DeviceError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pending.take().map_or(Ok(()), Err)
    }
}

impl Queue for SimulatedQueue {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let memory = self.plain(buffer, "write")?;
        let range = memory.range("write", offset, bytes.len())?;
        self.enqueue(Call::Write, || {
            memory.write("write", |all| all[range].copy_from_slice(bytes))
        });
        Ok(())
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        let memory = self.plain(buffer, "read")?;
        let range = memory.range("read", offset, len)?;
        let mut bytes = Vec::new();
        self.enqueue(Call::Read, || {
            bytes = memory.read(|all| all[range].to_vec());
            Ok(())
        });
        Ok(Box::new(Ticket(self.take_error().map(|()| bytes))))
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        let (source, target) = (self.plain(from, "copy")?, self.plain(to, "copy")?);
        let source_range = source.range("copy", from_offset, len)?;
        let target_range = target.range("copy", to_offset, len)?;
        self.enqueue(Call::Copy, || {
            let bytes = source.read(|all| all[source_range].to_vec());
            target.write("copy", |all| all[target_range].copy_from_slice(&bytes))
        });
        Ok(())
    }

    fn fill(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), DeviceError> {
        let memory = self.plain(buffer, "fill")?;
        let range = memory.range("fill", offset, len)?;
        self.enqueue(Call::Fill, || {
            memory.write("fill", |all| all[range].fill(byte))
        });
        Ok(())
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        let program = program.as_any().downcast_ref::<SimulatedProgram>();
        let program = program.ok_or_else(|| self.device.foreign("launch"))?;
        program.check(&self.device, scalars)?;
        self.enqueue(Call::Launch, || program.run(scalars));
        Ok(())
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        self.device.call(Call::Fence)?;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Fence(state.queued))
    }

    fn wait(&self, _fence: Fence) -> Result<(), DeviceError> {
        self.device.call(Call::Wait)?;
        self.take_error()
    }
}
