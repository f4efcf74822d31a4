//! The JSON files of a folder, and their values by key.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::HuggingFaceError;
use crate::error::FileReadError;
use crate::small_file::{optional, read_json};

/// The most bytes of a config.
const MAX_CONFIG_BYTES: usize = 16 << 20;
/// The largest size in a config.
const MAX_SIZE: u64 = crate::MAX_SIZE as u64;
/// The most characters of a value in an error.
const SHOWN: usize = 80;

/// An object of a config file. A key whose value is null counts as absent.
#[derive(Clone, Debug)]
pub(super) struct Config {
    path: PathBuf,
    /// The keys that lead to the object, each followed by a dot.
    prefix: String,
    values: Map<String, Value>,
}

impl Config {
    /// The object in the file at `path`; `None` if there is no file.
    pub(super) fn read(path: PathBuf) -> Result<Option<Self>, FileReadError> {
        let values = optional(read_json(&path, MAX_CONFIG_BYTES))?;
        Ok(values.map(|values| Self {
            values,
            ..Self::empty(path)
        }))
    }

    /// The object in the file at `path`; one without keys if there is no file.
    pub(super) fn read_or_empty(path: PathBuf) -> Result<Self, FileReadError> {
        Ok(Self::read(path.clone())?.unwrap_or_else(|| Self::empty(path)))
    }

    fn empty(path: PathBuf) -> Self {
        Self {
            path,
            prefix: String::new(),
            values: Map::new(),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// Whether the key exists, even if its value is null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        let given = self.values.iter().filter(|(_, value)| !value.is_null());
        given.map(|(key, _)| key.as_str())
    }

    pub(super) fn missing(&self, key: &str) -> HuggingFaceError {
        HuggingFaceError::Missing {
            path: self.path.clone(),
            key: format!("{}{key}", self.prefix),
        }
    }

    /// The error of a value that is not valid for its key.
    pub(super) fn wrong(&self, key: &str, expected: &'static str) -> HuggingFaceError {
        HuggingFaceError::Value {
            path: self.path.clone(),
            key: format!("{}{key}", self.prefix),
            value: shown(self.values.get(key)),
            expected,
        }
    }

    /// The error of a value that requires a feature that kovar lacks.
    pub(super) fn unsupported(&self, key: &str) -> HuggingFaceError {
        HuggingFaceError::Unsupported {
            path: self.path.clone(),
            key: format!("{}{key}", self.prefix),
            value: shown(self.values.get(key)),
        }
    }

    /// Fails if `key` has another value than `allowed`.
    pub(super) fn allow_only(&self, key: &str, allowed: &Value) -> Result<(), HuggingFaceError> {
        match self.get(key) {
            Some(value) if value != allowed => Err(self.unsupported(key)),
            _ => Ok(()),
        }
    }

    /// A whole number that fits `u32`.
    pub(super) fn integer(&self, key: &str) -> Result<Option<u32>, HuggingFaceError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let fits = value.as_u64().and_then(|value| u32::try_from(value).ok());
        fits.map(Some)
            .ok_or_else(|| self.wrong(key, "a whole number that is not negative, below 2^32"))
    }

    /// A size from 1 to 2^20.
    pub(super) fn size(&self, key: &str) -> Result<Option<u32>, HuggingFaceError> {
        match self.get(key).map(Value::as_u64) {
            None => Ok(None),
            Some(Some(size @ 1..=MAX_SIZE)) => Ok(Some(size as u32)),
            Some(_) => Err(self.wrong(key, "a whole number between 1 and 1048576")),
        }
    }

    pub(super) fn require_size(&self, key: &str) -> Result<u32, HuggingFaceError> {
        self.size(key)?.ok_or_else(|| self.missing(key))
    }

    /// A finite number above 0.
    pub(super) fn positive(&self, key: &str) -> Result<Option<f64>, HuggingFaceError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value.as_f64().filter(|x| x.is_finite() && *x > 0.0);
        number
            .map(Some)
            .ok_or_else(|| self.wrong(key, "a number above 0"))
    }

    pub(super) fn require_positive(&self, key: &str) -> Result<f64, HuggingFaceError> {
        self.positive(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn bool(&self, key: &str) -> Result<Option<bool>, HuggingFaceError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let flag = value.as_bool();
        flag.map(Some)
            .ok_or_else(|| self.wrong(key, "true or false"))
    }

    pub(super) fn str(&self, key: &str) -> Result<Option<&str>, HuggingFaceError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = value.as_str();
        text.map(Some).ok_or_else(|| self.wrong(key, "a text"))
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<&[Value]>, HuggingFaceError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(_) => Err(self.wrong(key, "a list")),
        }
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Self>, HuggingFaceError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(values)) => Ok(Some(Self {
                path: self.path.clone(),
                prefix: format!("{}{key}.", self.prefix),
                values: values.clone(),
            })),
            Some(_) => Err(self.wrong(key, "an object")),
        }
    }
}

/// A value in the form for errors: JSON, shortened.
pub(super) fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "null".to_owned(), Value::to_string);
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}
