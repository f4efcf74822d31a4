//! Typed metadata values.

use std::fmt;

/// Defines the kinds, [`Value`] and [`Array`] by rows of
/// `KIND = id, name, fewest bytes of a value in a file, type of a value, type of an array`.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $id:literal, $name:literal, $min_bytes:literal,
        $value:ty, $array:ty;)*) => {
        /// The kinds of a metadata value, with the ids that files use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ValueKind {
            $($(#[$doc])* $kind = $id,)*
        }

        impl ValueKind {
            /// Every kind, in the order of its id.
            pub const ALL: [ValueKind; 13] = [$(ValueKind::$kind),*];

            /// The name: `u32`, `string`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The fewest bytes that a value of this kind takes in a file.
            pub(crate) fn min_bytes(self) -> usize {
                match self {
                    $(Self::$kind => $min_bytes,)*
                }
            }
        }

        /// A metadata value.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Value {
            $($(#[$doc])* $kind($value),)*
        }

        impl Value {
            /// The kind of the value.
            pub fn kind(&self) -> ValueKind {
                match self {
                    $(Self::$kind(_) => ValueKind::$kind,)*
                }
            }
        }

        /// The elements of an array value, kept as one typed vector.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Array {
            $($(#[$doc])* $kind($array),)*
        }

        impl Array {
            /// The kind of the elements.
            pub fn element_kind(&self) -> ValueKind {
                match self {
                    $(Self::$kind(_) => ValueKind::$kind,)*
                }
            }

            /// Elements in the array.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$kind(v) => v.len(),)*
                }
            }

            /// The element at `index`; `None` beyond the end.
            pub fn get(&self, index: usize) -> Option<Value> {
                match self {
                    $(Self::$kind(v) => v.get(index).map(|v| v.to_owned().into()),)*
                }
            }
        }
    };
}

kinds! {
    /// Unsigned 8-bit integer.
    U8 = 0, "u8", 1, u8, Vec<u8>;
    /// Signed 8-bit integer.
    I8 = 1, "i8", 1, i8, Vec<i8>;
    /// Unsigned 16-bit integer.
    U16 = 2, "u16", 2, u16, Vec<u16>;
    /// Signed 16-bit integer.
    I16 = 3, "i16", 2, i16, Vec<i16>;
    /// Unsigned 32-bit integer.
    U32 = 4, "u32", 4, u32, Vec<u32>;
    /// Signed 32-bit integer.
    I32 = 5, "i32", 4, i32, Vec<i32>;
    /// IEEE 754 binary32.
    F32 = 6, "f32", 4, f32, Vec<f32>;
    /// One byte, 0 or 1.
    Bool = 7, "bool", 1, bool, Vec<bool>;
    /// UTF-8 text, after its length.
    String = 8, "string", 8, Box<str>, StringArray;
    /// Elements of one kind, after that kind and their number. An array in an array has an element
    /// kind of its own.
    Array = 9, "array", 12, Array, Vec<Array>;
    /// Unsigned 64-bit integer.
    U64 = 10, "u64", 8, u64, Vec<u64>;
    /// Signed 64-bit integer.
    I64 = 11, "i64", 8, i64, Vec<i64>;
    /// IEEE 754 binary64.
    F64 = 12, "f64", 8, f64, Vec<f64>;
}

/// Passes the kinds of numbers, with their types, to the macro `$then`.
macro_rules! number_kinds {
    ($then:ident) => {
        $then! {
            U8: u8, I8: i8, U16: u16, I16: i16, U32: u32, I32: i32, U64: u64, I64: i64,
            F32: f32, F64: f64
        }
    };
}
pub(super) use number_kinds;

impl ValueKind {
    /// The id that stands for the kind in a file.
    pub fn id(self) -> u32 {
        self as u32
    }

    /// The kind with this id.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
    }

    pub(crate) fn is_integer(self) -> bool {
        use ValueKind::{I8, I16, I32, I64, U8, U16, U32, U64};
        matches!(self, U8 | I8 | U16 | I16 | U32 | I32 | U64 | I64)
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Value {
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
/// an array its element kind and length.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! write_value {
            ($($kind:ident: $type:ty),*) => {
                match self {
                    $(Self::$kind(v) => v.fmt(f),)*
                    Self::Bool(v) => v.fmt(f),
                    Self::String(v) => write!(f, "{v:?}"),
                    Self::Array(v) => write!(f, "[{}; {}]", v.element_kind(), v.len()),
                }
            };
        }
        number_kinds!(write_value)
    }
}

impl Array {
    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    ($($kind:ident: $type:ty),*) => {$(
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

number_kinds!(values_from);
values_from!(Bool: bool);

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
