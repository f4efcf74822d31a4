//! Writing safetensors files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use kovar_core::{DType, HostBytes};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::header::METADATA_KEY;
use super::{MAX_HEADER_BYTES, TensorDType, bytes_of};
use crate::error::FileWriteError;
use crate::index::NameIndex;
use crate::replace::replace_file;

/// The data begins at a multiple of this many bytes.
const ALIGNMENT: usize = 8;

/// Collects tensors and writes them as a safetensors file.
///
/// The layout is that of the reference implementation: tensors with larger elements come first, so
/// that each is aligned, then the order is by name; the header is padded with spaces.
/// [`SafeTensors`](super::SafeTensors) reads every file that the writer accepts.
#[derive(Clone, Debug, Default)]
pub struct SafeTensorsWriter {
    metadata: BTreeMap<String, String>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    dtype: TensorDType,
    dims: Vec<usize>,
    data: HostBytes,
}

impl SafeTensorsWriter {
    /// A file without tensors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a text under `__metadata__`.
    pub fn metadata(&mut self, key: impl Into<String>, text: impl Into<String>) -> &mut Self {
        self.metadata.insert(key.into(), text.into());
        self
    }

    /// Adds a tensor whose data is in memory; see [`tensor_bytes`](Self::tensor_bytes).
    ///
    /// # Errors
    /// Those of [`tensor_bytes`](Self::tensor_bytes), or the dtype is quantised.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        dims: &[usize],
        data: Vec<u8>,
    ) -> Result<&mut Self, FileWriteError> {
        let name = name.into();
        let Some(dtype) = TensorDType::of(dtype) else {
            return Err(FileWriteError::NoSuchDType {
                tensor: name,
                dtype,
                format: "safetensors",
            });
        };
        self.tensor_bytes(name, dtype, dims, HostBytes::new(Arc::new(data)))
    }

    /// Adds a tensor. `dims` are row-major, outermost first, and may be zero; `data` holds the
    /// little-endian elements.
    ///
    /// # Errors
    /// The name is `__metadata__`, there are more than [`MAX_DIMS`](crate::MAX_DIMS) dims, they are
    /// too large, or the data has another size. A name that is added twice is reported when the
    /// file is written.
    pub fn tensor_bytes(
        &mut self,
        name: impl Into<String>,
        dtype: TensorDType,
        dims: &[usize],
        data: HostBytes,
    ) -> Result<&mut Self, FileWriteError> {
        let tensor = name.into();
        if tensor == METADATA_KEY {
            return Err(FileWriteError::ReservedName { tensor });
        }
        let Some(expected) = bytes_of(dtype, dims) else {
            return Err(FileWriteError::InvalidDims {
                tensor,
                dtype: dtype.name(),
                dims: dims.to_vec(),
            });
        };
        let actual = data.len();
        if actual != expected {
            return Err(FileWriteError::WrongSize {
                tensor,
                expected,
                actual,
            });
        }
        self.tensors.push(Tensor {
            name: tensor,
            dtype,
            dims: dims.to_vec(),
            data,
        });
        Ok(self)
    }

    /// Writes the file to `out`.
    ///
    /// # Errors
    /// A tensor name was added twice, the header is too long, or `out` fails.
    pub fn write_to(&self, out: &mut impl Write) -> Result<(), FileWriteError> {
        let mut tensors: Vec<&Tensor> = self.tensors.iter().collect();
        tensors.sort_by(|a, b| (b.dtype, &a.name).cmp(&(a.dtype, &b.name)));
        NameIndex::new(&tensors, |tensor| &tensor.name).map_err(FileWriteError::of_tensor_names)?;
        let header = Header {
            metadata: &self.metadata,
            tensors: &tensors,
        };
        let mut header = serde_json::to_vec(&header).map_err(std::io::Error::from)?;
        header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
        let len = header.len();
        if len > MAX_HEADER_BYTES {
            return Err(FileWriteError::HeaderTooLarge { len });
        }
        out.write_all(&(len as u64).to_le_bytes())?;
        out.write_all(&header)?;
        for tensor in tensors {
            out.write_all(tensor.data.as_slice())?;
        }
        Ok(())
    }

    /// The file as bytes.
    ///
    /// # Errors
    /// A tensor name was added twice, or the header is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileWriteError> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the file at `path`, replacing an existing one as
    /// [`GgufWriter::write_file`](crate::GgufWriter::write_file) does.
    ///
    /// # Errors
    /// Those of [`write_to`](Self::write_to), or the file cannot be created.
    pub fn write_file(&self, path: impl AsRef<Path>) -> Result<(), FileWriteError> {
        replace_file(path.as_ref(), |out| self.write_to(out))
    }
}

/// The header: the metadata if there is any, and the tensors in the order of their data.
struct Header<'a> {
    metadata: &'a BTreeMap<String, String>,
    tensors: &'a [&'a Tensor],
}

#[derive(Serialize)]
struct Info<'a> {
    dtype: &'static str,
    shape: &'a [usize],
    data_offsets: [usize; 2],
}

impl Serialize for Header<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.metadata.is_empty() {
            map.serialize_entry(METADATA_KEY, self.metadata)?;
        }
        let mut end = 0;
        for tensor in self.tensors {
            let start = end;
            end += tensor.data.len();
            let info = Info {
                dtype: tensor.dtype.name(),
                shape: &tensor.dims,
                data_offsets: [start, end],
            };
            map.serialize_entry(&tensor.name, &info)?;
        }
        map.end()
    }
}
