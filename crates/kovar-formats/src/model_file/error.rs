use std::io;
use std::path::PathBuf;

use crate::gguf::{GgufError, OpenSplitError, SplitError};
use crate::hugging_face::HuggingFaceError;
use crate::rwkv::RwkvError;

/// Why a model could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// The metadata of the file or folder cannot be read.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path is neither a folder nor a regular file with contents.
    #[error("{} is {found}, expected a GGUF file or the folder of a model", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// A GGUF file is damaged or of a kind that kovar does not read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The shards of a split GGUF file are not one model.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// A Hugging Face folder is damaged or of a kind that kovar does not read.
    #[error(transparent)]
    HuggingFace(#[from] HuggingFaceError),
    /// An RWKV-7 safetensors file cannot be read.
    #[error(transparent)]
    Rwkv(#[from] RwkvError),
    /// A metadata key occurs twice.
    #[error("metadata {key:?} occurs twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A tensor name occurs twice.
    #[error("tensor {tensor:?} occurs twice")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// More than `u32::MAX` keys or tensors.
    #[error("more than {} keys or tensors", u32::MAX)]
    TooManyEntries,
}

impl From<OpenSplitError> for ModelFileError {
    fn from(error: OpenSplitError) -> Self {
        match error {
            OpenSplitError::File(error) => Self::Gguf(error),
            OpenSplitError::Split(error) => Self::Split(error),
        }
    }
}
