//! Errors of reading a Hugging Face folder.

use std::path::PathBuf;

use crate::error::FileReadError;
use crate::model_file::WeightError;
use crate::safetensors::ShardError;

/// Why a Hugging Face folder could not be read. Dots in a `key` separate the keys of nested
/// objects: `rope_scaling.factor`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HuggingFaceError {
    /// A JSON or text file cannot be read.
    #[error(transparent)]
    File(#[from] FileReadError),
    /// The folder does not hold a model.
    #[error("{} is not the folder of a model: it has no config.json", path.display())]
    NoConfig {
        /// The folder.
        path: PathBuf,
    },
    /// A key is missing.
    #[error("{}: `{key}` is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// A value is not valid for its key.
    #[error("{}: `{key}` is {value}, expected {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// Its value, shortened.
        value: String,
        /// What must hold.
        expected: &'static str,
    },
    /// A value requires a feature that kovar lacks.
    #[error("{}: `{key}` is {value}, which kovar does not support", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// Its value, shortened.
        value: String,
    },
    /// A token's id is beyond the vocabulary.
    #[error("{}: token {token:?} has the id {id}, but there are {tokens} tokens", path.display())]
    TokenId {
        /// The file.
        path: PathBuf,
        /// The token.
        token: String,
        /// Its id.
        id: u64,
        /// Tokens of the model.
        tokens: usize,
    },
    /// Two tokens have one id.
    #[error("{}: tokens {first:?} and {second:?} have the id {id}", path.display())]
    DuplicateTokenId {
        /// The file.
        path: PathBuf,
        /// A token.
        first: String,
        /// Another.
        second: String,
        /// The id of both.
        id: u64,
    },
    /// The merges of a tokenizer with byte tokens do not follow from scores of its tokens, as those
    /// of SentencePiece do.
    #[error(
        "{}: `model.merges` are not those of a SentencePiece vocabulary \
         (rule {left:?} {right:?})", path.display()
    )]
    MergeOrder {
        /// The file.
        path: PathBuf,
        /// The left token of the rule at fault.
        left: String,
        /// The right one.
        right: String,
    },
    /// A merge rule is not two tokens, or one of its tokens is not in the vocabulary.
    #[error("{}: `model.merges[{rank}]` is not two tokens of the vocabulary", path.display())]
    BadMerge {
        /// The file.
        path: PathBuf,
        /// Index of the rule.
        rank: usize,
    },
    /// A merge rule makes a token that is longer than the limit.
    #[error(
        "{}: `model.merges[{rank}]` makes a token of {len} bytes, the most is {most}",
        path.display()
    )]
    LongMerge {
        /// The file.
        path: PathBuf,
        /// Index of the rule.
        rank: usize,
        /// Bytes of the token.
        len: usize,
        /// The most.
        most: usize,
    },
    /// There are neither weights nor a tokenizer.
    #[error(
        "{} has no model.safetensors and no model.safetensors.index.json", path.display()
    )]
    NoWeights {
        /// The folder.
        path: PathBuf,
    },
    /// The weights cannot be read.
    #[error(transparent)]
    Weight(#[from] WeightError),
    /// A sharded model is damaged.
    #[error(transparent)]
    Shards(#[from] ShardError),
    /// A tensor that the config requires is missing.
    #[error("tensor {tensor:?} is missing (`{key}` requires it)")]
    MissingTensor {
        /// Its name.
        tensor: String,
        /// The key.
        key: &'static str,
    },
}
