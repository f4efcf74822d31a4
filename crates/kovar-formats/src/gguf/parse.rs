//! Parsing of the header of a file.

use std::ops::Range;

use kovar_core::{DType, HostBytes};

use super::cursor::Cursor;
use super::error::{GgufError, GgufField};
use super::metadata::{Entry, Metadata};
use super::tensor::{TensorInfo, TypeOf, type_of};
use super::value::{Array, StringArray, Value, ValueKind, number_kinds};
use super::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAGIC, MAX_NAME_BYTES, MAX_NESTING};
use crate::MAX_DIMS;
use crate::index::{IndexError, NameIndex};
use crate::tensor::elements_of;

/// The fewest bytes of a key-value pair: the length of the key, the kind and a one-byte value.
const MIN_ENTRY_BYTES: usize = 8 + 4 + 1;
/// The fewest bytes of a tensor: the length of the name, the number of dims, type and offset.
const MIN_TENSOR_BYTES: usize = 8 + 4 + 4 + 8;

/// The header of a file, checked.
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) alignment: u32,
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) index: NameIndex,
}

pub(super) fn parse(file: &HostBytes) -> Result<Header, GgufError> {
    let cursor = &mut Cursor::new(file.as_slice());
    let version = parse_version(cursor)?;
    let n_tensors = parse_count(cursor, MIN_TENSOR_BYTES, || GgufField::TensorCount)?;
    let n_entries = parse_count(cursor, MIN_ENTRY_BYTES, || GgufField::MetadataCount)?;
    let metadata = parse_metadata(cursor, n_entries)?;
    let alignment = alignment_of(&metadata)?;
    let mut raw = Vec::new();
    for i in 0..n_tensors {
        raw.push(parse_tensor(cursor, i, alignment)?);
    }
    let tensors = locate(file, cursor.offset(), alignment, raw)?;
    check_overlap(&tensors)?;
    let index = NameIndex::new(&tensors, |tensor| &tensor.name).map_err(|error| match error {
        IndexError::Duplicate(tensor) => GgufError::DuplicateTensor { tensor },
        IndexError::TooMany => GgufError::TooManyEntries {
            field: GgufField::TensorCount,
        },
    })?;
    Ok(Header {
        version,
        alignment,
        metadata,
        tensors,
        index,
    })
}

fn parse_version(cursor: &mut Cursor<'_>) -> Result<u32, GgufError> {
    let magic: [u8; 4] = cursor.array().map_err(|s| s.of(GgufField::Magic))?;
    if magic != MAGIC {
        return Err(GgufError::NotGguf { found: magic });
    }
    let version = cursor.u32().map_err(|s| s.of(GgufField::Version))?;
    match (version, version.swap_bytes()) {
        (2 | 3, _) => Ok(version),
        (_, version @ 1..=0xff) => Err(GgufError::BigEndian { version }),
        _ => Err(GgufError::UnsupportedVersion { version }),
    }
}

/// A count of entries that take at least `min_bytes` each. The rest of the file has room for them.
fn parse_count(
    cursor: &mut Cursor<'_>,
    min_bytes: usize,
    field: impl Fn() -> GgufField,
) -> Result<usize, GgufError> {
    let offset = cursor.offset();
    let count = cursor.u64().map_err(|s| s.of(field()))?;
    let most = cursor.remaining() / min_bytes;
    match usize::try_from(count) {
        Ok(count) if count <= most => Ok(count),
        _ => Err(GgufError::CountTooLarge {
            field: field(),
            offset,
            count,
            most,
            remaining: cursor.remaining(),
        }),
    }
}

/// A key or a tensor name.
fn parse_name<'a>(
    cursor: &mut Cursor<'a>,
    field: impl Fn() -> GgufField,
) -> Result<&'a str, GgufError> {
    let offset = cursor.offset();
    let bytes = cursor.string().map_err(|s| s.of(field()))?;
    if bytes.len() > MAX_NAME_BYTES {
        return Err(GgufError::NameTooLong {
            field: field(),
            offset,
            len: bytes.len(),
            most: MAX_NAME_BYTES,
        });
    }
    utf8(bytes, offset + 8, field)
}

fn utf8(bytes: &[u8], offset: usize, field: impl FnOnce() -> GgufField) -> Result<&str, GgufError> {
    std::str::from_utf8(bytes).map_err(|error| GgufError::InvalidUtf8 {
        field: field(),
        offset,
        valid_up_to: error.valid_up_to(),
    })
}

fn parse_metadata(cursor: &mut Cursor<'_>, count: usize) -> Result<Metadata, GgufError> {
    // The vector grows with what was parsed, so that a wrong count takes no memory.
    let mut entries = Vec::new();
    for i in 0..count {
        let key = parse_name(cursor, || GgufField::Key(i))?;
        let value = parse_value(cursor, key)?;
        entries.push(Entry {
            key: key.into(),
            value,
        });
    }
    Metadata::new(entries).map_err(|error| match error {
        IndexError::Duplicate(key) => GgufError::DuplicateKey { key },
        IndexError::TooMany => GgufError::TooManyEntries {
            field: GgufField::MetadataCount,
        },
    })
}

fn parse_kind(
    cursor: &mut Cursor<'_>,
    field: impl Fn() -> GgufField,
) -> Result<ValueKind, GgufError> {
    let offset = cursor.offset();
    let id = cursor.u32().map_err(|s| s.of(field()))?;
    ValueKind::from_id(id).ok_or_else(|| GgufError::UnknownValueKind {
        field: field(),
        offset,
        id,
    })
}

fn parse_value(cursor: &mut Cursor<'_>, key: &str) -> Result<Value, GgufError> {
    let field = || GgufField::Value { key: key.into() };
    let kind = parse_kind(cursor, || GgufField::ValueKind { key: key.into() })?;
    let offset = cursor.offset();
    macro_rules! parse {
        ($($number:ident: $type:ty),*) => {
            match kind {
                $(ValueKind::$number => {
                    let bytes = cursor.array().map_err(|s| s.of(field()))?;
                    Ok(Value::$number(<$type>::from_le_bytes(bytes)))
                })*
                ValueKind::Bool => {
                    let [byte] = cursor.array().map_err(|s| s.of(field()))?;
                    Ok(Value::Bool(parse_bool(byte, offset, field)?))
                }
                ValueKind::String => {
                    let bytes = cursor.string().map_err(|s| s.of(field()))?;
                    Ok(Value::String(utf8(bytes, offset + 8, field)?.into()))
                }
                ValueKind::Array => parse_array(cursor, key, 1).map(Value::Array),
            }
        };
    }
    number_kinds!(parse)
}

fn parse_bool(
    byte: u8,
    offset: usize,
    field: impl FnOnce() -> GgufField,
) -> Result<bool, GgufError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(GgufError::InvalidBool {
            field: field(),
            offset,
            value,
        }),
    }
}

fn parse_array(cursor: &mut Cursor<'_>, key: &str, depth: usize) -> Result<Array, GgufError> {
    if depth > MAX_NESTING {
        return Err(GgufError::NestedTooDeep {
            key: key.into(),
            offset: cursor.offset(),
            most: MAX_NESTING,
        });
    }
    let kind = parse_kind(cursor, || GgufField::ElementKind { key: key.into() })?;
    let count = parse_count(cursor, kind.min_bytes(), || GgufField::ArrayLen {
        key: key.into(),
    })?;
    macro_rules! parse {
        ($($number:ident: $type:ty),*) => {
            match kind {
                $(ValueKind::$number => {
                    numbers(cursor, key, count, <$type>::from_le_bytes).map(Array::$number)
                })*
                ValueKind::Bool => {
                    let start = cursor.offset();
                    let bytes = numbers(cursor, key, count, u8::from_le_bytes)?;
                    let checked = bytes.iter().enumerate().map(|(index, &byte)| {
                        parse_bool(byte, start + index, || GgufField::Element {
                            key: key.into(),
                            index,
                        })
                    });
                    checked.collect::<Result<_, _>>().map(Array::Bool)
                }
                ValueKind::String => strings(cursor, key, count).map(Array::String),
                ValueKind::Array => {
                    let mut arrays = Vec::new();
                    for _ in 0..count {
                        arrays.push(parse_array(cursor, key, depth + 1)?);
                    }
                    Ok(Array::Array(arrays))
                }
            }
        };
    }
    number_kinds!(parse)
}

fn numbers<T, const N: usize>(
    cursor: &mut Cursor<'_>,
    key: &str,
    count: usize,
    decode: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, GgufError> {
    let bytes = cursor
        .take((count as u64).saturating_mul(N as u64))
        .map_err(|s| s.of(GgufField::Elements { key: key.into() }))?;
    let (elements, _) = bytes.as_chunks::<N>();
    Ok(elements.iter().map(|element| decode(*element)).collect())
}

fn strings(cursor: &mut Cursor<'_>, key: &str, count: usize) -> Result<StringArray, GgufError> {
    let element = |index| GgufField::Element {
        key: key.into(),
        index,
    };
    // The lengths are read first, so that the text is one allocation of the right size.
    let mut walk = cursor.clone();
    let mut text_len = 0;
    for index in 0..count {
        text_len += walk.string().map_err(|s| s.of(element(index)))?.len();
    }
    let mut text = String::with_capacity(text_len);
    let mut ends = Vec::with_capacity(count);
    for index in 0..count {
        let offset = cursor.offset();
        let bytes = cursor.string().map_err(|s| s.of(element(index)))?;
        text.push_str(utf8(bytes, offset + 8, || element(index))?);
        ends.push(text.len());
    }
    Ok(StringArray::from_parts(text.into(), ends.into()))
}

fn alignment_of(metadata: &Metadata) -> Result<u32, GgufError> {
    match metadata.get_u32(ALIGNMENT_KEY)? {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(value) if value.is_power_of_two() => Ok(value),
        Some(value) => Err(GgufError::InvalidAlignment { value }),
    }
}

/// The description of a tensor, whose window of the file is not yet known.
struct RawTensor<'a> {
    name: &'a str,
    dtype: DType,
    dims: Box<[usize]>,
    size: usize,
    start: u64,
}

fn parse_tensor<'a>(
    cursor: &mut Cursor<'a>,
    position: usize,
    alignment: u32,
) -> Result<RawTensor<'a>, GgufError> {
    let name = parse_name(cursor, || GgufField::TensorName(position))?;
    let tensor = || name.to_owned();

    let offset = cursor.offset();
    let dim_count = || GgufField::DimCount { tensor: tensor() };
    let count = cursor.u32().map_err(|s| s.of(dim_count()))?;
    let rank = match usize::try_from(count) {
        Ok(rank) if rank <= MAX_DIMS => rank,
        _ => {
            return Err(GgufError::TooManyDims {
                tensor: tensor(),
                offset,
                count,
                most: MAX_DIMS,
            });
        }
    };

    let dims_offset = cursor.offset();
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        let offset = cursor.offset();
        let field = || GgufField::Dim {
            tensor: tensor(),
            axis,
        };
        let dim = cursor.u64().map_err(|s| s.of(field()))?;
        if dim == 0 {
            return Err(GgufError::ZeroDim {
                tensor: tensor(),
                offset,
                axis,
            });
        }
        dims.push(dim);
    }
    dims.reverse();

    let offset = cursor.offset();
    let type_field = || GgufField::TensorType { tensor: tensor() };
    let id = cursor.u32().map_err(|s| s.of(type_field()))?;
    let dtype = match type_of(id) {
        TypeOf::Readable(dtype) => dtype,
        TypeOf::Unsupported(type_name) => {
            return Err(GgufError::UnsupportedType {
                tensor: tensor(),
                offset,
                type_name,
            });
        }
        TypeOf::Unknown => {
            return Err(GgufError::UnknownType {
                tensor: tensor(),
                offset,
                id,
            });
        }
    };
    let (dims, size) = size_of(name, dtype, dims, dims_offset)?;

    let offset = cursor.offset();
    let start_field = || GgufField::TensorOffset { tensor: tensor() };
    let start = cursor.u64().map_err(|s| s.of(start_field()))?;
    if !start.is_multiple_of(u64::from(alignment)) {
        return Err(GgufError::Misaligned {
            tensor: tensor(),
            offset,
            start,
            alignment,
        });
    }
    Ok(RawTensor {
        name,
        dtype,
        dims,
        size,
        start,
    })
}

/// The dims as `usize`, and the size of the tensor in bytes.
fn size_of(
    name: &str,
    dtype: DType,
    raw_dims: Vec<u64>,
    offset: usize,
) -> Result<(Box<[usize]>, usize), GgufError> {
    let converted = raw_dims
        .iter()
        .map(|&dim| usize::try_from(dim).ok())
        .collect::<Option<Box<[usize]>>>();
    let elements = converted.as_deref().and_then(elements_of);
    let (Some(dims), Some(elements)) = (converted, elements) else {
        return Err(GgufError::SizeOverflow {
            tensor: name.to_owned(),
            offset,
            dims: raw_dims,
        });
    };
    let row = dims.last().copied().unwrap_or(1);
    if !row.is_multiple_of(dtype.block_len()) {
        return Err(GgufError::PartialBlock {
            tensor: name.to_owned(),
            offset,
            row,
            dtype,
        });
    }
    match dtype.bytes_for(elements) {
        Some(size) => Ok((dims, size)),
        None => Err(GgufError::SizeOverflow {
            tensor: name.to_owned(),
            offset,
            dims: raw_dims,
        }),
    }
}

/// The tensors with their windows of the file.
fn locate(
    file: &HostBytes,
    header_len: usize,
    alignment: u32,
    raw: Vec<RawTensor<'_>>,
) -> Result<Vec<TensorInfo>, GgufError> {
    let data_start = u64::from(alignment)
        .checked_mul((header_len as u64).div_ceil(u64::from(alignment)))
        .and_then(|start| usize::try_from(start).ok())
        .unwrap_or(usize::MAX);
    let window = |tensor: &RawTensor<'_>| -> Option<(Range<usize>, HostBytes)> {
        let start = data_start.checked_add(usize::try_from(tensor.start).ok()?)?;
        let range = start..start.checked_add(tensor.size)?;
        let data = file.slice(range.clone())?;
        Some((range, data))
    };
    let mut tensors = Vec::with_capacity(raw.len());
    for tensor in raw {
        let Some((range, data)) = window(&tensor) else {
            return Err(GgufError::OutsideFile {
                tensor: tensor.name.to_owned(),
                start: tensor.start,
                size: tensor.size,
                data_start,
                file_len: file.len(),
            });
        };
        tensors.push(TensorInfo {
            name: tensor.name.into(),
            dtype: tensor.dtype,
            dims: tensor.dims,
            range,
            data,
        });
    }
    Ok(tensors)
}

fn check_overlap(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut by_start: Vec<&TensorInfo> = tensors.iter().collect();
    by_start.sort_by_key(|tensor| tensor.range.start);
    for pair in by_start.windows(2) {
        if let [first, second] = pair
            && second.range.start < first.range.end
        {
            return Err(GgufError::Overlap {
                first: first.name().to_owned(),
                second: second.name().to_owned(),
                offset: second.range.start,
            });
        }
    }
    Ok(())
}
