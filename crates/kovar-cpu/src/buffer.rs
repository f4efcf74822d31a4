//! Owned bytes aligned to a cache line.

use std::fmt;

/// The alignment, in bytes, that prepared weights and scratch memory must have.
pub const ALIGN: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGN]);

/// Zero-initialised bytes aligned to [`ALIGN`].
pub struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

/// The allocator refused `bytes` bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot allocate {bytes} bytes of host memory")]
pub struct OutOfHostMemory {
    /// Bytes requested.
    pub bytes: usize,
}

impl AlignedBytes {
    /// `len` zero bytes.
    ///
    /// # Errors
    /// [`OutOfHostMemory`] if the allocator refuses.
    pub fn zeroed(len: usize) -> Result<Self, OutOfHostMemory> {
        let n_lines = len.div_ceil(ALIGN);
        let mut lines = Vec::new();
        lines
            .try_reserve_exact(n_lines)
            .map_err(|_| OutOfHostMemory { bytes: len })?;
        lines.resize(n_lines, Line([0; ALIGN]));
        Ok(Self { lines, len })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `Line` is plain bytes without padding and `len` is at most the lines' size.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }

    /// Bytes held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBytes")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
