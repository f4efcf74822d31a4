//! safetensors, the tensor container of Hugging Face.
//!
//! Source: the format section of the safetensors README. A file is the length of its header (u64,
//! little-endian), the header (a JSON object from tensor names to dtype, shape and data offsets,
//! with texts under `__metadata__`) and the data, which the tensors cover without gap or overlap.

mod dtype;
mod error;
mod header;
mod read;
mod sharded;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kovar_core::{DType, HostBytes};

use crate::MAX_DIMS;
use crate::index::NameIndex;
use crate::mmap::map_file;
use crate::tensor::FileTensor;

pub use dtype::TensorDType;
pub use error::{ReadError, SafeTensorsError};
pub use sharded::{ShardError, Shards};
pub use writer::SafeTensorsWriter;

/// The longest header that is read, in bytes: the limit of the reference implementation.
pub const MAX_HEADER_BYTES: usize = 100_000_000;

/// A tensor of a safetensors file.
pub type SafeTensorInfo = FileTensor<TensorDType>;

impl SafeTensorInfo {
    /// The dtype that kovar computes with.
    ///
    /// # Errors
    /// [`ReadError::NoSuchDType`] if kovar does not compute with the dtype of the file.
    pub fn to_dtype(&self) -> Result<DType, ReadError> {
        self.dtype.to_dtype().ok_or_else(|| ReadError::NoSuchDType {
            tensor: self.name.to_string(),
            found: self.dtype,
        })
    }
}

/// An open safetensors file whose header has been checked.
#[derive(Clone, Debug)]
pub struct SafeTensors {
    file: HostBytes,
    metadata: BTreeMap<String, String>,
    tensors: Vec<SafeTensorInfo>,
    index: NameIndex,
}

impl SafeTensors {
    /// Maps the file at `path` and reads its header. [`map_file`] says what must not happen to a
    /// mapped file.
    ///
    /// # Errors
    /// The file cannot be opened or its header is not valid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SafeTensorsError> {
        let path = path.as_ref();
        let file = map_file(path).map_err(|source| SafeTensorsError::Open {
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes(file)
    }

    /// Reads the header of a file in memory. Only the header is copied.
    ///
    /// # Errors
    /// The header is not valid.
    pub fn from_bytes(file: HostBytes) -> Result<Self, SafeTensorsError> {
        let header = header::parse(&file)?;
        Ok(Self {
            file,
            metadata: header.metadata,
            tensors: header.tensors,
            index: header.index,
        })
    }

    /// Reads the header of a file that is embedded in the program.
    ///
    /// # Errors
    /// The header is not valid.
    pub fn from_static(file: &'static [u8]) -> Result<Self, SafeTensorsError> {
        Self::from_bytes(HostBytes::new(Arc::new(file)))
    }

    /// Bytes of the whole file.
    pub fn file_len(&self) -> usize {
        self.file.len()
    }

    /// The texts under `__metadata__`.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The tensors in the order of the header.
    pub fn tensors(&self) -> std::slice::Iter<'_, SafeTensorInfo> {
        self.tensors.iter()
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&SafeTensorInfo> {
        self.index.find(&self.tensors, name, |tensor| &tensor.name)
    }

    /// The data of `tensor`, a window of the file.
    pub fn bytes(&self, tensor: &SafeTensorInfo) -> HostBytes {
        tensor.bytes()
    }
}

/// Bytes of a tensor; `None` if it has too many dims or their product overflows, zeros counted as
/// ones. So no product of some of the dims overflows.
fn bytes_of(dtype: TensorDType, dims: &[usize]) -> Option<usize> {
    let mut others = dims.iter().map(|&dim| dim.max(1));
    let product = others.try_fold(dtype.bytes(), usize::checked_mul);
    product.filter(|_| dims.len() <= MAX_DIMS)?;
    Some(dtype.bytes() * dims.iter().product::<usize>())
}
