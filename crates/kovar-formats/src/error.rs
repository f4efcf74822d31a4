//! Errors that several formats have in common.

use std::io;
use std::path::PathBuf;

use kovar_core::DType;

use crate::gguf::{MAX_NAME_BYTES, MAX_NESTING};
use crate::index::IndexError;
use crate::safetensors::MAX_HEADER_BYTES;

/// Why a GGUF or safetensors file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileWriteError {
    /// The alignment of a GGUF file is not a power of two.
    #[error("alignment {alignment} is not a power of two")]
    InvalidAlignment {
        /// The requested alignment.
        alignment: u32,
    },
    /// The key `general.alignment` of a GGUF file is written by the writer.
    #[error("metadata \"general.alignment\" is set by the alignment of the writer")]
    AlignmentKey,
    /// A key or tensor name is longer than GGUF allows.
    #[error("name {name:?} is {} bytes long, the most is {MAX_NAME_BYTES}", name.len())]
    NameTooLong {
        /// The name.
        name: String,
    },
    /// The arrays in a GGUF value are nested too deep.
    #[error("metadata {key:?} nests arrays deeper than {MAX_NESTING}")]
    NestedTooDeep {
        /// The key.
        key: String,
    },
    /// A key was added twice.
    #[error("metadata {key:?} added twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A tensor name was added twice.
    #[error("tensor {tensor:?} added twice")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// The file would have more than `u32::MAX` keys or tensors.
    #[error("more than {} keys or tensors", u32::MAX)]
    TooManyEntries,
    /// safetensors reserves this name.
    #[error("a tensor cannot be called {tensor:?}")]
    ReservedName {
        /// The name.
        tensor: String,
    },
    /// The format cannot store these dims: there are too many, their product overflows, or (in
    /// GGUF) one is zero or the rows are not whole blocks.
    #[error("tensor {tensor:?} of {dtype} cannot have dims {dims:?}")]
    InvalidDims {
        /// Name of the tensor.
        tensor: String,
        /// The name of its dtype.
        dtype: &'static str,
        /// Its dims, outermost first.
        dims: Vec<usize>,
    },
    /// The format has no such dtype.
    #[error("tensor {tensor:?} has dtype {dtype}, which {format} lacks")]
    NoSuchDType {
        /// Name of the tensor.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// The name of the format.
        format: &'static str,
    },
    /// The data does not have the size of the dims.
    #[error("tensor {tensor:?} takes {expected} bytes, {actual} were given")]
    WrongSize {
        /// Name of the tensor.
        tensor: String,
        /// Bytes that its dims and dtype take.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// A tensor was declared without data, so the file can only be streamed.
    #[error("tensor {tensor:?} has no data")]
    NoData {
        /// Name of the tensor.
        tensor: String,
    },
    /// Data was streamed after the last tensor was complete.
    #[error("{surplus} bytes were given after the last tensor was complete")]
    SurplusData {
        /// Bytes given.
        surplus: usize,
    },
    /// The header of a safetensors file is longer than the reader's limit.
    #[error("the header takes {len} bytes, the most is {MAX_HEADER_BYTES}")]
    HeaderTooLarge {
        /// Bytes of the header.
        len: usize,
    },
    /// The file could not be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Writing failed.
    #[error("writing the model file failed")]
    Write(#[from] io::Error),
}

impl FileWriteError {
    /// Why the names of tensors could not be indexed.
    pub(crate) fn of_tensor_names(error: IndexError) -> Self {
        match error {
            IndexError::Duplicate(tensor) => Self::DuplicateTensor { tensor },
            IndexError::TooMany => Self::TooManyEntries,
        }
    }
}

/// Why a config, a tokenizer, a vocabulary or an index could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileReadError {
    /// The file could not be opened or mapped.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is larger than the limit.
    #[error("{} has {len} bytes, the most is {most}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        len: usize,
        /// The most that is read.
        most: usize,
    },
    /// The file is not JSON of the right form.
    #[error("{} is not valid", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The file is not UTF-8.
    #[error("{} is not UTF-8 (the first {valid_up_to} bytes are)", path.display())]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// Bytes that are valid.
        valid_up_to: usize,
    },
}
