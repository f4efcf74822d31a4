use kovar_core::DType;
use kovar_core::error::CodecError;

use crate::error::FileWriteError;
use crate::gguf::MetadataError;

/// Why a file could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// The metadata does not tell what the types depend on.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A rule that changes nothing.
    #[error("no tensor that is converted matches {pattern:?}")]
    UnusedRule {
        /// The pattern of the rule.
        pattern: String,
    },
    /// A rule asks for a type whose blocks the rows of a tensor don't fill.
    #[error(
        "tensor {tensor:?} cannot be {dtype}: its rows of {row} elements are not whole blocks of {}",
        dtype.block_len()
    )]
    PartialBlock {
        /// Name of the tensor.
        tensor: String,
        /// The type asked for.
        dtype: DType,
        /// Elements of a row.
        row: usize,
    },
    /// A tensor holds infinities or NaNs, or numbers too large for its type.
    #[error("tensor {tensor:?} does not stay finite as {dtype}")]
    NotFinite {
        /// Name of the tensor.
        tensor: String,
        /// The type that it was to have.
        dtype: DType,
    },
    /// A tensor cannot be decoded or encoded.
    #[error("tensor {tensor:?} cannot be converted")]
    Codec {
        /// Name of the tensor.
        tensor: String,
        /// The reason.
        source: CodecError,
    },
    /// A split file would have more parts than the format can number.
    #[error("the file would have {count} parts, the most is {}", u16::MAX)]
    TooManyParts {
        /// The number of parts.
        count: usize,
    },
    /// The caller stopped the conversion.
    #[error("stopped")]
    Stopped,
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] FileWriteError),
}
