use std::io;
use std::path::PathBuf;

use crate::gguf::{GgufError, OpenSplitError, SplitError};
use crate::hugging_face::HuggingFaceError;
use crate::rwkv::RwkvError;

/// Why a model could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// The file or folder cannot be looked at.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Neither a folder nor a file that has bytes.
    #[error("{} is {found}, expected a GGUF file or the folder of a model", path.display())]
    Kind {
        /// What was given.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A GGUF file is damaged or of a kind that kovar does not read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The parts of a split GGUF file do not make a whole.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// A Hugging Face folder is damaged or of a kind that kovar does not read.
    #[error(transparent)]
    HuggingFace(#[from] HuggingFaceError),
    /// An RWKV-7 safetensors file cannot be read.
    #[error(transparent)]
    Rwkv(#[from] RwkvError),
    /// A key of the metadata was given twice.
    #[error("metadata {key:?} occurs twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Two tensors have one name.
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
