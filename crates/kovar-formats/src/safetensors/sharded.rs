//! Tensors spread over several safetensors files by an index.
//!
//! Source: `model.safetensors.index.json` of Hugging Face's transformers: an object whose
//! `weight_map` gives the file of each tensor, in the folder of the index.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::{MAX_HEADER_BYTES, SafeTensorInfo, SafeTensors, SafeTensorsError};
use crate::error::FileReadError;
use crate::small_file::read_json;

/// Why a sharded model could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] FileReadError),
    /// The index names no files.
    #[error("{} names no tensors", path.display())]
    Empty {
        /// The index.
        path: PathBuf,
    },
    /// The name of a shard is not that of another file in the folder of the index.
    #[error(
        "{} puts tensor {tensor:?} into {shard:?}, which is not another file in its folder",
        path.display()
    )]
    ShardName {
        /// The index.
        path: PathBuf,
        /// A tensor in the shard.
        tensor: String,
        /// The name of the shard.
        shard: String,
    },
    /// A shard is missing or damaged.
    #[error("{}", path.display())]
    Shard {
        /// The shard.
        path: PathBuf,
        /// What is wrong with it.
        source: SafeTensorsError,
    },
    /// A tensor is not in the shard that the index names.
    #[error("{} lacks tensor {tensor:?}, which the index puts there", path.display())]
    MissingTensor {
        /// The shard.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// A tensor is in two shards.
    #[error("tensor {tensor:?} is in {} and in {}", first.display(), second.display())]
    DuplicateTensor {
        /// The tensor.
        tensor: String,
        /// A shard that has it.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Open safetensors files whose tensors are one set.
#[derive(Clone, Debug)]
pub struct Shards {
    files: Vec<SafeTensors>,
    paths: Vec<PathBuf>,
}

impl Shards {
    /// Opens the files that the index at `path` names. Tensors in these files that the index does
    /// not name also belong to the set.
    ///
    /// # Errors
    /// The index is damaged or names a file outside its folder, a shard is damaged or lacks a
    /// tensor, or two shards have the same tensor.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ShardError> {
        let path = path.as_ref();
        let index: Index = read_json(path, MAX_HEADER_BYTES)?;
        let mut shards: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (tensor, shard) in &index.weight_map {
            if !is_in_folder_of(path, shard) {
                return Err(ShardError::ShardName {
                    path: path.to_owned(),
                    tensor: tensor.clone(),
                    shard: shard.clone(),
                });
            }
            shards.entry(shard).or_default().push(tensor);
        }
        if shards.is_empty() {
            return Err(ShardError::Empty {
                path: path.to_owned(),
            });
        }
        let mut files = Vec::with_capacity(shards.len());
        let mut paths = vec![path.to_owned()];
        let mut owners: HashMap<Box<str>, PathBuf> = HashMap::new();
        for (shard, wanted) in shards {
            let path = path.with_file_name(shard);
            let file = SafeTensors::open(&path).map_err(|source| ShardError::Shard {
                path: path.clone(),
                source,
            })?;
            if let Some(tensor) = wanted.iter().find(|name| file.tensor(name).is_none()) {
                return Err(ShardError::MissingTensor {
                    path,
                    tensor: (*tensor).to_owned(),
                });
            }
            for tensor in file.tensors() {
                if let Some(first) = owners.insert(tensor.name().into(), path.clone()) {
                    return Err(ShardError::DuplicateTensor {
                        tensor: tensor.name().to_owned(),
                        first,
                        second: path,
                    });
                }
            }
            paths.push(path);
            files.push(file);
        }
        Ok(Self { files, paths })
    }

    /// The tensors of all files.
    pub fn tensors(&self) -> impl Iterator<Item = &SafeTensorInfo> {
        self.files.iter().flat_map(SafeTensors::tensors)
    }

    /// The index and the files that it names; empty for a single file without an index.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Bytes of all files.
    pub fn file_len(&self) -> u64 {
        self.files.iter().map(|file| file.file_len() as u64).sum()
    }
}

/// A single file without an index.
impl From<SafeTensors> for Shards {
    fn from(file: SafeTensors) -> Self {
        Self {
            files: vec![file],
            paths: Vec::new(),
        }
    }
}

/// Whether `shard` is a plain file name, so that it lies in the folder of `index`, and not `index`.
fn is_in_folder_of(index: &Path, shard: &str) -> bool {
    let mut components = Path::new(shard).components();
    let is_name = matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(name)), None) if name == shard
    );
    is_name
        && !shard.contains(['/', '\\', ':', '\0'])
        && index.file_name().is_none_or(|own| own != shard)
}
