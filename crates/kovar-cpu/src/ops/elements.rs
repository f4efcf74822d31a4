//! Elements copied and set bit by bit.

use super::rows::Walk;
use crate::program::{Operand, Run};

/// Copies `n` elements of `size` bytes; strides are in elements.
///
/// # Safety
/// The elements from `from` on are readable, those from `to` on writable, and they are apart.
pub(super) unsafe fn move_elements(
    size: usize,
    (from, from_stride): (*const u8, usize),
    (to, to_stride): (*mut u8, usize),
    n: usize,
) {
    // SAFETY: by this function's contract.
    unsafe {
        match size {
            _ if from_stride == 1 && to_stride == 1 => {
                std::ptr::copy_nonoverlapping(from, to, n * size);
            }
            1 => strided::<u8>(from, from_stride, to, to_stride, n),
            2 => strided::<u16>(from, from_stride, to, to_stride, n),
            4 => strided::<u32>(from, from_stride, to, to_stride, n),
            8 => strided::<u64>(from, from_stride, to, to_stride, n),
            _ => {
                for i in 0..n {
                    let from = from.add(i * from_stride * size);
                    std::ptr::copy_nonoverlapping(from, to.add(i * to_stride * size), size);
                }
            }
        }
    }
}

/// # Safety
/// As [`move_elements`], of elements `T`.
unsafe fn strided<T>(from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize, n: usize) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    for i in 0..n {
        // SAFETY: by this function's contract.
        unsafe {
            let element = from.add(i * from_stride).read_unaligned();
            to.add(i * to_stride).write_unaligned(element);
        }
    }
}

/// The copy of a window to another of the same dtype and dims.
pub(super) struct Move {
    walk: Walk<2>,
    /// Elements and bytes of a block.
    block: (usize, usize),
}

impl Move {
    /// `None` if the dims differ.
    pub(super) fn new(from: &Operand<'_>, to: &Operand<'_>) -> Option<Self> {
        Some(Self {
            walk: Walk::merged([from, to])?,
            block: (to.dtype.block_len(), to.dtype.block_bytes()),
        })
    }

    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run).
    pub(super) unsafe fn run(&self, run: &Run<'_>) {
        let [from_stride, to_stride] = self.walk.forms.map(|form| form.stride());
        let (len, size) = self.block;
        self.walk.pieces(run, &|[from, to], n| {
            // SAFETY: pieces are whole blocks inside the windows, which are apart, by this
            // function's contract readable and writable.
            unsafe { move_elements(size, (from, from_stride), (to, to_stride), n / len) };
        });
    }
}

/// One element written to all of a window.
pub(super) struct Set {
    walk: Walk<1>,
    element: Vec<u8>,
}

impl Set {
    /// `element` has the bytes of one element of the window's dtype; otherwise `None`.
    pub(super) fn new(window: &Operand<'_>, element: Vec<u8>) -> Option<Self> {
        let walk = Walk::merged([window])?;
        (element.len() == window.dtype.block_bytes()).then_some(Self { walk, element })
    }

    /// # Safety
    /// As [`Kernel::run`](crate::program::Kernel::run).
    pub(super) unsafe fn run(&self, run: &Run<'_>) {
        let [stride] = self.walk.forms.map(|form| form.stride());
        let size = self.element.len();
        self.walk.pieces(run, &|[to], n| {
            // SAFETY: pieces are inside the window, by this function's contract writable; a
            // source stride of 0 reads the one element.
            unsafe { move_elements(size, (self.element.as_ptr(), 0), (to, stride), n) };
        });
    }
}
