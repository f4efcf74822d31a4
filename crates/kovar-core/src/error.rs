//! Errors of the core.

use crate::DType;

/// A dtype name that kovar does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype `{name}`")]
pub struct UnknownDType {
    /// The name as given.
    pub name: String,
}

/// Why a row of elements could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The dtype has no floating-point decoding (it is an integer type).
    #[error("{dtype} is not a floating-point or quantised dtype")]
    NotNumeric {
        /// The dtype asked for.
        dtype: DType,
    },
    /// The element count is not a whole number of blocks.
    #[error("{elements} elements are not whole {dtype} blocks of {}", dtype.block_len())]
    PartialBlock {
        /// The dtype asked for.
        dtype: DType,
        /// Elements given.
        elements: usize,
    },
    /// The byte slice does not have the size of that many elements.
    #[error("{elements} {dtype} elements take {expected} bytes, the slice has {actual}")]
    WrongSize {
        /// The dtype asked for.
        dtype: DType,
        /// Elements given.
        elements: usize,
        /// Bytes that they take.
        expected: usize,
        /// Bytes of the slice.
        actual: usize,
    },
}
