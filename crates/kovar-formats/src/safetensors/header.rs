//! Parsing of the header of a file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use kovar_core::HostBytes;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{MAX_HEADER_BYTES, SafeTensorInfo, SafeTensorsError, TensorDType, bytes_of};
use crate::MAX_DIMS;
use crate::index::{IndexError, NameIndex};

const LENGTH_BYTES: usize = 8;
pub(super) const METADATA_KEY: &str = "__metadata__";

/// The header of a file, checked.
pub(super) struct Header {
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) tensors: Vec<SafeTensorInfo>,
    pub(super) index: NameIndex,
}

pub(super) fn parse(file: &HostBytes) -> Result<Header, SafeTensorsError> {
    let bytes = file.as_slice();
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(SafeTensorsError::TooShort {
            file_len: bytes.len(),
        });
    };
    let len = u64::from_le_bytes(*length);
    let most = rest.len().min(MAX_HEADER_BYTES);
    let json = usize::try_from(len)
        .ok()
        .filter(|&len| len <= most)
        .and_then(|len| rest.get(..len))
        .ok_or(SafeTensorsError::HeaderTooLarge { len, most })?;
    let raw: RawHeader = serde_json::from_slice(json).map_err(SafeTensorsError::Header)?;

    let data_start = LENGTH_BYTES + json.len();
    let mut tensors = Vec::with_capacity(raw.tensors.len());
    for tensor in &raw.tensors {
        tensors.push(check(file, data_start, tensor)?);
    }
    let index = NameIndex::new(&tensors, |tensor| &tensor.name).map_err(|error| match error {
        IndexError::Duplicate(tensor) => SafeTensorsError::DuplicateTensor { tensor },
        IndexError::TooMany => SafeTensorsError::TooManyTensors,
    })?;
    check_coverage(&tensors, data_start, bytes.len())?;
    Ok(Header {
        metadata: raw.metadata,
        tensors,
        index,
    })
}

fn check(
    file: &HostBytes,
    data_start: usize,
    raw: &RawTensor<'_>,
) -> Result<SafeTensorInfo, SafeTensorsError> {
    let tensor = || raw.name.to_string();
    let dtype =
        TensorDType::from_name(&raw.info.dtype).ok_or_else(|| SafeTensorsError::UnknownDType {
            tensor: tensor(),
            dtype: raw.info.dtype.to_string(),
        })?;
    let raw_dims = raw
        .info
        .shape
        .dims
        .get(..raw.info.shape.count)
        .ok_or_else(|| SafeTensorsError::TooManyDims {
            tensor: tensor(),
            count: raw.info.shape.count,
            most: MAX_DIMS,
        })?;
    let dims = raw_dims
        .iter()
        .map(|&dim| usize::try_from(dim).ok())
        .collect::<Option<Box<[usize]>>>();
    let size = dims.as_ref().and_then(|dims| bytes_of(dtype, dims));
    let (Some(dims), Some(expected)) = (dims, size) else {
        return Err(SafeTensorsError::SizeOverflow {
            tensor: tensor(),
            dims: raw_dims.to_vec(),
        });
    };

    let (start, end) = raw.info.data_offsets;
    let window = || {
        let start = data_start.checked_add(usize::try_from(start).ok()?)?;
        let range = start..data_start.checked_add(usize::try_from(end).ok()?)?;
        let data = file.slice(range.clone())?;
        Some((range, data))
    };
    let Some((range, data)) = window() else {
        return Err(SafeTensorsError::OutsideData {
            tensor: tensor(),
            start,
            end,
            data_len: file.len().saturating_sub(data_start),
        });
    };
    if data.len() != expected {
        return Err(SafeTensorsError::WrongSize {
            tensor: tensor(),
            dtype,
            dims: dims.into_vec(),
            expected,
            actual: data.len(),
        });
    }
    Ok(SafeTensorInfo {
        name: (&*raw.name).into(),
        dtype,
        dims,
        range,
        data,
    })
}

/// Checks that the tensors cover the data without gap or overlap.
fn check_coverage(
    tensors: &[SafeTensorInfo],
    data_start: usize,
    file_len: usize,
) -> Result<(), SafeTensorsError> {
    let mut by_start: Vec<&SafeTensorInfo> = tensors.iter().collect();
    by_start.sort_by_key(|tensor| (tensor.range.start, tensor.range.end));
    let mut end = data_start;
    for tensor in by_start {
        if tensor.range.start != end {
            return Err(SafeTensorsError::NotContiguous {
                tensor: tensor.name().to_owned(),
                start: tensor.range.start - data_start,
                expected: end - data_start,
            });
        }
        end = tensor.range.end;
    }
    if end != file_len {
        return Err(SafeTensorsError::TrailingData {
            end: end - data_start,
            data_len: file_len - data_start,
        });
    }
    Ok(())
}

struct RawHeader<'a> {
    metadata: BTreeMap<String, String>,
    tensors: Vec<RawTensor<'a>>,
}

struct RawTensor<'a> {
    name: Cow<'a, str>,
    info: RawInfo<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInfo<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: RawShape,
    data_offsets: (u64, u64),
}

/// The first dims and the number of all dims.
struct RawShape {
    dims: [u64; MAX_DIMS],
    count: usize,
}

/// A text that borrows from the header if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Texts by key. A repeated key is an error.
struct Texts(BTreeMap<String, String>);

impl<'de: 'a, 'a> Deserialize<'de> for RawHeader<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeaderVisitor;

        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = RawHeader<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from tensor names to descriptions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut metadata = None;
                let mut tensors = Vec::new();
                while let Some(Text(name)) = map.next_key()? {
                    if name == METADATA_KEY {
                        if metadata.is_some() {
                            return Err(de::Error::duplicate_field(METADATA_KEY));
                        }
                        let Texts(texts) = map.next_value()?;
                        metadata = Some(texts);
                    } else {
                        let info = map.next_value()?;
                        tensors.push(RawTensor { name, info });
                    }
                }
                Ok(RawHeader {
                    metadata: metadata.unwrap_or_default(),
                    tensors,
                })
            }
        }

        deserializer.deserialize_map(HeaderVisitor)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextsVisitor;

        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from texts to texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
                let mut texts = BTreeMap::new();
                while let Some((key, text)) = map.next_entry::<String, String>()? {
                    match texts.entry(key) {
                        Entry::Vacant(free) => free.insert(text),
                        Entry::Occupied(taken) => {
                            return Err(de::Error::custom(format_args!(
                                "{METADATA_KEY} has the key {:?} twice",
                                taken.key()
                            )));
                        }
                    };
                }
                Ok(Texts(texts))
            }
        }

        deserializer.deserialize_map(TextsVisitor)
    }
}

impl<'de> Deserialize<'de> for RawShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShapeVisitor;

        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = RawShape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of dims")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawShape, A::Error> {
                let mut shape = RawShape {
                    dims: [0; MAX_DIMS],
                    count: 0,
                };
                while let Some(dim) = seq.next_element()? {
                    if let Some(slot) = shape.dims.get_mut(shape.count) {
                        *slot = dim;
                    }
                    shape.count += 1;
                }
                Ok(shape)
            }
        }

        deserializer.deserialize_seq(ShapeVisitor)
    }
}
