//! Scratch memory that all programs of a device share. Its queue runs one program at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::buffer::OutOfHostMemory;
use crate::memory::Block;

/// Scratch memory, as large as the most demanding program needs.
pub(crate) struct Scratch(Mutex<Arc<Block>>);

/// The scratch memory of a device. It is freed when no program uses it.
#[derive(Default)]
pub(crate) struct DeviceScratch(Mutex<Weak<Scratch>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The contents are replaced as a whole, so a panic leaves nothing half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scratch {
    /// The memory, for a run.
    pub(crate) fn block(&self) -> Arc<Block> {
        lock(&self.0).clone()
    }
}

impl DeviceScratch {
    /// Scratch memory of at least `bytes` bytes, and the bytes that it grew by.
    pub(crate) fn at_least(&self, bytes: usize) -> Result<(Arc<Scratch>, usize), OutOfHostMemory> {
        let mut shared = lock(&self.0);
        let Some(scratch) = shared.upgrade() else {
            let scratch = Arc::new(Scratch(Mutex::new(Arc::new(Block::zeroed(bytes)?))));
            *shared = Arc::downgrade(&scratch);
            return Ok((scratch, bytes));
        };
        let before = scratch.block().len();
        if before < bytes {
            *lock(&scratch.0) = Arc::new(Block::zeroed(bytes)?);
        }
        Ok((scratch, bytes.saturating_sub(before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_memory_is_shared_and_grows_to_the_largest_need() {
        let shared = DeviceScratch::default();
        let (small, grown) = shared.at_least(100).unwrap();
        assert_eq!((small.block().len(), grown), (100, 100));
        let (large, grown) = shared.at_least(300).unwrap();
        assert_eq!(
            (small.block().len(), large.block().len(), grown),
            (300, 300, 200)
        );
        let (_, grown) = shared.at_least(200).unwrap();
        assert_eq!((small.block().len(), grown), (300, 0));
        drop((small, large));
        let (fresh, grown) = shared.at_least(10).unwrap();
        assert_eq!((fresh.block().len(), grown), (10, 10));
    }
}
