//! A model from any source in the terms of GGUF: metadata under GGUF's keys and tensors under
//! GGUF's names.
//!
//! Readers of a [`ModelFile`] do not depend on its source. To add a source, write a function that
//! passes metadata and [`LazyTensor`]s to [`ModelFile::new`], and call it in [`ModelFile::open`].

mod error;
mod lazy;
mod weight;

use std::fmt;
use std::path::{Path, PathBuf};

use kovar_core::error::CodecError;
use kovar_core::{DType, HostBytes};

use crate::gguf::{
    DEFAULT_ALIGNMENT, Entry, Gguf, Metadata, SPLIT_PREFIX, TensorInfo, Value, open_split,
};
use crate::hugging_face;
use crate::index::{IndexError, NameIndex};
use crate::rwkv::{self, RwkvError};

pub use error::ModelFileError;
pub use lazy::{LazyTensor, TransformError};
pub use weight::WeightError;
pub(crate) use weight::weight;

/// The source of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelFormat {
    /// A GGUF file.
    Gguf {
        /// The version of the format.
        version: u32,
        /// The alignment of the data of tensors, in bytes.
        alignment: u32,
        /// The number of shards; 1 if the file is not split.
        shards: usize,
    },
    /// A folder in the form of Hugging Face's transformers.
    HuggingFace,
    /// A safetensors file of RWKV-7 under the names of its authors.
    Rwkv,
}

impl fmt::Display for ModelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gguf {
                version, shards: 1, ..
            } => write!(f, "GGUF version {version}"),
            Self::Gguf {
                version, shards, ..
            } => {
                write!(f, "GGUF version {version} in {shards} shards")
            }
            Self::HuggingFace => f.write_str("Hugging Face folder"),
            Self::Rwkv => f.write_str("RWKV-7 safetensors"),
        }
    }
}

/// A model: its metadata under the keys of the GGUF specification, and its tensors under the names
/// of llama.cpp.
///
/// ```no_run
/// use kovar_formats::ModelFile;
///
/// let model = ModelFile::open("model.gguf")?;
/// for tensor in model.tensors() {
///     println!("{} {} {:?}", tensor.name(), tensor.dtype(), tensor.dims());
/// }
/// # Ok::<(), kovar_formats::ModelFileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ModelFile {
    format: ModelFormat,
    metadata: Metadata,
    tensors: Vec<ModelTensor>,
    index: NameIndex,
    file_len: u64,
    files: Vec<PathBuf>,
}

/// A tensor of a [`ModelFile`].
#[derive(Clone, Debug)]
pub struct ModelTensor {
    name: Box<str>,
    data: LazyTensor,
    offset: Option<usize>,
}

impl ModelFile {
    /// Opens the model at `path`, which is one of
    /// - a GGUF file, or any shard of a split one;
    /// - the folder of a Hugging Face model (`config.json`, `model.safetensors` or its shards,
    ///   `tokenizer.json`), or its safetensors file;
    /// - a safetensors file of RWKV-7 under the names of its authors, or its folder, which also has
    ///   `tokenizer.json` or `rwkv_vocab_v20230424.txt`.
    ///
    /// Only headers are read. [`map_file`](crate::map_file) says what must not happen to a mapped
    /// file.
    ///
    /// # Errors
    /// See [`ModelFileError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelFileError> {
        let path = path.as_ref();
        let attributes = std::fs::metadata(path).map_err(|source| ModelFileError::Open {
            path: path.to_owned(),
            source,
        })?;
        let kind = |found| ModelFileError::Kind {
            path: path.to_owned(),
            found,
        };
        match attributes.len() {
            _ if attributes.is_dir() => match rwkv::find(path) {
                Some(file) => rwkv::open(&file),
                None => hugging_face::open(path),
            },
            _ if !attributes.is_file() => Err(kind("not a regular file")),
            0 => Err(kind("empty")),
            _ if rwkv::is_safetensors(path) => {
                match (rwkv::open(path), hugging_face::folder_of(path)) {
                    (Err(ModelFileError::Rwkv(RwkvError::NotRwkv7 { .. })), Some(folder)) => {
                        hugging_face::open(folder)
                    }
                    (opened, _) => opened,
                }
            }
            _ => {
                let (files, shards) = open_split(path)?.into_iter().unzip();
                Ok(Self::from_shards(shards)?.with_files(files))
            }
        }
    }

    /// A model of `format` with the given metadata and tensors, whose files have `file_len` bytes.
    ///
    /// # Errors
    /// A key or a tensor occurs twice.
    pub fn new(
        format: ModelFormat,
        metadata: Vec<(String, Value)>,
        tensors: Vec<ModelTensor>,
        file_len: u64,
    ) -> Result<Self, ModelFileError> {
        let entries = metadata.into_iter().map(|(key, value)| Entry {
            key: key.into(),
            value,
        });
        let metadata = Metadata::new(entries.collect()).map_err(|error| match error {
            IndexError::Duplicate(key) => ModelFileError::DuplicateKey { key },
            IndexError::TooMany => ModelFileError::TooManyEntries,
        })?;
        Self::with_metadata(format, metadata, tensors, file_len)
    }

    fn with_metadata(
        format: ModelFormat,
        metadata: Metadata,
        tensors: Vec<ModelTensor>,
        file_len: u64,
    ) -> Result<Self, ModelFileError> {
        let index = NameIndex::new(&tensors, |tensor| &tensor.name);
        let index = index.map_err(|error| match error {
            IndexError::Duplicate(tensor) => ModelFileError::DuplicateTensor { tensor },
            IndexError::TooMany => ModelFileError::TooManyEntries,
        })?;
        Ok(Self {
            format,
            metadata,
            tensors,
            index,
            file_len,
            files: Vec::new(),
        })
    }

    /// The model with the paths of the files that it was read from.
    pub(crate) fn with_files(mut self, files: Vec<PathBuf>) -> Self {
        self.files = files;
        self
    }

    /// The model in the shards of a split file, which were checked to belong together.
    fn from_shards(shards: Vec<Gguf>) -> Result<Self, ModelFileError> {
        let n_shards = shards.len();
        let mut files = shards.into_iter().map(Self::from);
        let Some(mut first) = files.next() else {
            return Err(ModelFileError::TooManyEntries);
        };
        if n_shards == 1 {
            return Ok(first);
        }
        if let ModelFormat::Gguf { shards, .. } = &mut first.format {
            *shards = n_shards;
        }
        for file in files {
            first.file_len = first.file_len.saturating_add(file.file_len);
            first.tensors.extend(file.tensors);
        }
        let metadata = first.metadata.without(SPLIT_PREFIX);
        Self::with_metadata(first.format, metadata, first.tensors, first.file_len)
    }

    /// The source of the model.
    pub fn format(&self) -> ModelFormat {
        self.format
    }

    /// The alignment of tensor data in a GGUF file of this model, in bytes. A power of two.
    pub fn alignment(&self) -> u32 {
        match self.format {
            ModelFormat::Gguf { alignment, .. } => alignment,
            ModelFormat::HuggingFace | ModelFormat::Rwkv => DEFAULT_ALIGNMENT,
        }
    }

    /// Bytes of all files with tensors.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The files that belong to the model, including those of the tokenizer. Empty for a model in
    /// memory.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors in the order of the source.
    pub fn tensors(&self) -> std::slice::Iter<'_, ModelTensor> {
        self.tensors.iter()
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&ModelTensor> {
        self.index.find(&self.tensors, name, |tensor| &tensor.name)
    }
}

impl From<Gguf> for ModelFile {
    fn from(file: Gguf) -> Self {
        let format = ModelFormat::Gguf {
            version: file.version(),
            alignment: file.alignment(),
            shards: 1,
        };
        let file_len = file.file_len() as u64;
        let (metadata, tensors, index) = file.into_header();
        Self {
            format,
            metadata,
            tensors: tensors.into_iter().map(ModelTensor::from).collect(),
            index,
            file_len,
            files: Vec::new(),
        }
    }
}

impl ModelTensor {
    /// The tensor `data` under the name `name`.
    pub fn new(name: impl Into<Box<str>>, data: LazyTensor) -> Self {
        Self {
            name: name.into(),
            data,
            offset: None,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// The dims, row-major, outermost first. No dim is zero.
    pub fn dims(&self) -> &[usize] {
        self.data.dims()
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.data.elements()
    }

    /// Bytes of the data.
    pub fn size(&self) -> usize {
        self.data.size()
    }

    /// The offset of the data in its GGUF file, in bytes; `None` for other sources.
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }

    /// The data: `size()` bytes in rows of the innermost dim. It is a window of the file if the
    /// source has it in this form, and is computed by this call otherwise.
    ///
    /// # Errors
    /// The elements cannot be decoded.
    pub fn bytes(&self) -> Result<HostBytes, CodecError> {
        self.data.bytes()
    }
}

impl From<TensorInfo> for ModelTensor {
    fn from(tensor: TensorInfo) -> Self {
        let offset = tensor.range().start;
        let (name, data) = tensor.into_lazy();
        Self {
            name,
            data,
            offset: Some(offset),
        }
    }
}
