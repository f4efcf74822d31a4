//! The queue of a simulated device.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kovar_core::backend::{Buffer, Fence, Program, Queue, ReadTicket};
use kovar_core::error::DeviceError;

use super::events::Stage;
use super::faults::Call;
use super::memory::{Device, SimulatedMemory};
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

impl SimulatedQueue {
    pub(super) fn new(device: Arc<Device>) -> Self {
        Self {
            device,
            work: Arc::default(),
        }
    }

    /// A range of memory that the queue can read and write.
    fn region(
        &self,
        what: &'static str,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Region, DeviceError> {
        let memory = self.device.own(buffer, what)?;
        if memory.is_prepared() {
            return Err(self.device.foreign(what));
        }
        Ok(Region {
            memory: memory.clone(),
            range: buffer.range(&self.device.id(), what, offset, len)?,
        })
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
        let to = self.region("write", buffer, offset, bytes.len())?;
        let bytes = bytes.to_vec();
        self.enqueue(Call::Write, bytes.len(), move || {
            to.with(|to| to.copy_from_slice(&bytes));
            Ok(())
        })
    }

    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError> {
        let from = self.region("read", buffer, offset, len)?;
        let device = self.device.clone();
        device.faults.queue(Call::Read)?;
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
        let from = self.region("copy", from, from_offset, len)?;
        let to = self.region("copy", to, to_offset, len)?;
        self.enqueue(Call::Copy, len, move || {
            let bytes = from.with(|bytes| bytes.to_vec());
            to.with(|to| to.copy_from_slice(&bytes));
            Ok(())
        })
    }

    fn fill(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), DeviceError> {
        let to = self.region("fill", buffer, offset, len)?;
        self.enqueue(Call::Fill, len, move || {
            to.with(|bytes| bytes.fill(byte));
            Ok(())
        })
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
