//! Operands of kernels: windows of device memory.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use kovar_core::{DType, Dims, Layout, StorageId};

use crate::seam::Caps;

/// What an operand lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// A storage of the graph.
    Storage(StorageId),
    /// Scratch memory of the program.
    Scratch,
}

/// A window of memory that a program will be bound to.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub dtype: DType,
    pub layout: Layout,
    pub base: Base,
    /// Bytes from a multiple of the device's binding alignment to the first byte of the base.
    pub skew: u64,
}

impl Operand {
    /// The same memory under another layout.
    pub fn with_layout(&self, layout: Layout) -> Self {
        Self {
            layout,
            ..self.clone()
        }
    }

    /// The bytes from the first to the last element, counted from [`skew`](Self::skew) bytes
    /// before the base. A block dtype's are whole blocks.
    pub fn bytes(&self) -> Range<u64> {
        let span = self.layout.span();
        let bytes = |elements: usize, up: bool| {
            let len = self.dtype.block_len();
            let blocks = if up {
                elements.div_ceil(len)
            } else {
                elements / len
            };
            (blocks * self.dtype.block_bytes()) as u64
        };
        self.skew + bytes(span.start, false)..self.skew + bytes(span.end, true)
    }

    /// The range to bind, counted like [`bytes`](Self::bytes): the operand's bytes, begun at a
    /// multiple of `alignment` bytes, a power of two, in whole words; and the bytes from its start
    /// to the operand's first element.
    pub fn binding(&self, alignment: u64) -> (Range<u64>, u64) {
        let bytes = self.bytes();
        let start = bytes.start & !(alignment - 1);
        let end = bytes.end.next_multiple_of(4).max(start + 4);
        (start..end, bytes.start - start)
    }

    /// Whether one binding of at most `limit` bytes can hold the window.
    pub fn fits(&self, alignment: u64, limit: u64) -> bool {
        let (range, _) = self.binding(alignment);
        range.end - range.start <= limit
    }

    /// The view of a vector, or of the last dim, as the innermost; `None` if it is too large.
    pub fn vector(&self, caps: &Caps) -> Option<View> {
        let fits = self.fits(caps.binding_alignment, caps.max_binding_bytes);
        let stride = Dims::new(&[self.layout.stride_from_end(0)])?;
        fits.then(|| self.view(&stride, caps.binding_alignment))
    }

    /// The view for a kernel, of collapsed strides. Element offsets count from the binding's start.
    pub fn view(&self, strides: &Dims, alignment: u64) -> View {
        let (_, residual) = self.binding(alignment);
        let elements =
            residual / self.dtype.block_bytes().max(1) as u64 * self.dtype.block_len() as u64;
        View::new(strides, elements)
    }
}

/// A window as kernels see it: `View` of `shared/view.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct View {
    pub strides: [u32; 4],
    pub offset: u32,
    pad: [u32; 3],
}

impl View {
    /// A view of these strides that begins at the binding's start.
    pub fn of(strides: [u32; 4]) -> Self {
        Self {
            strides,
            ..Self::default()
        }
    }

    /// A view of up to four dims, in elements. The stride of a dim of size 1 may be any number.
    pub fn new(strides: &Dims, offset: u64) -> Self {
        Self {
            strides: four(strides, 0),
            offset: offset as u32,
            pad: [0; 3],
        }
    }
}

/// Up to four sizes or strides, padded with `fill` in front.
pub(crate) fn four(sizes: &Dims, fill: u32) -> [u32; 4] {
    let mut all = [fill; 4];
    for i in 0..sizes.rank().min(4) {
        all[3 - i] = u32::try_from(sizes.from_end(i)).unwrap_or(u32::MAX);
    }
    all
}
