//! Errors of reading an RWKV-7 model.

use std::path::PathBuf;

use crate::error::FileReadError;
use crate::model_file::WeightError;

/// Why an RWKV-7 model in safetensors could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RwkvError {
    /// The vocabulary cannot be read.
    #[error(transparent)]
    File(#[from] FileReadError),
    /// The weights cannot be read.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// The file is not an RWKV-7 model.
    #[error(
        "{} is not an RWKV-7 model (it has no tensor `{missing}`); \
         to open another model, give its folder",
        path.display()
    )]
    NotRwkv7 {
        /// The file.
        path: PathBuf,
        /// A tensor that every RWKV-7 has.
        missing: &'static str,
    },
    /// A tensor is missing.
    #[error("tensor {tensor:?} is missing")]
    MissingTensor {
        /// Its name.
        tensor: String,
    },
    /// The folder of the model has no tokenizer.
    #[error("{} has neither tokenizer.json nor {vocabulary}", folder.display())]
    NoTokenizer {
        /// The folder.
        folder: PathBuf,
        /// The name of a vocabulary.
        vocabulary: &'static str,
    },
    /// A line of the vocabulary is not `index 'literal' length`.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A token of the vocabulary is beyond the embeddings of the model.
    #[error("{} has a token of index {index}, the model has {tokens} tokens", path.display())]
    TooManyTokens {
        /// The file.
        path: PathBuf,
        /// The index of the token.
        index: usize,
        /// Tokens of the model.
        tokens: usize,
    },
}
