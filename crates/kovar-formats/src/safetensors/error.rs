//! What can be wrong with a safetensors file.

use std::io;
use std::path::PathBuf;

use kovar_core::ops::dtypes::PLAIN;

use super::TensorDType;

/// Why a safetensors file could not be read. Data offsets count from the start of the data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SafeTensorsError {
    /// The file could not be opened or mapped.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is too short for the length of a header.
    #[error("not a safetensors file: it has {file_len} bytes, but the header length takes 8")]
    TooShort {
        /// Bytes of the file.
        file_len: usize,
    },
    /// The header goes beyond the end of the file or the limit.
    #[error(
        "the header length at byte 0 is {len}, but at most {most} bytes can follow \
         (not a safetensors file, or a truncated one)"
    )]
    HeaderTooLarge {
        /// The length in the file.
        len: u64,
        /// The most bytes by the file and the limit.
        most: usize,
    },
    /// The header is not JSON of the right form.
    #[error("the header (from byte 8) is not valid")]
    Header(#[source] serde_json::Error),
    /// There are more than `u32::MAX` tensors.
    #[error("more than {} tensors", u32::MAX)]
    TooManyTensors,
    /// A tensor name occurs twice.
    #[error("tensor {tensor:?} occurs twice")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// A tensor has an unknown dtype.
    #[error("tensor {tensor:?} has the unknown dtype {dtype:?}")]
    UnknownDType {
        /// Name of the tensor.
        tensor: String,
        /// The dtype in the file.
        dtype: String,
    },
    /// A tensor has too many dims.
    #[error("tensor {tensor:?} has {count} dims, the most is {most}")]
    TooManyDims {
        /// Name of the tensor.
        tensor: String,
        /// Dims in the file.
        count: usize,
        /// The most that kovar reads.
        most: usize,
    },
    /// The size of a tensor does not fit an integer.
    #[error("tensor {tensor:?} with dims {dims:?} is too large to address")]
    SizeOverflow {
        /// Name of the tensor.
        tensor: String,
        /// Its dims, outermost first.
        dims: Vec<u64>,
    },
    /// The data offsets end before they start or beyond the data.
    #[error(
        "tensor {tensor:?} has data offsets {start} to {end}, but the data has {data_len} bytes"
    )]
    OutsideData {
        /// Name of the tensor.
        tensor: String,
        /// First byte.
        start: u64,
        /// First byte after.
        end: u64,
        /// Bytes of the data.
        data_len: usize,
    },
    /// The data offsets do not span the size of the dims.
    #[error(
        "tensor {tensor:?} of {dtype} with dims {dims:?} takes {expected} bytes, \
         its data offsets span {actual}"
    )]
    WrongSize {
        /// Name of the tensor.
        tensor: String,
        /// Its dtype.
        dtype: TensorDType,
        /// Its dims, outermost first.
        dims: Vec<usize>,
        /// Bytes that they take.
        expected: usize,
        /// Bytes between the data offsets.
        actual: usize,
    },
    /// The tensors overlap or leave a gap.
    #[error(
        "tensor {tensor:?} starts at {start} of the data, the one before it ends at {expected}"
    )]
    NotContiguous {
        /// Name of the tensor.
        tensor: String,
        /// Where its data starts.
        start: usize,
        /// Where it should start.
        expected: usize,
    },
    /// Data follows the last tensor.
    #[error("the tensors end at {end} of the data, which has {data_len} bytes")]
    TrailingData {
        /// Where the last tensor ends.
        end: usize,
        /// Bytes of the data.
        data_len: usize,
    },
}

/// Why the elements of a tensor could not be read as the requested type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file has no such tensor.
    #[error("tensor {tensor:?} is missing")]
    Missing {
        /// The name.
        tensor: String,
    },
    /// The tensor has a dtype that kovar does not compute with.
    #[error(
        "tensor {tensor:?} is {found}, which kovar does not compute with; it takes {}",
        computed()
    )]
    NoSuchDType {
        /// Name of the tensor.
        tensor: String,
        /// The dtype in the file.
        found: TensorDType,
    },
    /// The tensor has another dtype.
    #[error("tensor {tensor:?} is {found}, expected {expected}")]
    WrongDType {
        /// Name of the tensor.
        tensor: String,
        /// The dtypes that can be read as the requested type.
        expected: &'static str,
        /// The dtype in the file.
        found: TensorDType,
    },
}

/// The names of the dtypes that kovar computes with, for messages.
fn computed() -> String {
    let names: Vec<&str> = PLAIN.iter().map(|dtype| dtype.name()).collect();
    names.join(", ")
}
