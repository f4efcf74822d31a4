//! Image operands, `[batch, channels, rows, columns]`.

use kovar_core::Dims;

use super::rows::RowForm;
use crate::program::{Address, Operand};

/// An image operand.
pub(super) struct Image {
    start: Address,
    /// Bytes between neighbours along each dimension but the last.
    strides: [usize; 3],
    pub(super) form: RowForm,
}

impl Image {
    /// `None` if there are not four dims.
    pub(super) fn new(operand: &Operand<'_>) -> Option<Self> {
        let [batch, channel, row, _] = four(operand.layout.strides())?;
        Some(Self {
            start: operand.start(),
            strides: [batch, channel, row].map(|elements| operand.bytes(elements)),
            form: RowForm::of(operand),
        })
    }

    /// The first element of a row.
    pub(super) fn row(&self, batch: usize, channel: usize, row: usize) -> *mut u8 {
        let [batches, channels, rows] = self.strides;
        let offset = batch * batches + channel * channels + row * rows;
        self.start.get().wrapping_add(offset)
    }
}

/// Dims or strides of rank 4.
pub(super) fn four(dims: &Dims) -> Option<[usize; 4]> {
    <[usize; 4]>::try_from(&dims[..]).ok()
}
