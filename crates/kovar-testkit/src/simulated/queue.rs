//! The queue of a simulated device.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kovar_core::backend::{Buffer, Fence, Program, Queue, ReadTicket};
use kovar_core::error::DeviceError;

use super::events::Stage;
use super::faults::Call;
use super::memory::{Device, SimulatedMemory};
use super::program::SimulatedProgram;

#[derive(Debug)]
pub(super) struct SimulatedQueue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    device: Arc<Device>,
    /// Whether work runs when something waits for it.
    deferred: bool,
    state: Mutex<State>,
}

/// A piece of work. It gets the first error of the work before it, and leaves its own.
type Work = Box<dyn FnOnce(&mut Option<DeviceError>) + Send>;

#[derive(Default)]
struct State {
    queued: u64,
    work: VecDeque<Work>,
    /// The first error of work done, until a wait takes it.
    pending: Option<DeviceError>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("queued", &self.queued)
            .field("waiting", &self.work.len())
            .finish_non_exhaustive()
    }
}

/// What a read left, once it is done.
type Slot = Arc<Mutex<Option<Result<Vec<u8>, DeviceError>>>>;

struct Ticket {
    queue: Arc<Shared>,
    slot: Slot,
}

impl ReadTicket for Ticket {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        self.queue.finish();
        let read = lock(&self.slot).take();
        read.unwrap_or_else(|| Ok(Vec::new()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
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

    /// Queues `work` behind all work before it; its error waits for a wait. Work behind failed work
    /// is void.
    fn enqueue(
        &self,
        call: Call,
        bytes: usize,
        work: impl FnOnce() -> Result<(), DeviceError> + Send + 'static,
    ) {
        let device = self.device.clone();
        device.note(call, Stage::Queued, bytes);
        self.push(Box::new(move |pending| {
            let done = device.call(call);
            if let Err(error) = done.and_then(|()| match pending {
                Some(_) => Ok(()),
                None => work(),
            }) {
                pending.get_or_insert(error);
            }
            device.note(call, Stage::Done, bytes);
        }));
    }

    fn push(&self, work: Work) {
        let mut state = lock(&self.state);
        state.queued += 1;
        state.work.push_back(work);
        drop(state);
        if !self.deferred {
            self.finish();
        }
    }

    /// Does all work.
    fn finish(&self) {
        let mut state = lock(&self.state);
        while let Some(work) = state.work.pop_front() {
            work(&mut state.pending);
        }
    }
}

impl SimulatedQueue {
    pub(super) fn new(device: Arc<Device>, deferred: bool) -> Self {
        Self(Arc::new(Shared {
            device,
            deferred,
            state: Mutex::default(),
        }))
    }
}

impl Queue for SimulatedQueue {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let memory = self.0.plain(buffer, "write")?;
        let range = memory.range("write", offset, bytes.len())?;
        let (device, buffer, bytes) = (self.0.device.clone(), buffer.clone(), bytes.to_vec());
        self.0.enqueue(Call::Write, bytes.len(), move || {
            let memory = device.own(&buffer, "write")?;
            memory.write("write", |all| all[range].copy_from_slice(&bytes))
        });
        Ok(())
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        let memory = self.0.plain(buffer, "read")?;
        let range = memory.range("read", offset, len)?;
        let slot = Slot::default();
        let (device, buffer, left) = (self.0.device.clone(), buffer.clone(), slot.clone());
        device.note(Call::Read, Stage::Queued, len);
        self.0.push(Box::new(move |pending| {
            let called = device.call(Call::Read);
            // An error of the work before it comes back with the bytes.
            let read = match pending.take() {
                Some(error) => Err(error),
                None => called.and_then(|()| {
                    let memory = device.own(&buffer, "read")?;
                    Ok(memory.read(|all| all[range].to_vec()))
                }),
            };
            *lock(&left) = Some(read);
            device.note(Call::Read, Stage::Done, len);
        }));
        Ok(Box::new(Ticket {
            queue: self.0.clone(),
            slot,
        }))
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        let source_range = self
            .0
            .plain(from, "copy")?
            .range("copy", from_offset, len)?;
        let target_range = self.0.plain(to, "copy")?.range("copy", to_offset, len)?;
        let (device, from, to) = (self.0.device.clone(), from.clone(), to.clone());
        self.0.enqueue(Call::Copy, len, move || {
            let source = device.own(&from, "copy")?;
            let bytes = source.read(|all| all[source_range].to_vec());
            let target = device.own(&to, "copy")?;
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
        let range = self.0.plain(buffer, "fill")?.range("fill", offset, len)?;
        let (device, buffer) = (self.0.device.clone(), buffer.clone());
        self.0.enqueue(Call::Fill, len, move || {
            let memory = device.own(&buffer, "fill")?;
            memory.write("fill", |all| all[range].fill(byte))
        });
        Ok(())
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        let program = program.as_any().downcast_ref::<SimulatedProgram>();
        let program = program.ok_or_else(|| self.0.device.foreign("launch"))?;
        program.check(&self.0.device, scalars)?;
        let (program, scalars) = (program.clone(), scalars.to_vec());
        self.0
            .enqueue(Call::Launch, 0, move || program.run(&scalars));
        Ok(())
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        self.0.device.call(Call::Fence)?;
        Ok(Fence(lock(&self.0.state).queued))
    }

    fn wait(&self, _fence: Fence) -> Result<(), DeviceError> {
        self.0.device.call(Call::Wait)?;
        self.0.finish();
        lock(&self.0.state).pending.take().map_or(Ok(()), Err)
    }
}
