//! The key-value pairs of a GGUF file.

use super::value::{Array, StringArray, Value};
use crate::index::{IndexError, NameIndex};

/// The metadata of a file, in the order of the file.
///
/// The getters return `Ok(None)` if the file lacks the key, and an error if the value is of another
/// kind. The integer getters accept a value of any integer kind if it fits.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    entries: Vec<Entry>,
    index: NameIndex,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Box<str>,
    pub(crate) value: Value,
}

/// Why a metadata value could not be read as the requested type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The file has no such key.
    #[error("metadata `{key}` is missing")]
    Missing {
        /// The key.
        key: String,
    },
    /// The value is of another kind.
    #[error("metadata `{key}` is {found}, expected {expected}")]
    WrongKind {
        /// The key.
        key: String,
        /// The requested kind.
        expected: &'static str,
        /// The kind in the file.
        found: String,
    },
    /// The integer does not fit.
    #[error("metadata `{key}` is {value}, which does not fit {expected}")]
    OutOfRange {
        /// The key.
        key: String,
        /// The value in the file.
        value: i128,
        /// The requested type.
        expected: &'static str,
    },
    /// An element of an array of integers does not fit.
    #[error("metadata `{key}`[{index}] is {value}, which does not fit {expected}")]
    ElementOutOfRange {
        /// The key.
        key: String,
        /// Position of the element.
        index: usize,
        /// The value in the file.
        value: i128,
        /// The requested type.
        expected: &'static str,
    },
}

impl Metadata {
    pub(crate) fn new(entries: Vec<Entry>) -> Result<Self, IndexError> {
        let index = NameIndex::new(&entries, |entry| &entry.key)?;
        Ok(Self { entries, index })
    }

    /// The metadata without the keys that begin with `prefix`.
    pub(crate) fn without(self, prefix: &str) -> Self {
        let kept = |entry: &Entry| !entry.key.starts_with(prefix);
        let entries = self.entries.into_iter().filter(kept).collect();
        // A subset of distinct keys is distinct, so this cannot fail.
        Self::new(entries).unwrap_or_default()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + '_ {
        self.entries.iter().map(|entry| (&*entry.key, &entry.value))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let entry = self.index.find(&self.entries, key, |entry| &entry.key)?;
        Some(&entry.value)
    }

    /// Whether the file has `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// An integer that fits `u32`.
    ///
    /// # Errors
    /// The value is not an integer or does not fit.
    pub fn get_u32(&self, key: &str) -> Result<Option<u32>, MetadataError> {
        self.integer(key, "u32")
    }

    /// An integer that fits `i32`.
    ///
    /// # Errors
    /// The value is not an integer or does not fit.
    pub fn get_i32(&self, key: &str) -> Result<Option<i32>, MetadataError> {
        self.integer(key, "i32")
    }

    /// An integer that fits `u64`.
    ///
    /// # Errors
    /// The value is not an integer or does not fit.
    pub fn get_u64(&self, key: &str) -> Result<Option<u64>, MetadataError> {
        self.integer(key, "u64")
    }

    /// An integer that fits `usize`.
    ///
    /// # Errors
    /// The value is not an integer or does not fit.
    pub fn get_usize(&self, key: &str) -> Result<Option<usize>, MetadataError> {
        self.integer(key, "usize")
    }

    /// An `f32`, or an `f64` rounded to the nearest `f32`.
    ///
    /// # Errors
    /// The value is not a float.
    pub fn get_f32(&self, key: &str) -> Result<Option<f32>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::F32(v)) => Ok(Some(*v)),
            Some(Value::F64(v)) => Ok(Some(*v as f32)),
            Some(other) => Err(wrong_kind(key, "f32", other)),
        }
    }

    /// A text.
    ///
    /// # Errors
    /// The value is not a string.
    pub fn get_str(&self, key: &str) -> Result<Option<&str>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(v)) => Ok(Some(v)),
            Some(other) => Err(wrong_kind(key, "string", other)),
        }
    }

    /// A boolean.
    ///
    /// # Errors
    /// The value is not a boolean.
    pub fn get_bool(&self, key: &str) -> Result<Option<bool>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(v)) => Ok(Some(*v)),
            Some(other) => Err(wrong_kind(key, "bool", other)),
        }
    }

    /// An array of texts.
    ///
    /// # Errors
    /// The value is not an array of strings.
    pub fn get_str_array(&self, key: &str) -> Result<Option<&StringArray>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(Array::String(v))) => Ok(Some(v)),
            Some(other) => Err(wrong_kind(key, "array of string", other)),
        }
    }

    /// An array of `f32`, or of `f64` rounded to the nearest `f32`.
    ///
    /// # Errors
    /// The value is not an array of floats.
    pub fn get_f32_array(&self, key: &str) -> Result<Option<Vec<f32>>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(Array::F32(v))) => Ok(Some(v.clone())),
            Some(Value::Array(Array::F64(v))) => Ok(Some(v.iter().map(|&x| x as f32).collect())),
            Some(other) => Err(wrong_kind(key, "array of f32", other)),
        }
    }

    /// An array of 8-bit integers, signed or not, as bytes.
    ///
    /// # Errors
    /// The value is not an array of 8-bit integers.
    pub fn get_bytes(&self, key: &str) -> Result<Option<Vec<u8>>, MetadataError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(Array::U8(v))) => Ok(Some(v.clone())),
            Some(Value::Array(Array::I8(v))) => Ok(Some(v.iter().map(|&x| x as u8).collect())),
            Some(other) => Err(wrong_kind(key, "array of u8", other)),
        }
    }

    /// An array of integers that fit `i32`.
    ///
    /// # Errors
    /// The value is not an array of integers or an element does not fit.
    pub fn get_i32_array(&self, key: &str) -> Result<Option<Vec<i32>>, MetadataError> {
        self.integers(key, "i32", "array of i32")
    }

    /// An array of integers that fit `u32`.
    ///
    /// # Errors
    /// The value is not an array of integers or an element does not fit.
    pub fn get_u32_array(&self, key: &str) -> Result<Option<Vec<u32>>, MetadataError> {
        self.integers(key, "u32", "array of u32")
    }

    /// [`get_u32`](Self::get_u32) of a required key.
    ///
    /// # Errors
    /// The key is missing, its value is not an integer or does not fit.
    pub fn require_u32(&self, key: &str) -> Result<u32, MetadataError> {
        self.get_u32(key)?.ok_or_else(|| missing(key))
    }

    /// [`get_usize`](Self::get_usize) of a required key.
    ///
    /// # Errors
    /// The key is missing, its value is not an integer or does not fit.
    pub fn require_usize(&self, key: &str) -> Result<usize, MetadataError> {
        self.get_usize(key)?.ok_or_else(|| missing(key))
    }

    /// [`get_f32`](Self::get_f32) of a required key.
    ///
    /// # Errors
    /// The key is missing or its value is not a float.
    pub fn require_f32(&self, key: &str) -> Result<f32, MetadataError> {
        self.get_f32(key)?.ok_or_else(|| missing(key))
    }

    /// [`get_str`](Self::get_str) of a required key.
    ///
    /// # Errors
    /// The key is missing or its value is not a string.
    pub fn require_str(&self, key: &str) -> Result<&str, MetadataError> {
        self.get_str(key)?.ok_or_else(|| missing(key))
    }

    /// [`get_str_array`](Self::get_str_array) of a required key.
    ///
    /// # Errors
    /// The key is missing or its value is not an array of strings.
    pub fn require_str_array(&self, key: &str) -> Result<&StringArray, MetadataError> {
        self.get_str_array(key)?.ok_or_else(|| missing(key))
    }

    fn integer<T: TryFrom<i128>>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, MetadataError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let integer = value
            .as_integer()
            .ok_or_else(|| wrong_kind(key, expected, value))?;
        match T::try_from(integer) {
            Ok(fits) => Ok(Some(fits)),
            Err(_) => Err(MetadataError::OutOfRange {
                key: key.to_owned(),
                value: integer,
                expected,
            }),
        }
    }

    fn integers<T: TryFrom<i128>>(
        &self,
        key: &str,
        element: &'static str,
        expected: &'static str,
    ) -> Result<Option<Vec<T>>, MetadataError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let array = match value {
            Value::Array(array) if array.element_kind().is_integer() => array,
            _ => return Err(wrong_kind(key, expected, value)),
        };
        let integers = (0..array.len()).filter_map(|i| array.get(i)?.as_integer());
        let converted = integers.enumerate().map(|(index, value)| {
            T::try_from(value).map_err(|_| MetadataError::ElementOutOfRange {
                key: key.to_owned(),
                index,
                value,
                expected: element,
            })
        });
        converted.collect::<Result<_, _>>().map(Some)
    }
}

fn missing(key: &str) -> MetadataError {
    MetadataError::Missing {
        key: key.to_owned(),
    }
}

fn wrong_kind(key: &str, expected: &'static str, found: &Value) -> MetadataError {
    MetadataError::WrongKind {
        key: key.to_owned(),
        expected,
        found: found.describe(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(pairs: Vec<(&str, Value)>) -> Metadata {
        let entries = pairs
            .into_iter()
            .map(|(key, value)| Entry {
                key: key.into(),
                value,
            })
            .collect();
        Metadata::new(entries).unwrap()
    }

    #[test]
    fn integers_of_any_kind_that_fits_are_taken() {
        let m = metadata(vec![
            ("a", 7u8.into()),
            ("b", 7i64.into()),
            ("c", (-1i32).into()),
            ("d", (1u64 << 40).into()),
            ("e", vec![1u64, 2].into()),
            ("f", vec![1i64, -1].into()),
        ]);
        assert_eq!(m.get_u32("a"), Ok(Some(7)));
        assert_eq!(m.get_u32("b"), Ok(Some(7)));
        assert_eq!(m.get_i32("c"), Ok(Some(-1)));
        assert_eq!(m.get_u64("d"), Ok(Some(1 << 40)));
        assert_eq!(m.get_u32("none"), Ok(None));
        assert_eq!(m.get_u32_array("e"), Ok(Some(vec![1, 2])));
        assert_eq!(
            m.get_u32("c"),
            Err(MetadataError::OutOfRange {
                key: "c".into(),
                value: -1,
                expected: "u32"
            })
        );
        assert_eq!(
            m.get_u32_array("f"),
            Err(MetadataError::ElementOutOfRange {
                key: "f".into(),
                index: 1,
                value: -1,
                expected: "u32"
            })
        );
    }

    #[test]
    fn a_value_of_another_kind_is_an_error_that_names_both() {
        let m = metadata(vec![
            ("text", "x".into()),
            ("floats", vec![1f32].into()),
            ("double", 0.5f64.into()),
        ]);
        assert_eq!(m.get_f32("double"), Ok(Some(0.5)));
        assert_eq!(m.get_f32_array("floats"), Ok(Some(vec![1.0])));
        let error = m.get_u32("text").unwrap_err();
        assert_eq!(error.to_string(), "metadata `text` is string, expected u32");
        let error = m.get_str_array("floats").unwrap_err();
        assert_eq!(
            error.to_string(),
            "metadata `floats` is array of f32, expected array of string"
        );
        let error = m.require_str("absent").unwrap_err();
        assert_eq!(error.to_string(), "metadata `absent` is missing");
    }
}
