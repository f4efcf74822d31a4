//! Typed metadata values.

use std::fmt;

/// The kinds of a metadata value, with the ids that files use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueKind {
    /// Unsigned 8-bit integer.
    U8 = 0,
    /// Signed 8-bit integer.
    I8 = 1,
    /// Unsigned 16-bit integer.
    U16 = 2,
    /// Signed 16-bit integer.
    I16 = 3,
    /// Unsigned 32-bit integer.
    U32 = 4,
    /// Signed 32-bit integer.
    I32 = 5,
    /// IEEE 754 binary32.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// UTF-8 text.
    String = 8,
    /// Elements of one kind.
    Array = 9,
    /// Unsigned 64-bit integer.
    U64 = 10,
    /// Signed 64-bit integer.
    I64 = 11,
    /// IEEE 754 binary64.
    F64 = 12,
}

impl ValueKind {
    /// Every kind, in the order of its id.
    pub const ALL: [ValueKind; 13] = [
        ValueKind::U8,
        ValueKind::I8,
        ValueKind::U16,
        ValueKind::I16,
        ValueKind::U32,
        ValueKind::I32,
        ValueKind::F32,
        ValueKind::Bool,
        ValueKind::String,
        ValueKind::Array,
        ValueKind::U64,
        ValueKind::I64,
        ValueKind::F64,
    ];

    /// The id that stands for the kind in a file.
    pub fn id(self) -> u32 {
        self as u32
    }

    /// The kind with this id.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// The name: `u32`, `string`.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }

    /// The fewest bytes that a value of this kind takes in a file.
    pub(crate) fn min_bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::String | Self::U64 | Self::I64 | Self::F64 => 8,
            // The element kind and the count.
            Self::Array => 12,
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Unsigned 8-bit integer.
    U8(u8),
    /// Signed 8-bit integer.
    I8(i8),
    /// Unsigned 16-bit integer.
    U16(u16),
    /// Signed 16-bit integer.
    I16(i16),
    /// Unsigned 32-bit integer.
    U32(u32),
    /// Signed 32-bit integer.
    I32(i32),
    /// Unsigned 64-bit integer.
    U64(u64),
    /// Signed 64-bit integer.
    I64(i64),
    /// IEEE 754 binary32.
    F32(f32),
    /// IEEE 754 binary64.
    F64(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    String(Box<str>),
    /// Elements of one kind.
    Array(Array),
}

/// The elements of an array value, kept as one typed vector.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Array {
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Signed 8-bit integers.
    I8(Vec<i8>),
    /// Unsigned 16-bit integers.
    U16(Vec<u16>),
    /// Signed 16-bit integers.
    I16(Vec<i16>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Signed 32-bit integers.
    I32(Vec<i32>),
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// IEEE 754 binary32.
    F32(Vec<f32>),
    /// IEEE 754 binary64.
    F64(Vec<f64>),
    /// True or false.
    Bool(Vec<bool>),
    /// Texts.
    String(StringArray),
    /// Arrays, each with an element kind of its own.
    Array(Vec<Array>),
}

impl Value {
    /// The kind of the value.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::U8(_) => ValueKind::U8,
            Self::I8(_) => ValueKind::I8,
            Self::U16(_) => ValueKind::U16,
            Self::I16(_) => ValueKind::I16,
            Self::U32(_) => ValueKind::U32,
            Self::I32(_) => ValueKind::I32,
            Self::U64(_) => ValueKind::U64,
            Self::I64(_) => ValueKind::I64,
            Self::F32(_) => ValueKind::F32,
            Self::F64(_) => ValueKind::F64,
            Self::Bool(_) => ValueKind::Bool,
            Self::String(_) => ValueKind::String,
            Self::Array(_) => ValueKind::Array,
        }
    }

    /// The value of any integer kind.
    pub fn as_integer(&self) -> Option<i128> {
        match *self {
            Self::U8(v) => Some(v.into()),
            Self::I8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::I16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::I32(v) => Some(v.into()),
            Self::U64(v) => Some(v.into()),
            Self::I64(v) => Some(v.into()),
            _ => None,
        }
    }

    /// What the value is, for messages: `u32`, `array of string`.
    pub fn describe(&self) -> String {
        match self {
            Self::Array(array) => format!("array of {}", array.element_kind()),
            _ => self.kind().name().to_owned(),
        }
    }
}

/// Writes numbers and booleans as they are, text in quotes with control characters escaped, and of
/// an array its kind and length.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U8(v) => v.fmt(f),
            Self::I8(v) => v.fmt(f),
            Self::U16(v) => v.fmt(f),
            Self::I16(v) => v.fmt(f),
            Self::U32(v) => v.fmt(f),
            Self::I32(v) => v.fmt(f),
            Self::U64(v) => v.fmt(f),
            Self::I64(v) => v.fmt(f),
            Self::F32(v) => v.fmt(f),
            Self::F64(v) => v.fmt(f),
            Self::Bool(v) => v.fmt(f),
            Self::String(v) => write!(f, "{v:?}"),
            Self::Array(v) => write!(f, "[{}; {}]", v.element_kind(), v.len()),
        }
    }
}

impl Array {
    /// The kind of the elements.
    pub fn element_kind(&self) -> ValueKind {
        match self {
            Self::U8(_) => ValueKind::U8,
            Self::I8(_) => ValueKind::I8,
            Self::U16(_) => ValueKind::U16,
            Self::I16(_) => ValueKind::I16,
            Self::U32(_) => ValueKind::U32,
            Self::I32(_) => ValueKind::I32,
            Self::U64(_) => ValueKind::U64,
            Self::I64(_) => ValueKind::I64,
            Self::F32(_) => ValueKind::F32,
            Self::F64(_) => ValueKind::F64,
            Self::Bool(_) => ValueKind::Bool,
            Self::String(_) => ValueKind::String,
            Self::Array(_) => ValueKind::Array,
        }
    }

    /// Elements in the array.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::I8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::I16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::String(v) => v.len(),
            Self::Array(v) => v.len(),
        }
    }

    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<Value> {
        Some(match self {
            Self::U8(v) => Value::U8(*v.get(index)?),
            Self::I8(v) => Value::I8(*v.get(index)?),
            Self::U16(v) => Value::U16(*v.get(index)?),
            Self::I16(v) => Value::I16(*v.get(index)?),
            Self::U32(v) => Value::U32(*v.get(index)?),
            Self::I32(v) => Value::I32(*v.get(index)?),
            Self::U64(v) => Value::U64(*v.get(index)?),
            Self::I64(v) => Value::I64(*v.get(index)?),
            Self::F32(v) => Value::F32(*v.get(index)?),
            Self::F64(v) => Value::F64(*v.get(index)?),
            Self::Bool(v) => Value::Bool(*v.get(index)?),
            Self::String(v) => Value::String(v.get(index)?.into()),
            Self::Array(v) => Value::Array(v.get(index)?.clone()),
        })
    }

    /// How deep arrays are nested: 1 for an array of numbers.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Array(inner) => 1 + inner.iter().map(Array::depth).max().unwrap_or(0),
            _ => 1,
        }
    }
}

/// Texts in one shared buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringArray {
    text: Box<str>,
    /// Where each string ends in `text`; it starts where the one before ends.
    ends: Box<[usize]>,
}

impl StringArray {
    /// `ends` must be non-decreasing character boundaries of `text`; a string whose bounds are not
    /// reads as empty.
    pub(crate) fn from_parts(text: Box<str>, ends: Box<[usize]>) -> Self {
        Self { text, ends }
    }

    /// Strings in the array.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the array has no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..end)
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone + '_ {
        (0..self.len()).map(|i| self.get(i).unwrap_or_default())
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringArray {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut text = String::new();
        let mut ends = Vec::new();
        for string in strings {
            text.push_str(string.as_ref());
            ends.push(text.len());
        }
        Self::from_parts(text.into(), ends.into())
    }
}

macro_rules! values_from {
    ($($kind:ident: $type:ty),* $(,)?) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Value::$kind(value)
            }
        }

        impl From<Vec<$type>> for Array {
            fn from(values: Vec<$type>) -> Self {
                Array::$kind(values)
            }
        }

        impl From<Vec<$type>> for Value {
            fn from(values: Vec<$type>) -> Self {
                Value::Array(Array::$kind(values))
            }
        }
    )*};
}

values_from! {
    U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32, U64: u64, I64: i64,
    F32: f32, F64: f64, Bool: bool,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text.into())
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Self {
        Value::Array(array)
    }
}

impl From<StringArray> for Value {
    fn from(strings: StringArray) -> Self {
        Value::Array(Array::String(strings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_kinds_correspond() {
        for kind in ValueKind::ALL {
            assert_eq!(ValueKind::from_id(kind.id()), Some(kind));
        }
        assert_eq!(ValueKind::from_id(13), None);
    }

    #[test]
    fn a_string_array_gives_back_its_strings() {
        let strings = ["", "Ġthe", "", "é", "end"];
        let array: StringArray = strings.into_iter().collect();
        assert_eq!(array.len(), 5);
        assert!(array.iter().eq(strings));
        assert_eq!(array.get(5), None);
    }
}
