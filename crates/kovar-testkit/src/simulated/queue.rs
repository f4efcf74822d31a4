//! The queue of a simulated device.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kovar_core::backend::{Buffer, Fence, Program, Queue, ReadTicket};
use kovar_core::error::DeviceError;

use super::events::Stage;
use super::faults::Call;
use super::memory::Device;
use super::program::SimulatedProgram;

/// Clones are the same queue.
#[derive(Clone, Debug)]
pub(super) struct SimulatedQueue {
    device: Arc<Device>,
    work: Arc<Mutex<WorkList>>,
}

/// A piece of work. It gets the first error of the work before it, and leaves its own.
type Work = Box<dyn FnOnce(&mut Option<DeviceError>) + Send>;

#[derive(Default)]
struct WorkList {
    queued: u64,
    waiting: VecDeque<Work>,
    /// The first error of work done, until a wait takes it.
    error: Option<DeviceError>,
}

impl fmt::Debug for WorkList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkList")
            .field("queued", &self.queued)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

/// A checked range of a buffer.
struct Region {
    memory: SimulatedMemory,
    range: Range<usize>,
}

impl Region {
    fn with<T>(self, access: impl FnOnce(&mut [u8]) -> T) -> T {
        self.memory.with(|bytes| access(&mut bytes[self.range]))
    }
}

/// What a read left, once it is done.
type Slot = Arc<Mutex<Option<Result<Vec<u8>, DeviceError>>>>;

struct Ticket {
    queue: SimulatedQueue,
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
    /// The range of a buffer that the queue can read and write.
    fn range(
        &self,
        what: &'static str,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Range<usize>, DeviceError> {
        if self.device.own(buffer, what)?.is_prepared() {
            return Err(self.device.foreign(what));
        }
        buffer.range(&self.device.id, what, offset, len)
    }

    /// Queues `work` after all work before it. Work after failed work does not run; the error comes
    /// back from a wait.
    fn enqueue(
        &self,
        call: Call,
        bytes: usize,
        work: impl FnOnce() -> Result<(), DeviceError> + Send + 'static,
    ) -> Result<(), DeviceError> {
        let device = &self.device;
        device.faults.queue(call)?;
        if device.is_idle() {
            return device.faults.call(call);
        }
        device.note(call, Stage::Queued, bytes);
        let device = device.clone();
        self.push(Box::new(move |error| {
            let called = device.faults.call(call);
            let done = called.and_then(|()| if error.is_some() { Ok(()) } else { work() });
            if let Err(failed) = done {
                error.get_or_insert(failed);
            }
            device.note(call, Stage::Done, bytes);
        }));
        Ok(())
    }

    fn push(&self, work: Work) {
        let mut list = lock(&self.work);
        list.queued += 1;
        list.waiting.push_back(work);
        drop(list);
        if !self.device.options.deferred {
            self.finish();
        }
    }

    /// Does all work.
    fn finish(&self) {
        let mut list = lock(&self.work);
        while let Some(work) = list.waiting.pop_front() {
            work(&mut list.error);
        }
    }
}

impl Queue for SimulatedQueue {
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let range = self.0.range("write", buffer, offset, bytes.len())?;
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
        let range = self.0.range("read", buffer, offset, len)?;
        let slot = Slot::default();
        let (queue, left) = (self.clone(), slot.clone());
        if device.is_idle() {
            device.faults.call(Call::Read)?;
            *lock(&left) = Some(Ok(vec![0; len]));
            return Ok(Box::new(Ticket { queue, slot }));
        }
        device.note(Call::Read, Stage::Queued, len);
        self.push(Box::new(move |error| {
            let called = device.faults.call(Call::Read);
            // An error of the work before it comes back with the bytes.
            let read = error.take().map_or(called, Err);
            *lock(&left) = Some(read.map(|()| from.with(|bytes| bytes.to_vec())));
            device.note(Call::Read, Stage::Done, len);
        }));
        Ok(Box::new(Ticket { queue, slot }))
    }

    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError> {
        let source_range = self.0.range("copy", from, from_offset, len)?;
        let target_range = self.0.range("copy", to, to_offset, len)?;
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
        let range = self.0.range("fill", buffer, offset, len)?;
        let (device, buffer) = (self.0.device.clone(), buffer.clone());
        self.0.enqueue(Call::Fill, len, move || {
            let memory = device.own(&buffer, "fill")?;
            memory.write("fill", |all| all[range].fill(byte))
        });
        Ok(())
    }

    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError> {
        let program = program.as_any().downcast_ref::<SimulatedProgram>();
        let program = program.ok_or_else(|| self.device.foreign("launch"))?;
        program.check(&self.device, scalars)?;
        let (program, scalars) = (program.clone(), scalars.to_vec());
        self.enqueue(Call::Launch, 0, move || program.run(&scalars))
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        self.device.faults.call(Call::Fence)?;
        Ok(Fence(lock(&self.work).queued))
    }

    fn wait(&self, _fence: Fence) -> Result<(), DeviceError> {
        self.device.faults.call(Call::Wait)?;
        self.finish();
        lock(&self.work).error.take().map_or(Ok(()), Err)
    }
}
