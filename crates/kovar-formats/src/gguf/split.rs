//! GGUF files that are split into shards, `NAME-00001-of-00003.gguf` and so on.
//!
//! Source: llama.cpp's `gguf-split`. The first shard has the metadata of the model. Every shard has
//! `split.no` (counted from 0), `split.count` and `split.tensors.count` (of all shards together).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Gguf, GgufError, MetadataError};

/// The beginning of the keys that describe a split.
pub(crate) const SPLIT_PREFIX: &str = "split.";
/// The metadata key of the number of a shard, counted from 0.
pub const SPLIT_NO_KEY: &str = "split.no";
/// The metadata key of the number of shards.
pub const SPLIT_COUNT_KEY: &str = "split.count";
/// The metadata key of the number of tensors in all shards together.
pub const SPLIT_TENSORS_KEY: &str = "split.tensors.count";

const ARCHITECTURE_KEY: &str = "general.architecture";

/// Why the shards of a split file are not one model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The name of a shard does not fit its number, so the other shards cannot be found.
    #[error(
        "{} says that it is shard {} of {count}, \
         but its name does not end in {:?}",
        path.display(), no.saturating_add(1), suffix(*no, *count)
    )]
    Name {
        /// The shard.
        path: PathBuf,
        /// Its number, counted from 0.
        no: u32,
        /// The number of shards according to its metadata.
        count: u32,
    },
    /// A shard is missing or damaged.
    #[error("shard {} of {count}, {}", no.saturating_add(1), path.display())]
    Shard {
        /// The shard.
        path: PathBuf,
        /// Its number, counted from 0.
        no: u32,
        /// The number of shards.
        count: u32,
        /// What is wrong with it.
        source: GgufError,
    },
    /// The `split.*` metadata of a shard are missing or of a wrong kind.
    #[error("{}", path.display())]
    Metadata {
        /// The shard.
        path: PathBuf,
        /// What is wrong with them.
        source: MetadataError,
    },
    /// The `split.*` metadata of a shard contradict its name or the first shard.
    #[error("{}: `{key}` is {found}, expected {expected}", path.display())]
    Mismatch {
        /// The shard.
        path: PathBuf,
        /// The metadata key.
        key: &'static str,
        /// Its value.
        found: u32,
        /// The value that it must have.
        expected: u32,
    },
    /// A shard belongs to a model of another architecture.
    #[error(
        "{}: `general.architecture` is {found:?}, but {expected:?} in the first shard",
        path.display()
    )]
    Architecture {
        /// The shard.
        path: PathBuf,
        /// Its architecture.
        found: String,
        /// The architecture in the first shard.
        expected: String,
    },
    /// A tensor is in two shards.
    #[error("tensor {tensor:?} is in {} and in {}", first.display(), second.display())]
    DuplicateTensor {
        /// The name.
        tensor: String,
        /// A shard that has it.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
    /// The number of tensors in all shards is not `split.tensors.count`.
    #[error("the {shards} shards of {} have {found} tensors, expected {expected}", path.display())]
    TensorCount {
        /// The first shard.
        path: PathBuf,
        /// The number of shards.
        shards: u32,
        /// Tensors found.
        found: usize,
        /// The value of `split.tensors.count`.
        expected: u32,
    },
}

/// Why a file that may be split could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenSplitError {
    #[error(transparent)]
    File(#[from] GgufError),
    #[error(transparent)]
    Split(#[from] SplitError),
}

/// The `split.*` metadata of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SplitInfo {
    no: u32,
    count: u32,
    tensors: u32,
}

/// The path of shard `no` of `count`, whose name begins with `prefix`.
pub(crate) fn shard_path(prefix: &Path, no: u32, count: u32) -> PathBuf {
    let mut path = OsString::from(prefix);
    path.push(suffix(no, count));
    path.into()
}

fn suffix(no: u32, count: u32) -> String {
    format!("-{:05}-of-{count:05}.gguf", no.saturating_add(1))
}

/// Opens the file at `path`; if it is a shard of a split file, all shards in order.
pub(crate) fn open_split(path: &Path) -> Result<Vec<(PathBuf, Gguf)>, OpenSplitError> {
    let file = Gguf::open(path)?;
    let shard = Shard {
        path: path.to_owned(),
        file,
    };
    let Some(split) = shard.split_info()? else {
        return Ok(vec![shard.into()]);
    };
    let prefix = prefix(path, split).ok_or_else(|| SplitError::Name {
        path: path.to_owned(),
        no: split.no,
        count: split.count,
    })?;
    let mut given = Some(shard);
    let mut shards = Vec::new();
    for no in 0..split.count {
        let shard = match given.take_if(|_| no == split.no) {
            Some(shard) => shard,
            None => Shard::open(shard_path(&prefix, no, split.count), no, split.count)?,
        };
        shard.check(no, split)?;
        shards.push(shard);
    }
    check_set(&shards, split)?;
    Ok(shards.into_iter().map(Shard::into).collect())
}

struct Shard {
    path: PathBuf,
    file: Gguf,
}

impl From<Shard> for (PathBuf, Gguf) {
    fn from(shard: Shard) -> Self {
        (shard.path, shard.file)
    }
}

impl Shard {
    fn open(path: PathBuf, no: u32, count: u32) -> Result<Self, SplitError> {
        match Gguf::open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(SplitError::Shard {
                path,
                no,
                count,
                source,
            }),
        }
    }

    /// The `split.*` metadata; `None` if the file is not split.
    fn split_info(&self) -> Result<Option<SplitInfo>, SplitError> {
        let metadata = self.file.metadata();
        let read = || -> Result<Option<SplitInfo>, MetadataError> {
            let Some(count) = metadata.get_u32(SPLIT_COUNT_KEY)? else {
                return Ok(None);
            };
            // A file that is not split may lack the other keys.
            if count <= 1 {
                return Ok(None);
            }
            Ok(Some(SplitInfo {
                no: metadata.require_u32(SPLIT_NO_KEY)?,
                count,
                tensors: metadata.require_u32(SPLIT_TENSORS_KEY)?,
            }))
        };
        read().map_err(|source| SplitError::Metadata {
            path: self.path.clone(),
            source,
        })
    }

    /// Fails unless the file is shard `no` of the split file that `expected` describes.
    fn check(&self, no: u32, expected: SplitInfo) -> Result<(), SplitError> {
        let found = self.split_info()?.unwrap_or(SplitInfo {
            no: 0,
            count: 1,
            tensors: 0,
        });
        let rows = [
            (SPLIT_COUNT_KEY, found.count, expected.count),
            (SPLIT_NO_KEY, found.no, no),
            (SPLIT_TENSORS_KEY, found.tensors, expected.tensors),
        ];
        match rows.into_iter().find(|(_, found, wanted)| found != wanted) {
            None => Ok(()),
            Some((key, found, expected)) => Err(SplitError::Mismatch {
                path: self.path.clone(),
                key,
                found,
                expected,
            }),
        }
    }

    fn architecture(&self) -> Result<Option<&str>, SplitError> {
        let name = self.file.metadata().get_str(ARCHITECTURE_KEY);
        name.map_err(|source| SplitError::Metadata {
            path: self.path.clone(),
            source,
        })
    }
}

fn check_set(shards: &[Shard], split: SplitInfo) -> Result<(), SplitError> {
    let Some(first) = shards.first() else {
        return Ok(());
    };
    let expected = first.architecture()?.unwrap_or_default();
    let mut owners: HashMap<&str, &Path> = HashMap::new();
    for shard in shards {
        // Only the first shard must have this key.
        if let Some(found) = shard.architecture()?.filter(|&found| found != expected) {
            return Err(SplitError::Architecture {
                path: shard.path.clone(),
                found: found.to_owned(),
                expected: expected.to_owned(),
            });
        }
        for tensor in shard.file.tensors() {
            if let Some(first) = owners.insert(tensor.name(), &shard.path) {
                return Err(SplitError::DuplicateTensor {
                    tensor: tensor.name().to_owned(),
                    first: first.to_owned(),
                    second: shard.path.clone(),
                });
            }
        }
    }
    if u32::try_from(owners.len()) == Ok(split.tensors) {
        return Ok(());
    }
    Err(SplitError::TensorCount {
        path: first.path.clone(),
        shards: split.count,
        found: owners.len(),
        expected: split.tensors,
    })
}

/// `path` without the suffix of its number; `None` if it has another suffix.
fn prefix(path: &Path, split: SplitInfo) -> Option<PathBuf> {
    let name = without_suffix(path.file_name()?, &suffix(split.no, split.count))?;
    Some(path.with_file_name(name))
}

#[cfg(unix)]
fn without_suffix(name: &OsStr, suffix: &str) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;

    let prefix = name.as_bytes().strip_suffix(suffix.as_bytes())?;
    Some(OsStr::from_bytes(prefix).to_owned())
}

#[cfg(not(unix))]
fn without_suffix(name: &OsStr, suffix: &str) -> Option<OsString> {
    Some(name.to_str()?.strip_suffix(suffix)?.into())
}
