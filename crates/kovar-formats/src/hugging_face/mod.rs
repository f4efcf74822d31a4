//! Models in the form of Hugging Face's transformers: a folder with `config.json`, safetensors and
//! a tokenizer.
//!
//! The config becomes GGUF's metadata. Tensors get GGUF's names and, for `llama`, GGUF's order of
//! the rows of queries and keys. `tokenizer.json`, `tokenizer_config.json`,
//! `generation_config.json` and `chat_template.jinja` become the keys `tokenizer.*`. The result is
//! that of llama.cpp's converter, so that readers of GGUF models read these too.

mod config;
mod error;
mod json;
mod rope;
mod tensors;
mod tokenizer;

use std::path::{Path, PathBuf};

use crate::gguf::Value;
use crate::model_file::{ModelFile, ModelFileError, ModelFormat, WeightError};
use crate::safetensors::{SafeTensors, Shards};

use json::Config;

pub use error::HuggingFaceError;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const GENERATION_CONFIG: &str = "generation_config.json";
const CHAT_TEMPLATE: &str = "chat_template.jinja";

/// Files of a folder that are read if they exist.
const FILES: [&str; 6] = [
    CONFIG,
    WEIGHTS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    GENERATION_CONFIG,
    CHAT_TEMPLATE,
];

/// The folder of the file of weights at `path`, if it has a config.
pub(crate) fn folder_of(path: &Path) -> Option<&Path> {
    let folder = path.parent()?;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    folder.join(CONFIG).is_file().then_some(folder)
}

/// Reads the model in `folder`. A folder with a tokenizer but no weights is read as a vocabulary.
pub(crate) fn open(folder: &Path) -> Result<ModelFile, ModelFileError> {
    let config = Config::read(folder.join(CONFIG)).map_err(HuggingFaceError::File)?;
    let config = config.ok_or_else(|| HuggingFaceError::NoConfig {
        path: folder.to_owned(),
    })?;
    let hparams = config::read(&config)?;
    let weights = match weights(folder)? {
        Some(shards) => Some((tensors::read(&shards, &hparams)?, shards)),
        None => None,
    };
    let tokenizer = tokenizer::metadata(folder, &config, hparams.vocab_len as usize)?;
    if weights.is_none() && tokenizer.is_empty() {
        let path = folder.to_owned();
        return Err(HuggingFaceError::NoWeights { path }.into());
    }
    let (tensors, shards) = weights.unzip();
    let file_len = shards.as_ref().map_or(0, Shards::file_len);
    let mut files = files_of(folder);
    files.extend_from_slice(shards.as_ref().map_or(&[], Shards::paths));
    let mut metadata = hparams.metadata(&name_of(folder));
    metadata.extend(tokenizer);
    let tensors = tensors.unwrap_or_default();
    let file = ModelFile::new(ModelFormat::HuggingFace, metadata, tensors, file_len)?;
    Ok(file.with_files(files))
}

/// The files in `folder` that belong to a model, other than shards.
pub(crate) fn files_of(folder: &Path) -> Vec<PathBuf> {
    let paths = FILES.map(|name| folder.join(name));
    paths.into_iter().filter(|path| path.is_file()).collect()
}

fn weights(folder: &Path) -> Result<Option<Shards>, HuggingFaceError> {
    let is_there = |name: &str| folder.join(name).try_exists().unwrap_or(true);
    if is_there(INDEX) {
        return Ok(Some(Shards::open(folder.join(INDEX))?));
    }
    if !is_there(WEIGHTS) {
        return Ok(None);
    }
    let path = folder.join(WEIGHTS);
    match SafeTensors::open(&path) {
        Ok(file) => Ok(Some(file.into())),
        Err(source) => Err(WeightError::File { path, source }.into()),
    }
}

/// The keys `tokenizer.*` of the tokenizer in `folder`, for a model of `vocab_len` tokens. Empty if
/// the folder has no `tokenizer.json`.
pub(crate) fn tokenizer_metadata(
    folder: &Path,
    vocab_len: usize,
) -> Result<Vec<(String, Value)>, HuggingFaceError> {
    let config = Config::read_or_empty(folder.join(CONFIG))?;
    tokenizer::metadata(folder, &config, vocab_len)
}

/// The name of the folder, as the name of the model.
fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize();
    let whole = whole.as_deref().unwrap_or(folder);
    let name = whole.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
