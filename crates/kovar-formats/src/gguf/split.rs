//! GGUF files that are split into parts, `NAME-00001-of-00003.gguf` and so on.
//!
//! Source: llama.cpp's `gguf-split`. The first part has the metadata of the whole; every part has
//! `split.no` (counted from 0), `split.count` and `split.tensors.count` (of all parts together).

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Gguf, GgufError, MetadataError};

/// What the keys of split files begin with.
pub(crate) const SPLIT_PREFIX: &str = "split.";
/// The metadata key of a part's number, counted from 0.
pub const SPLIT_NO_KEY: &str = "split.no";
/// The metadata key of the number of parts.
pub const SPLIT_COUNT_KEY: &str = "split.count";
/// The metadata key of the number of tensors in all parts together.
pub const SPLIT_TENSORS_KEY: &str = "split.tensors.count";

const ARCHITECTURE_KEY: &str = "general.architecture";

/// Why the parts of a split file do not make a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// A part is named otherwise than its number in the set asks for, so the others cannot be found.
    #[error(
        "{} says that it is part {} of {count}, \
         but its name does not end in {:?}",
        path.display(), no.saturating_add(1), suffix(*no, *count)
    )]
    Name {
        /// The part.
        path: PathBuf,
        /// Its number, counted from 0.
        no: u32,
        /// The number of parts that it names.
        count: u32,
    },
    /// A part is missing or damaged.
    #[error("part {} of {count}, {}", no.saturating_add(1), path.display())]
    Part {
        /// The part.
        path: PathBuf,
        /// Its number, counted from 0.
        no: u32,
        /// The number of parts.
        count: u32,
        /// What is wrong with it.
        source: GgufError,
    },
    /// The metadata of a part that tell its place are missing or of a wrong kind.
    #[error("{}", path.display())]
    Metadata {
        /// The part.
        path: PathBuf,
        /// What is wrong with them.
        source: MetadataError,
    },
    /// A part that is another than its name says, or of another set.
    #[error("{}: `{key}` is {found}, expected {expected}", path.display())]
    Mismatch {
        /// The part.
        path: PathBuf,
        /// The metadata key.
        key: &'static str,
        /// Its value.
        found: u32,
        /// The value that it must have.
        expected: u32,
    },
    /// A part is of a model of another architecture.
    #[error(
        "{}: `general.architecture` is {found:?}, but {expected:?} in the first part",
        path.display()
    )]
    Architecture {
        /// The part.
        path: PathBuf,
        /// Its architecture.
        found: String,
        /// That of the first part.
        expected: String,
    },
    /// A tensor is in two parts.
    #[error("tensor {tensor:?} is in {} and in {}", first.display(), second.display())]
    DuplicateTensor {
        /// The name.
        tensor: String,
        /// A part that has it.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
    /// The parts together do not have as many tensors as they say.
    #[error("the {parts} parts of {} have {found} tensors, expected {expected}", path.display())]
    TensorCount {
        /// The first part.
        path: PathBuf,
        /// The number of parts.
        parts: u32,
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

/// What a part says of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    no: u32,
    count: u32,
    tensors: u32,
}

/// The path of part `no` of `count` of the set whose parts begin with `prefix`.
pub(crate) fn part_path(prefix: &Path, no: u32, count: u32) -> PathBuf {
    let mut path = OsString::from(prefix);
    path.push(suffix(no, count));
    path.into()
}

fn suffix(no: u32, count: u32) -> String {
    format!("-{:05}-of-{count:05}.gguf", no.saturating_add(1))
}

/// Opens the file at `path`, and where it is a part of a split one all parts, in order.
pub(crate) fn open_split(path: &Path) -> Result<Vec<(PathBuf, Gguf)>, OpenSplitError> {
    let file = Gguf::open(path)?;
    let named = Named {
        path: path.to_owned(),
        file,
    };
    let Some(place) = named.place()? else {
        return Ok(vec![named.into()]);
    };
    if place.count <= 1 {
        return Ok(vec![named.into()]);
    }
    let prefix = prefix(path, place).ok_or_else(|| SplitError::Name {
        path: path.to_owned(),
        no: place.no,
        count: place.count,
    })?;
    let mut given = Some(named);
    let mut parts = Vec::new();
    for no in 0..place.count {
        let part = match given.take_if(|_| no == place.no) {
            Some(part) => part,
            None => Named::open(part_path(&prefix, no, place.count), no, place.count)?,
        };
        part.check(no, place)?;
        parts.push(part);
    }
    check_set(&parts, place)?;
    Ok(parts.into_iter().map(Named::into).collect())
}

struct Named {
    path: PathBuf,
    file: Gguf,
}

impl From<Named> for (PathBuf, Gguf) {
    fn from(named: Named) -> Self {
        (named.path, named.file)
    }
}

impl Named {
    fn open(path: PathBuf, no: u32, count: u32) -> Result<Self, SplitError> {
        match Gguf::open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(SplitError::Part {
                path,
                no,
                count,
                source,
            }),
        }
    }

    /// What the file says of its place; `None` if it is not split.
    fn place(&self) -> Result<Option<Place>, SplitError> {
        let metadata = self.file.metadata();
        let read = || -> Result<Option<Place>, MetadataError> {
            let Some(count) = metadata.get_u32(SPLIT_COUNT_KEY)? else {
                return Ok(None);
            };
            // A file in one piece may leave the rest out.
            if count <= 1 {
                return Ok(None);
            }
            Ok(Some(Place {
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

    /// Fails unless the file is part `no` of the set of `expected`.
    fn check(&self, no: u32, expected: Place) -> Result<(), SplitError> {
        let found = self.place()?.unwrap_or(Place {
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

fn check_set(parts: &[Named], place: Place) -> Result<(), SplitError> {
    let Some(first) = parts.first() else {
        return Ok(());
    };
    let expected = first.architecture()?.unwrap_or_default();
    let mut owners: HashMap<&str, &Path> = HashMap::new();
    for part in parts {
        // Only the first part has to name it.
        if let Some(found) = part.architecture()?.filter(|&found| found != expected) {
            return Err(SplitError::Architecture {
                path: part.path.clone(),
                found: found.to_owned(),
                expected: expected.to_owned(),
            });
        }
        for tensor in part.file.tensors() {
            if let Some(first) = owners.insert(tensor.name(), &part.path) {
                return Err(SplitError::DuplicateTensor {
                    tensor: tensor.name().to_owned(),
                    first: first.to_owned(),
                    second: part.path.clone(),
                });
            }
        }
    }
    if u32::try_from(owners.len()) == Ok(place.tensors) {
        return Ok(());
    }
    Err(SplitError::TensorCount {
        path: first.path.clone(),
        parts: place.count,
        found: owners.len(),
        expected: place.tensors,
    })
}

/// `path` without the suffix of its place; `None` if it has another one.
fn prefix(path: &Path, place: Place) -> Option<PathBuf> {
    let name = without_suffix(path.file_name()?, &suffix(place.no, place.count))?;
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
