use kovar_core::DType;
use kovar_core::error::CodecError;

use crate::error::FileWriteError;
use crate::gguf::MetadataError;

/// Why a file could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// Metadata that the types depend on is missing or of a wrong kind.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A rule matches no tensor that is converted.
    #[error("no tensor that is converted matches {pattern:?}")]
    UnusedRule {
        /// The pattern of the rule.
        pattern: String,
    },
    /// A rule chooses a type for a tensor whose rows are not whole blocks of this type.
    #[error(
        "tensor {tensor:?} cannot be {dtype}: \
         its rows of {row} elements are not whole blocks of {}",
        dtype.block_len()
    )]
    PartialBlock {
        /// Name of the tensor.
        tensor: String,
        /// The type of the rule.
        dtype: DType,
        /// Elements of a row.
        row: usize,
    },
    /// A tensor has infinities or NaNs, or numbers that are too large for its type.
    #[error(
        "tensor {tensor:?} cannot be {dtype}: it has a NaN, an infinity or a number beyond the type's \
         range"
    )]
    NotFinite {
        /// Name of the tensor.
        tensor: String,
        /// The type of the plan.
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
    /// A split file would have more shards than the format can number.
    #[error("the file would have {count} shards, the most is {}", u16::MAX)]
    TooManyShards {
        /// The number of shards.
        count: usize,
    },
    /// The caller stopped the conversion.
    #[error("stopped")]
    Stopped,
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] FileWriteError),
}
