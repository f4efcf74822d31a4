//! Errors of products.

use kovar_core::DType;

/// Why a product could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProductError {
    /// A matrix view does not fit its memory.
    #[error("{rows} rows of {cols} elements, {stride} apart, do not fit {len} elements")]
    ViewTooLarge {
        /// Rows of the view.
        rows: usize,
        /// Elements of a row.
        cols: usize,
        /// Elements from one row to the next.
        stride: usize,
        /// Elements of the memory.
        len: usize,
    },
    /// Rows of the view overlap.
    #[error("rows of {cols} elements overlap when they are {stride} apart")]
    Overlap {
        /// Elements of a row.
        cols: usize,
        /// Elements from one row to the next.
        stride: usize,
    },
    /// A dimension of two operands differs.
    #[error("{what}: {expected} expected, {actual} given")]
    Mismatch {
        /// The dimension.
        what: &'static str,
        /// Its size in the first operand.
        expected: usize,
        /// Its size in the second.
        actual: usize,
    },
    /// The reduced dimension must be whole blocks of 32 for 8-bit activations.
    #[error("{k} activations are not whole blocks of 32")]
    PartialBlock {
        /// Elements of a row.
        k: usize,
    },
    /// The dtype is not a float.
    #[error("{dtype} is not a floating-point dtype")]
    NotFloat {
        /// The dtype.
        dtype: DType,
    },
    /// Scratch memory is too small or not aligned to 64 bytes.
    #[error("{needed} bytes of scratch memory aligned to 64 bytes needed, {given} given")]
    Scratch {
        /// Bytes needed.
        needed: usize,
        /// Usable bytes given.
        given: usize,
    },
    /// Activations were quantised for another SIMD level.
    #[error("activations were quantised by another level's kernels")]
    LevelMismatch,
}

impl ProductError {
    pub(super) fn check(
        what: &'static str,
        expected: usize,
        actual: usize,
    ) -> Result<(), ProductError> {
        if expected == actual {
            Ok(())
        } else {
            Err(ProductError::Mismatch {
                what,
                expected,
                actual,
            })
        }
    }
}
