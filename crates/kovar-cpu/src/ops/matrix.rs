//! Matrix operands of products, in batches.

use kovar_core::MAX_RANK;

use super::rows::RowForm;
use crate::program::{Address, Operand};

/// A batch: its index along each batch dimension.
pub(super) type Batch = [usize; MAX_RANK];

/// The batches of a product.
pub(super) struct Batches {
    dims: [usize; MAX_RANK],
    count: usize,
}

impl Batches {
    /// Batches of the given sizes; `None` if these are more than [`MAX_RANK`].
    pub(super) fn new(sizes: &[usize]) -> Option<Self> {
        let mut dims = [1; MAX_RANK];
        dims.get_mut(..sizes.len())?.copy_from_slice(sizes);
        let count = sizes.iter().product();
        Some(Self { dims, count })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Batch number `at`, in row-major order.
    pub(super) fn batch(&self, mut at: usize) -> Batch {
        let mut batch = [0; MAX_RANK];
        for (index, size) in batch.iter_mut().zip(self.dims).rev() {
            *index = at % size;
            at /= size;
        }
        batch
    }
}

/// A matrix operand of a product: rows of each batch.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) start: Address,
    pub(super) form: RowForm,
    /// Bytes from one row to the next.
    pub(super) row: usize,
    /// Bytes between neighbours along each batch dimension.
    strides: Batch,
}

impl Matrix {
    /// The rows of the operand; `strides` are those of the batch dimensions, then that of the rows.
    pub(super) fn new(operand: &Operand<'_>, strides: &[usize]) -> Self {
        let (row, batches) = strides
            .split_last()
            .map_or((0, &[][..]), |(&row, batches)| (row, batches));
        let mut bytes = [0; MAX_RANK];
        for (bytes, &elements) in bytes.iter_mut().zip(batches) {
            *bytes = operand.bytes(elements);
        }
        Self {
            start: operand.start(),
            form: RowForm::of(operand),
            row: operand.bytes(row),
            strides: bytes,
        }
    }

    /// Whether rows are aligned f32 without gaps, which products use in place.
    pub(super) fn is_plain(&self) -> bool {
        let aligned = self.start.get().cast::<f32>().is_aligned();
        self.form.is_plain() && aligned
    }

    /// The byte offset of a batch.
    pub(super) fn offset(&self, batch: &Batch) -> usize {
        let offsets = batch.iter().zip(&self.strides).map(|(i, bytes)| i * bytes);
        offsets.sum()
    }

    /// The address of an element.
    pub(super) fn at(&self, batch: &Batch, row: usize, column: usize) -> *mut u8 {
        let start = self.start.get();
        let row = start.wrapping_add(self.offset(batch) + row * self.row);
        self.form.at(row, column)
    }
}
