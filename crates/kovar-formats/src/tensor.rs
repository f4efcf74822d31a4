//! What the header of a file says of a tensor.

use std::ops::Range;

use kovar_core::{DType, HostBytes};

use crate::MAX_DIMS;

/// A tensor of a file whose format has the dtypes `D`.
#[derive(Clone, Debug)]
pub struct FileTensor<D> {
    pub(crate) name: Box<str>,
    pub(crate) dtype: D,
    pub(crate) dims: Box<[usize]>,
    pub(crate) range: Range<usize>,
    pub(crate) data: HostBytes,
}

impl<D: Copy> FileTensor<D> {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dtype in the file.
    pub fn dtype(&self) -> D {
        self.dtype
    }

    /// The dims, row-major, outermost first: the reverse of the order in a GGUF file. A dim may be
    /// zero in a safetensors file only.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Where the data lies, in bytes from the start of the file.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The data, a window of the file: little-endian elements or blocks, row after row.
    pub fn bytes(&self) -> HostBytes {
        self.data.clone()
    }
}

/// The product of `dims`; `None` if it overflows.
pub(crate) fn elements_of(dims: &[usize]) -> Option<usize> {
    dims.iter().copied().try_fold(1, usize::checked_mul)
}

/// Bytes of a tensor; `None` if it has too many dims, its rows are not whole blocks or its size
/// overflows.
pub(crate) fn bytes_of(dtype: DType, dims: &[usize]) -> Option<usize> {
    let row = dims.last().copied().unwrap_or(1);
    let is_valid = dims.len() <= MAX_DIMS && row.is_multiple_of(dtype.block_len());
    dtype.bytes_for(elements_of(dims).filter(|_| is_valid)?)
}
