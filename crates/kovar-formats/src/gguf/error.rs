//! What can be wrong with a GGUF file.

use std::fmt;
use std::io;
use std::path::PathBuf;

use kovar_core::DType;

use super::metadata::MetadataError;
use super::tensor::readable_types;

/// A place in the header of a GGUF file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GgufField {
    /// The four bytes `GGUF`.
    Magic,
    /// The version.
    Version,
    /// The number of tensors.
    TensorCount,
    /// The number of key-value pairs.
    MetadataCount,
    /// The key of the key-value pair at this position, counted from 0.
    Key(usize),
    /// The kind of a value.
    ValueKind {
        /// Its key.
        key: String,
    },
    /// A value.
    Value {
        /// Its key.
        key: String,
    },
    /// The kind of the elements of an array.
    ElementKind {
        /// Its key.
        key: String,
    },
    /// The number of elements of an array.
    ArrayLen {
        /// Its key.
        key: String,
    },
    /// An element of an array.
    Element {
        /// Its key.
        key: String,
        /// Its position in its array.
        index: usize,
    },
    /// The elements of an array.
    Elements {
        /// Its key.
        key: String,
    },
    /// The name of the tensor at this position, counted from 0.
    TensorName(usize),
    /// The number of dims of a tensor.
    DimCount {
        /// Name of the tensor.
        tensor: String,
    },
    /// A dim of a tensor. Dims are counted from the innermost, as in the file.
    Dim {
        /// Name of the tensor.
        tensor: String,
        /// Position of the dim, 0 the innermost.
        axis: usize,
    },
    /// The type of a tensor.
    TensorType {
        /// Name of the tensor.
        tensor: String,
    },
    /// Where the data of a tensor starts.
    TensorOffset {
        /// Name of the tensor.
        tensor: String,
    },
}

impl fmt::Display for GgufField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("the magic"),
            Self::Version => f.write_str("the version"),
            Self::TensorCount => f.write_str("the tensor count"),
            Self::MetadataCount => f.write_str("the metadata count"),
            Self::Key(index) => write!(f, "the key of metadata entry {index}"),
            Self::ValueKind { key } => write!(f, "the value kind of metadata {key:?}"),
            Self::Value { key } => write!(f, "the value of metadata {key:?}"),
            Self::ElementKind { key } => write!(f, "the element kind of metadata {key:?}"),
            Self::ArrayLen { key } => write!(f, "the array length of metadata {key:?}"),
            Self::Element { key, index } => write!(f, "element {index} of metadata {key:?}"),
            Self::Elements { key } => write!(f, "the elements of metadata {key:?}"),
            Self::TensorName(index) => write!(f, "the name of tensor {index}"),
            Self::DimCount { tensor } => write!(f, "the number of dims of tensor {tensor:?}"),
            Self::Dim { tensor, axis } => write!(f, "dim {axis} of tensor {tensor:?}"),
            Self::TensorType { tensor } => write!(f, "the type of tensor {tensor:?}"),
            Self::TensorOffset { tensor } => write!(f, "the data offset of tensor {tensor:?}"),
        }
    }
}

/// Why a GGUF file could not be read. Every `offset` counts bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file could not be opened or mapped.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file does not start with `GGUF`.
    #[error("not a GGUF file: it starts with {:?}, not \"GGUF\"", found.escape_ascii().to_string())]
    NotGguf {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The file was written for big-endian machines.
    #[error("a big-endian GGUF file (version {version}); kovar reads little-endian files")]
    BigEndian {
        /// The version after swapping its bytes.
        version: u32,
    },
    /// The version is not one that kovar reads.
    #[error("GGUF version {version}; kovar reads versions 2 and 3")]
    UnsupportedVersion {
        /// The version in the file.
        version: u32,
    },
    /// The file ends inside a field.
    #[error(
        "{field} at byte {offset} takes {needed} bytes, \
         but the file ends after {remaining}"
    )]
    Truncated {
        /// The field.
        field: GgufField,
        /// Where it starts.
        offset: usize,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes from there to the end of the file.
        remaining: usize,
    },
    /// A count is larger than the rest of the file has room for.
    #[error(
        "{field} at byte {offset} is {count}, \
         but the {remaining} bytes that follow hold at most {most}"
    )]
    CountTooLarge {
        /// The field.
        field: GgufField,
        /// Where the count lies.
        offset: usize,
        /// The count in the file.
        count: u64,
        /// The largest count for which there is room.
        most: usize,
        /// Bytes from the end of the count to the end of the file.
        remaining: usize,
    },
    /// A key or name is longer than the format allows.
    #[error("{field} at byte {offset} is {len} bytes long, the most is {most}")]
    NameTooLong {
        /// The field.
        field: GgufField,
        /// Where the length lies.
        offset: usize,
        /// Bytes of the name.
        len: usize,
        /// The most bytes.
        most: usize,
    },
    /// A text is not UTF-8.
    #[error("{field} at byte {offset} is not UTF-8 (the first {valid_up_to} bytes are)")]
    InvalidUtf8 {
        /// The field.
        field: GgufField,
        /// Where the text lies.
        offset: usize,
        /// Bytes of the text that are valid.
        valid_up_to: usize,
    },
    /// A key occurs twice.
    #[error("metadata {key:?} occurs twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// No kind of value has this id.
    #[error("{field} at byte {offset} is {id}, kinds are 0 to 12")]
    UnknownValueKind {
        /// The field.
        field: GgufField,
        /// Where the id lies.
        offset: usize,
        /// The id.
        id: u32,
    },
    /// A boolean is neither 0 nor 1.
    #[error("{field} at byte {offset} is a boolean of value {value}, not 0 or 1")]
    InvalidBool {
        /// The field.
        field: GgufField,
        /// Where the byte lies.
        offset: usize,
        /// The byte.
        value: u8,
    },
    /// Arrays are nested too deep.
    #[error("metadata {key:?} nests arrays deeper than {most} (at byte {offset})")]
    NestedTooDeep {
        /// The key.
        key: String,
        /// Where the array at the first forbidden level lies.
        offset: usize,
        /// The deepest nesting that kovar reads.
        most: usize,
    },
    /// `general.alignment` is not an integer of 32 bits.
    #[error(transparent)]
    AlignmentKind(#[from] MetadataError),
    /// `general.alignment` is not a power of two.
    #[error("metadata \"general.alignment\" is {value}, not a power of two")]
    InvalidAlignment {
        /// The value in the file.
        value: u32,
    },
    /// There are more entries than kovar can index.
    #[error("{field} is more than {}", u32::MAX)]
    TooManyEntries {
        /// The count.
        field: GgufField,
    },
    /// A tensor name occurs twice.
    #[error("tensor {tensor:?} occurs twice")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// A tensor has too many dims.
    #[error("tensor {tensor:?} has {count} dims (at byte {offset}), the most is {most}")]
    TooManyDims {
        /// Name of the tensor.
        tensor: String,
        /// Where the count lies.
        offset: usize,
        /// Dims in the file.
        count: u32,
        /// The most that kovar reads.
        most: usize,
    },
    /// A dim is zero.
    #[error("dim {axis} of tensor {tensor:?} (at byte {offset}) is 0")]
    ZeroDim {
        /// Name of the tensor.
        tensor: String,
        /// Where the dim lies.
        offset: usize,
        /// Position of the dim, 0 the innermost.
        axis: usize,
    },
    /// The size of a tensor does not fit an integer.
    #[error("tensor {tensor:?} with dims {dims:?} (at byte {offset}) is too large to address")]
    SizeOverflow {
        /// Name of the tensor.
        tensor: String,
        /// Where the dims lie.
        offset: usize,
        /// The dims, outermost first.
        dims: Vec<u64>,
    },
    /// The rows of a tensor are not whole blocks of its dtype.
    #[error(
        "tensor {tensor:?} (at byte {offset}) has rows of {row} elements, \
         not whole {dtype} blocks of {}", dtype.block_len()
    )]
    PartialBlock {
        /// Name of the tensor.
        tensor: String,
        /// Where the dims lie.
        offset: usize,
        /// Elements of a row.
        row: usize,
        /// Its dtype.
        dtype: DType,
    },
    /// The tensor has a type of ggml that kovar does not read.
    #[error(
        "tensor {tensor:?} has type {type_name} (at byte {offset}), which kovar cannot read; \
         it reads {}",
        readable_types()
    )]
    UnsupportedType {
        /// Name of the tensor.
        tensor: String,
        /// Where the type lies.
        offset: usize,
        /// ggml's name of the type.
        type_name: &'static str,
    },
    /// No type has this id.
    #[error("tensor {tensor:?} has the unknown type {id} (at byte {offset})")]
    UnknownType {
        /// Name of the tensor.
        tensor: String,
        /// Where the type lies.
        offset: usize,
        /// The id.
        id: u32,
    },
    /// The data of a tensor does not start at a multiple of the alignment.
    #[error(
        "the data of tensor {tensor:?} starts at {start} of the data section, \
         not a multiple of {alignment} (at byte {offset})"
    )]
    Misaligned {
        /// Name of the tensor.
        tensor: String,
        /// Where the field with the start lies.
        offset: usize,
        /// Start of the data, from the start of the data section.
        start: u64,
        /// The alignment of the file.
        alignment: u32,
    },
    /// The data of a tensor is not inside the file.
    #[error(
        "tensor {tensor:?} takes {size} bytes at {start} of the data section, \
         which begins at byte {data_start}, but the file has {file_len} bytes"
    )]
    OutsideFile {
        /// Name of the tensor.
        tensor: String,
        /// Start of the data, from the start of the data section.
        start: u64,
        /// Bytes of the data.
        size: usize,
        /// Start of the data section.
        data_start: usize,
        /// Bytes of the file.
        file_len: usize,
    },
    /// The data of two tensors overlap.
    #[error("tensors {first:?} and {second:?} overlap at byte {offset}")]
    Overlap {
        /// Name of the tensor whose data starts first.
        first: String,
        /// Name of the other.
        second: String,
        /// Where the data of the second starts.
        offset: usize,
    },
}
