//! Memory of the CPU device: owned blocks, imported host bytes, prepared weights.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use kovar_core::HostBytes;
use kovar_core::backend::DeviceMemory;

use crate::buffer::{ALIGN, OutOfHostMemory};
use crate::pack::{PackError, PackedLayout, PackedMatrix};

/// The size of a huge page. Blocks of at least two are aligned to it and ask for huge pages, which
/// read about an eighth faster.
const HUGE_PAGE: usize = 2 << 20;

/// Zero-initialised bytes aligned to [`ALIGN`], written through a shared reference.
///
/// They are read and written only under the device's queue, which runs one piece of work at a
/// time.
pub(crate) struct Block {
    /// The allocator's block.
    allocation: NonNull<u8>,
    layout: Layout,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a block is the only owner of its allocation. The bytes are accessed through raw pointers;
// each user argues that there is no data race.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// `len` zero bytes. Large blocks get their pages when they are first written.
    pub(crate) fn zeroed(len: usize) -> Result<Self, OutOfHostMemory> {
        let refused = OutOfHostMemory { bytes: len };
        let huge = len >= 2 * HUGE_PAGE;
        // For an aligned request the allocator clears the memory itself; for a large unaligned one
        // it maps zero pages lazily. So a large block is aligned inside a larger allocation.
        let (size, align) = if huge {
            (len.saturating_add(HUGE_PAGE), 16)
        } else {
            (len.max(1), ALIGN)
        };
        let layout = Layout::from_size_align(size, align).map_err(|_| refused.clone())?;
        // SAFETY: the layout isn't empty.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(refused)?;
        let skip = if huge {
            allocation.as_ptr().align_offset(HUGE_PAGE)
        } else {
            0
        };
        // SAFETY: a huge allocation has room for `len` bytes after any offset below `HUGE_PAGE`.
        let start = unsafe { allocation.add(skip) };
        if huge {
            advise_huge_pages(start, len);
        }
        Ok(Self {
            allocation,
            layout,
            start,
            len,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first byte, readable and writable for [`len`](Self::len) bytes.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes, to write.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the block is initialised and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the allocation came from the same layout and is freed once.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}

#[cfg(target_os = "linux")]
fn advise_huge_pages(start: NonNull<u8>, len: usize) {
    const MADV_HUGEPAGE: std::ffi::c_int = 14;
    unsafe extern "C" {
        fn madvise(
            address: *mut std::ffi::c_void,
            length: usize,
            advice: std::ffi::c_int,
        ) -> std::ffi::c_int;
    }
    // SAFETY: these are whole pages of an allocation of ours, and the advice does not change their
    // content. If it is refused, the pages stay ordinary ones.
    unsafe {
        madvise(
            start.as_ptr().cast(),
            len / HUGE_PAGE * HUGE_PAGE,
            MADV_HUGEPAGE,
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_start: NonNull<u8>, _len: usize) {}

/// A weight as the file stores it, and a repacked copy if its uses call for one.
pub(crate) struct PreparedWeight {
    /// The file's own bytes. Used by views of the weight and by all operations except products of
    /// the whole weight.
    pub(crate) file: HostBytes,
    packed: Option<(PackedLayout, Block)>,
}

impl PreparedWeight {
    pub(crate) fn plain(file: HostBytes) -> Self {
        Self { file, packed: None }
    }

    pub(crate) fn packed(file: HostBytes, layout: PackedLayout, block: Block) -> Self {
        Self {
            file,
            packed: Some((layout, block)),
        }
    }

    /// The repacked form, if there is one.
    pub(crate) fn matrix(&self) -> Option<Result<PackedMatrix<'_>, PackError>> {
        let (layout, block) = self.packed.as_ref()?;
        // SAFETY: the block was written before the weight was made and is never written again.
        let data = unsafe { std::slice::from_raw_parts(block.as_ptr(), block.len()) };
        Some(PackedMatrix::new(*layout, data))
    }
}

/// The memory of a CPU buffer.
pub(crate) enum CpuMemory {
    /// Memory of the device.
    Owned(Block),
    /// Host bytes that are read in place; read-only.
    Imported(HostBytes),
    /// A weight; read-only.
    Weight(PreparedWeight),
}

impl CpuMemory {
    /// The plain bytes: the address of the first and their number.
    pub(crate) fn bytes(&self) -> (*const u8, usize) {
        let host = |bytes: &HostBytes| (bytes.as_slice().as_ptr(), bytes.len());
        match self {
            CpuMemory::Owned(block) => (block.as_ptr().cast_const(), block.len()),
            CpuMemory::Imported(bytes) => host(bytes),
            CpuMemory::Weight(weight) => host(&weight.file),
        }
    }

    /// The address of the first byte and the number of bytes, if the memory may be written.
    pub(crate) fn writable(&self) -> Option<(*mut u8, usize)> {
        match self {
            CpuMemory::Owned(block) => Some((block.as_ptr(), block.len())),
            CpuMemory::Imported(_) | CpuMemory::Weight(_) => None,
        }
    }
}

/// Memory with the device that it belongs to.
#[derive(Debug)]
pub(crate) struct DeviceBuffer {
    owner: Arc<()>,
    memory: CpuMemory,
}

impl DeviceBuffer {
    pub(crate) fn new(owner: Arc<()>, memory: CpuMemory) -> Self {
        Self { owner, memory }
    }

    /// The memory, if it belongs to the device of `owner`.
    pub(crate) fn memory_of(&self, owner: &Arc<()>) -> Option<&CpuMemory> {
        Arc::ptr_eq(&self.owner, owner).then_some(&self.memory)
    }
}

impl DeviceMemory for DeviceBuffer {
    fn len(&self) -> usize {
        self.memory.len()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl CpuMemory {
    /// Bytes of memory that it takes.
    fn len(&self) -> usize {
        match self {
            CpuMemory::Weight(weight) => match &weight.packed {
                Some((_, block)) => block.len(),
                None => weight.file.len(),
            },
            _ => self.bytes().1,
        }
    }
}

impl fmt::Debug for CpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            CpuMemory::Owned(_) => "owned",
            CpuMemory::Imported(_) => "imported",
            CpuMemory::Weight(weight) if weight.packed.is_some() => "packed weight",
            CpuMemory::Weight(_) => "weight",
        };
        f.debug_struct("CpuMemory")
            .field("kind", &kind)
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zero_and_aligned() {
        for len in [0, 1, 100, 5 << 20] {
            let mut block = Block::zeroed(len).unwrap();
            assert_eq!(block.as_ptr().addr() % ALIGN, 0);
            assert_eq!(block.len(), len);
            assert!(block.as_mut_slice().iter().all(|&byte| byte == 0));
        }
        let large = Block::zeroed(5 << 20).unwrap();
        assert_eq!(large.as_ptr().addr() % HUGE_PAGE, 0);
    }

    #[test]
    fn a_refused_allocation_names_its_size() {
        let bytes = isize::MAX as usize - (4 << 20);
        assert_eq!(Block::zeroed(bytes).err(), Some(OutOfHostMemory { bytes }));
        let bytes = usize::MAX;
        assert_eq!(Block::zeroed(bytes).err(), Some(OutOfHostMemory { bytes }));
    }
}
