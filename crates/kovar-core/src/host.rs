//! Host memory that outlives the call that hands it over.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// An owner of read-only host bytes: a memory-mapped file or an owned buffer.
pub trait HostMemory: Send + Sync {
    /// All the bytes.
    fn bytes(&self) -> &[u8];

    /// Hints that the bytes in `range` will probably not be read again, so that the owner may drop
    /// their pages. They stay readable.
    fn release(&self, range: Range<usize>) {
        let _ = range;
    }
}

impl HostMemory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl HostMemory for &'static [u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A window of shared host memory; cloning it copies no bytes.
#[derive(Clone)]
pub struct HostBytes {
    owner: Arc<dyn HostMemory>,
    range: Range<usize>,
}

impl HostBytes {
    /// All of `owner`.
    pub fn new(owner: Arc<dyn HostMemory>) -> Self {
        let range = 0..owner.bytes().len();
        Self { owner, range }
    }

    /// The bytes in `range`, counted from the start of this window; `None` if it is outside.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        Some(Self {
            owner: self.owner.clone(),
            range: self.range.start + range.start..self.range.start + range.end,
        })
    }

    /// The bytes of the window.
    pub fn as_slice(&self) -> &[u8] {
        &self.owner.bytes()[self.range.clone()]
    }

    /// Bytes in the window.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the window is empty.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Hints to the owner that the window will probably not be read again.
    pub fn release(&self) {
        self.owner.release(self.range.clone());
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBytes")
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}
