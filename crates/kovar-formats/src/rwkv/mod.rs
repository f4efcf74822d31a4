//! RWKV-7 models under the names of their authors: one safetensors file, and a tokenizer in the
//! same folder.
//!
//! There is no config, so the sizes are those of the tensors. Tensors get GGUF's names and forms:
//! low-rank matrices, which are stored input-major, are transposed, and the six token-shift
//! interpolations become one tensor. The vocabulary becomes the keys `tokenizer.*`. The result is
//! that of llama.cpp's converter.

mod error;
mod tensors;
mod vocabulary;

use std::path::{Path, PathBuf};

use crate::gguf::Value;
use crate::hugging_face;
use crate::model_file::{ModelFile, ModelFileError, ModelFormat, WeightError};
use crate::safetensors::SafeTensors;

pub use error::RwkvError;

use tensors::Sizes;

/// A tensor that RWKV-7 has and older versions and other models lack.
const MARK: &str = "blocks.0.att.r_k";
/// The extension of safetensors files.
const EXTENSION: &str = "safetensors";
/// The context length in tokens of llama.cpp's files. The sizes of the tensors do not show it.
const CONTEXT: u32 = 1 << 20;
const NORM_EPS: f32 = 1e-5;

/// The only safetensors file in `folder`, if it is an RWKV-7 under these names, or if it cannot be
/// read and the folder has no config of Hugging Face.
pub(crate) fn find(folder: &Path) -> Option<PathBuf> {
    let files = folder
        .read_dir()
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()));
    let mut files = files.filter(|path| is_safetensors(path));
    let path = files.next().filter(|_| files.next().is_none())?;
    let is_own = match SafeTensors::open(&path) {
        Ok(file) => file.tensor(MARK).is_some(),
        Err(_) => hugging_face::folder_of(&path).is_none(),
    };
    is_own.then_some(path)
}

/// Whether the name of the file at `path` is that of a safetensors file.
pub(crate) fn is_safetensors(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == EXTENSION)
}

/// Reads the model in the file at `path`.
pub(crate) fn open(path: &Path) -> Result<ModelFile, ModelFileError> {
    let file = SafeTensors::open(path).map_err(|source| {
        let path = path.to_owned();
        RwkvError::Weight(WeightError::File { path, source })
    })?;
    if file.tensor(MARK).is_none() {
        return Err(RwkvError::NotRwkv7 {
            path: path.to_owned(),
            missing: MARK,
        }
        .into());
    }
    let sizes = Sizes::read(&file)?;
    let tensors = tensors::read(&file, &sizes)?;
    let mut metadata = metadata(path, &sizes);
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    metadata.extend(tokenizer(folder, sizes.vocab)?);
    let mut files = hugging_face::files_of(folder);
    files.extend([path.to_owned(), folder.join(vocabulary::FILE)]);
    let file_len = file.file_len() as u64;
    let model = ModelFile::new(ModelFormat::Rwkv, metadata, tensors, file_len)?;
    Ok(model.with_files(files))
}

fn metadata(path: &Path, sizes: &Sizes) -> Vec<(String, Value)> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let size = |size: usize| Value::from(u32::try_from(size).unwrap_or(u32::MAX));
    let mut metadata: Vec<(String, Value)> = vec![
        ("general.architecture".to_owned(), "rwkv7".into()),
        ("general.name".to_owned(), name.into_owned().into()),
    ];
    let own: [(&str, Value); 13] = [
        ("vocab_size", size(sizes.vocab)),
        ("context_length", CONTEXT.into()),
        ("embedding_length", size(sizes.width)),
        ("block_count", size(sizes.layers)),
        ("feed_forward_length", size(sizes.ffn)),
        ("attention.head_count", size(0)),
        ("attention.layer_norm_epsilon", NORM_EPS.into()),
        ("wkv.head_size", size(sizes.head)),
        ("token_shift_count", size(2)),
        ("attention.decay_lora_rank", size(sizes.decay_rank)),
        ("attention.iclr_lora_rank", size(sizes.rate_rank)),
        (
            "attention.value_residual_mix_lora_rank",
            size(sizes.value_rank),
        ),
        ("attention.gate_lora_rank", size(sizes.gate_rank)),
    ];
    metadata.extend(own.map(|(key, value)| (format!("rwkv7.{key}"), value)));
    metadata
}

/// The keys `tokenizer.*` of the tokenizer in `folder`.
fn tokenizer(folder: &Path, tokens: usize) -> Result<Vec<(String, Value)>, ModelFileError> {
    let metadata = hugging_face::tokenizer_metadata(folder, tokens)?;
    if !metadata.is_empty() {
        return Ok(metadata);
    }
    let world = vocabulary::metadata(&folder.join(vocabulary::FILE), tokens)?;
    world.ok_or_else(|| {
        let folder = folder.to_owned();
        let vocabulary = vocabulary::FILE;
        RwkvError::NoTokenizer { folder, vocabulary }.into()
    })
}
