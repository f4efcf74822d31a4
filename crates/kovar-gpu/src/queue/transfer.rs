//! Writes, fills, copies and reads.

use std::sync::Arc;

use super::bytes::{Place, split};
use super::engine::{Engine, Pending};
use super::progress::{Failure, Progress, Reported};
use crate::seam::{Buffer, BufferUse, Device, SeamError};

/// The largest readback buffer, in bytes.
const MAX_READBACK: u64 = 64 << 20;

/// The smallest one, in bytes.
const MIN_READBACK: u64 = 4 << 10;

/// A range of a read, with the buffer that it is copied to.
struct Readback {
    buffer: Arc<dyn Buffer>,
    /// Bytes before the first one asked for.
    skip: u64,
    len: usize,
}

/// A read in flight.
pub(crate) struct Reading {
    progress: Arc<Progress>,
    device: Arc<dyn Device>,
    /// Bytes of readback buffers that are kept.
    keep: u64,
    number: u64,
    readbacks: Vec<Readback>,
    pub len: usize,
}

impl Engine {
    /// Copies bytes to the device.
    pub(crate) fn write(
        &self,
        to: &Arc<dyn Buffer>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let mut order = self.enter()?;
        let (head, whole, _) = split(offset, bytes.len() as u64);
        let (head, rest) = bytes.split_at(head as usize);
        let (mut whole, tail) = rest.split_at(whole as usize);
        let mut place = Place { buffer: to, offset };
        self.patch(&mut order, place, head)?;
        place.offset += head.len() as u64;
        while !whole.is_empty() {
            let staged = self.stage(&mut order, whole)?;
            let copy = Pending::Copy {
                from: staged.buffer,
                from_offset: staged.offset,
                to: to.clone(),
                to_offset: place.offset,
                len: staged.len as u64,
            };
            self.push(&mut order, "a write", copy)?;
            place.offset += staged.len as u64;
            whole = &whole[staged.len..];
            if !whole.is_empty() {
                // The chunk is full: the device may have it while the next one is filled.
                self.flush(&mut order, "a write")?;
            }
        }
        self.patch(&mut order, place, tail)
    }

    /// Sets bytes to `byte`.
    pub(crate) fn fill(
        &self,
        to: &Arc<dyn Buffer>,
        offset: u64,
        len: u64,
        byte: u8,
    ) -> Result<(), Failure> {
        let mut order = self.enter()?;
        self.fill_bytes(&mut order, Place { buffer: to, offset }, len, byte)
    }

    /// Copies bytes on the device.
    pub(crate) fn copy(
        &self,
        from: (&Arc<dyn Buffer>, u64),
        to: (&Arc<dyn Buffer>, u64),
        len: u64,
    ) -> Result<(), Failure> {
        let mut order = self.enter()?;
        let place = |(buffer, offset)| Place { buffer, offset };
        self.copy_bytes(&mut order, place(from), place(to), len)
    }

    /// Queues copies of bytes to the host.
    pub(crate) fn read(
        &self,
        from: &Arc<dyn Buffer>,
        offset: u64,
        len: usize,
    ) -> Result<Reading, Failure> {
        let mut order = self.enter()?;
        let failed = |error| Failure {
            number: 0,
            what: "a read",
            error,
        };
        let end = offset + len as u64;
        let mut readbacks = Vec::new();
        let mut copies = Vec::new();
        let mut at = offset;
        while at < end {
            let start = at & !3;
            let stop = end.next_multiple_of(4).min(start + MAX_READBACK);
            let buffer = self.readback(stop - start).map_err(failed)?;
            copies.push(Pending::Copy {
                from: from.clone(),
                from_offset: start,
                to: buffer.clone(),
                to_offset: 0,
                len: stop - start,
            });
            readbacks.push(Readback {
                buffer,
                skip: at - start,
                len: (stop.min(end) - at) as usize,
            });
            at = stop;
        }
        // All in one submission: the buffers are mapped after the submission that writes them.
        for (copy, readback) in copies.into_iter().zip(&readbacks) {
            order.pending.push(copy);
            order.readbacks.push(readback.buffer.clone());
        }
        let number = self.flush(&mut order, "a read")?;
        Ok(Reading {
            progress: self.progress.clone(),
            device: self.device.clone(),
            keep: self.options.readback,
            number,
            readbacks,
            len,
        })
    }

    /// A readback buffer of at least `bytes` bytes.
    fn readback(&self, bytes: u64) -> Result<Arc<dyn Buffer>, SeamError> {
        let size = bytes.next_power_of_two().max(MIN_READBACK);
        let mut done = self.progress.lock();
        let kept = done.readbacks.iter().position(|kept| kept.len() == size);
        if let Some(at) = kept {
            return Ok(done.readbacks.swap_remove(at));
        }
        drop(done);
        self.device.create_buffer(size, BufferUse::Readback)
    }
}

impl Reading {
    /// Waits for the bytes. `into` has the length of the read; errors are reported to the user of
    /// `reported`.
    pub(crate) fn finish(self, reported: &Reported, into: &mut [u8]) -> Result<(), Failure> {
        self.progress.wait_for_bytes(self.number, reported)?;
        let failed = |error| Failure {
            number: self.number,
            what: "a read",
            error,
        };
        let mut rest = into;
        for readback in &self.readbacks {
            let (bytes, after) = rest.split_at_mut(readback.len.min(rest.len()));
            self.device
                .get(&readback.buffer, readback.skip, bytes)
                .map_err(failed)?;
            rest = after;
        }
        for Readback { buffer, .. } in self.readbacks {
            self.device.unmap(&buffer).map_err(failed)?;
            let mut done = self.progress.lock();
            let kept: u64 = done.readbacks.iter().map(|kept| kept.len()).sum();
            if kept + buffer.len() <= self.keep {
                done.readbacks.push(buffer);
            }
        }
        Ok(())
    }
}
