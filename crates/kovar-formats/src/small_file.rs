//! The small files of a model: configs, tokenizers, vocabularies and indices.

use std::io::ErrorKind;
use std::path::Path;

use kovar_core::HostBytes;
use serde::de::DeserializeOwned;

use crate::error::FileReadError;
use crate::mmap::map_file;

/// The bytes of the file at `path`, at most `most`.
fn read(path: &Path, most: usize) -> Result<HostBytes, FileReadError> {
    let bytes = map_file(path).map_err(|source| FileReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() > most {
        return Err(FileReadError::TooLarge {
            path: path.to_owned(),
            len: bytes.len(),
            most,
        });
    }
    Ok(bytes)
}

/// The text in the file at `path`, at most `most` bytes.
pub(crate) fn read_text(path: &Path, most: usize) -> Result<String, FileReadError> {
    let bytes = read(path, most)?;
    match std::str::from_utf8(bytes.as_slice()) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(FileReadError::InvalidUtf8 {
            path: path.to_owned(),
            valid_up_to: error.valid_up_to(),
        }),
    }
}

/// The value in the JSON file at `path`, at most `most` bytes.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path, most: usize) -> Result<T, FileReadError> {
    let bytes = read(path, most)?;
    serde_json::from_slice(bytes.as_slice()).map_err(|source| FileReadError::Json {
        path: path.to_owned(),
        source,
    })
}

/// `None` in place of the error of a file that does not exist.
pub(crate) fn optional<T>(result: Result<T, FileReadError>) -> Result<Option<T>, FileReadError> {
    match result {
        Err(FileReadError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}
