use std::io;
use std::path::PathBuf;

use kovar_core::DType;

use crate::model_file::TransformError;
use crate::safetensors::{SafeTensorsError, TensorDType};

/// Why an RWKV-7 model in safetensors could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RwkvError {
    /// The file is damaged.
    #[error("{}", path.display())]
    SafeTensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SafeTensorsError,
    },
    /// The file has other tensors than an RWKV-7.
    #[error(
        "{} holds no RWKV-7 (there is no tensor `{missing}`); of another model give the folder",
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
    /// A tensor that an RWKV-7 does not have.
    #[error("tensor {tensor:?} is not known")]
    UnknownTensor {
        /// Its name.
        tensor: String,
    },
    /// A tensor has a dtype that kovar does not compute with.
    #[error("tensor {tensor:?} is {dtype}, which kovar does not support as a weight")]
    TensorDType {
        /// Its name.
        tensor: String,
        /// Its dtype.
        dtype: TensorDType,
    },
    /// A tensor has dims that no model has.
    #[error("tensor {tensor:?} has dims {dims:?}: {rule}")]
    TensorDims {
        /// Its name.
        tensor: String,
        /// Its dims, outermost first.
        dims: Vec<usize>,
        /// What must hold.
        rule: &'static str,
    },
    /// A tensor cannot be brought into the form that GGUF has it in.
    #[error("tensor {tensor:?} ({dtype})")]
    Transform {
        /// Its name.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// The reason.
        source: TransformError,
    },
    /// There is no tokenizer beside the model.
    #[error("{} has neither tokenizer.json nor {vocabulary}", folder.display())]
    NoTokenizer {
        /// The folder.
        folder: PathBuf,
        /// The name of a vocabulary.
        vocabulary: &'static str,
    },
    /// The vocabulary cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The vocabulary is larger than any honest one.
    #[error("{} has {len} bytes, the most is {most}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        len: usize,
        /// The most that is read.
        most: usize,
    },
    /// The vocabulary is not UTF-8.
    #[error("{} is not UTF-8 (the first {valid_up_to} bytes are)", path.display())]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// Bytes that are valid.
        valid_up_to: usize,
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
    /// The vocabulary has tokens that the model lacks.
    #[error("{} has a token of index {index}, the model has {tokens} tokens", path.display())]
    TooManyTokens {
        /// The file.
        path: PathBuf,
        /// The highest index.
        index: usize,
        /// Tokens of the model.
        tokens: usize,
    },
}
