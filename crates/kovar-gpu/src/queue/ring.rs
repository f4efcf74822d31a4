//! The upload ring: host memory that uploads are staged in. Chunks are filled while they are
//! mapped, belong to the submission that reads them, and are free again when it has ended.

use std::sync::Arc;
use std::thread;

use super::engine::{Engine, Order};
use super::progress::Failure;
use crate::seam::{Buffer, BufferUse, SeamError};

/// Chunks for parameters and short writes, and chunks for longer writes. A chunk is in use until
/// its submission has ended, even if it is not full, so short writes have chunks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Short = 0,
    Long = 1,
}

/// A buffer of upload memory.
#[derive(Debug)]
pub(super) struct Chunk {
    pub buffer: Arc<dyn Buffer>,
    pub class: Class,
    /// Bytes filled, a multiple of [`ALIGN`].
    used: u64,
}

/// The fewest bytes that a thread copies, and the largest number of threads.
const MIN_THREAD_BYTES: usize = 2 << 20;
const MAX_THREADS: usize = 8;

/// Positions in a chunk are multiples of this.
const ALIGN: u64 = 8;

impl Chunk {
    pub fn emptied(self) -> Self {
        Self { used: 0, ..self }
    }

    pub fn is_used(&self) -> bool {
        self.used > 0
    }

    fn room(&self) -> u64 {
        self.buffer.len() & !(ALIGN - 1)
    }
}

/// Staged bytes in a chunk.
pub(super) struct Staged {
    pub buffer: Arc<dyn Buffer>,
    pub offset: u64,
    pub len: usize,
}

impl Engine {
    /// Copies bytes into the ring: all of a short write, else as many bytes as the open chunk has
    /// room for. Waits only if all chunks are in use.
    pub(super) fn stage(&self, order: &mut Order, bytes: &[u8]) -> Result<Staged, Failure> {
        let len = bytes.len() as u64;
        let class = if len <= self.options.short_chunk / 4 {
            Class::Short
        } else {
            Class::Long
        };
        let needed = match class {
            Class::Short => len.max(1),
            Class::Long => ALIGN,
        };
        let open = order.open[class as usize].take();
        let mut chunk = match open {
            Some(chunk) if chunk.room() - chunk.used >= needed => chunk,
            full => {
                order.full.extend(full);
                self.chunk(order, class)?
            }
        };
        let offset = chunk.used;
        let taken = len.min(chunk.room() - offset);
        let put = self.put(&chunk.buffer, offset, &bytes[..taken as usize]);
        chunk.used = (offset + taken).next_multiple_of(ALIGN).min(chunk.room());
        let staged = Staged {
            buffer: chunk.buffer.clone(),
            offset,
            len: taken as usize,
        };
        order.open[class as usize] = Some(chunk);
        put.map_err(|error| self.failure(order, "an upload", error))?;
        Ok(staged)
    }

    /// Copies bytes into a mapped chunk. Long copies use several threads, because the pages of a
    /// mapped file are loaded as they are read.
    fn put(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), SeamError> {
        let threads = (bytes.len() / MIN_THREAD_BYTES).min(MAX_THREADS);
        let threads = match threads {
            0 | 1 => 1,
            _ => thread::available_parallelism()
                .map_or(1, usize::from)
                .min(threads),
        };
        let share = bytes
            .len()
            .div_ceil(threads)
            .next_multiple_of(ALIGN as usize);
        if bytes.len() <= share {
            return self.device.put(buffer, offset, bytes);
        }
        let shares = bytes.chunks(share).zip((offset..).step_by(share));
        thread::scope(|scope| {
            let device = self.device.as_ref();
            let puts: Vec<_> = shares
                .map(|(share, offset)| scope.spawn(move || device.put(buffer, offset, share)))
                .collect();
            let mut all = Ok(());
            for put in puts {
                let panicked = |_| SeamError::Lost {
                    reason: "mapped memory could not be written".to_owned(),
                };
                all = all.and(put.join().map_err(panicked).and_then(|put| put));
            }
            all
        })
    }

    /// An empty chunk.
    fn chunk(&self, order: &mut Order, class: Class) -> Result<Chunk, Failure> {
        let (bytes, limit) = match class {
            Class::Short => (self.options.short_chunk, self.options.short_chunks),
            Class::Long => (self.options.long_chunk, self.options.long_chunks),
        };
        let exist = {
            let mut done = self.progress.lock();
            if let Some(chunk) = done.free[class as usize].pop() {
                return Ok(chunk);
            }
            done.chunks[class as usize]
        };
        if exist < limit.max(1) {
            match self.device.create_buffer(bytes, BufferUse::Upload) {
                Ok(buffer) => {
                    self.progress.lock().chunks[class as usize] += 1;
                    return Ok(Chunk {
                        buffer,
                        class,
                        used: 0,
                    });
                }
                Err(SeamError::OutOfMemory { .. }) if exist > 0 => {}
                Err(error) => return Err(self.failure(order, "the upload ring", error)),
            }
        }
        // Filled chunks are free again when their submission has ended.
        self.flush(order, "an upload")?;
        self.progress.wait_chunk(class)
    }
}
