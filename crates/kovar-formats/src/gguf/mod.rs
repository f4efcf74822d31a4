//! GGUF, the single-file model format of ggml.
//!
//! Source: the GGUF specification (`docs/gguf.md` in the ggml repository), versions 2 and 3,
//! little-endian. A file is a header (metadata and tensor descriptions) and, aligned after it, the
//! data of the tensors:
//!
//! ```text
//! "GGUF" | version u32 | tensor count u64 | metadata count u64
//! metadata: key string | kind u32 | value                             (repeated)
//! tensors:  name string | n u32 | n dims u64, innermost first | type u32 | offset u64
//! padding to the alignment | data
//! ```
//!
//! A string is its length (u64) and its bytes; an array is the kind of its elements (u32), their
//! count (u64) and the elements.

mod cursor;
mod error;
mod metadata;
mod parse;
mod split;
mod stream;
mod tensor;
mod value;
mod writer;

use std::path::Path;
use std::sync::Arc;

use kovar_core::HostBytes;

use crate::index::NameIndex;
use crate::mmap::map_file;

pub use error::{GgufError, GgufField};
pub(crate) use metadata::Entry;
pub use metadata::{Metadata, MetadataError};
pub(crate) use split::{OpenSplitError, SPLIT_PREFIX, open_split, shard_path};
pub use split::{SPLIT_COUNT_KEY, SPLIT_NO_KEY, SPLIT_TENSORS_KEY, SplitError};
pub use stream::GgufStream;
pub use tensor::TensorInfo;
pub use value::{Array, StringArray, Value, ValueKind};
pub use writer::GgufWriter;

/// The metadata key that sets the alignment of the data section.
pub const ALIGNMENT_KEY: &str = "general.alignment";
/// The alignment of a file without this key, in bytes.
pub const DEFAULT_ALIGNMENT: u32 = 32;
/// The most bytes of a key or of a tensor name.
///
/// This is the limit of the specification for keys. ggml limits tensor names to 63 bytes, but other
/// programs write longer ones.
pub const MAX_NAME_BYTES: usize = 65_535;
/// The deepest nesting of arrays; an array of numbers has depth 1.
pub const MAX_NESTING: usize = 4;

const MAGIC: [u8; 4] = *b"GGUF";

/// An open GGUF file whose header has been checked.
///
/// A file may have no tensors, for instance one that holds only a vocabulary.
///
/// ```
/// use kovar_core::{DType, HostBytes};
/// use kovar_formats::gguf::{Gguf, GgufWriter};
///
/// let mut writer = GgufWriter::new();
/// writer.metadata("general.architecture", "llama")?;
/// writer.tensor("w", DType::F32, &[2, 3], vec![0u8; 24])?;
/// let bytes = writer.to_bytes()?;
///
/// let file = Gguf::from_bytes(HostBytes::new(std::sync::Arc::new(bytes)))?;
/// assert_eq!(file.metadata().get_str("general.architecture")?, Some("llama"));
/// assert_eq!(file.tensor("w").map(|t| t.dims()), Some(&[2, 3][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gguf {
    file: HostBytes,
    version: u32,
    alignment: u32,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: NameIndex,
}

impl Gguf {
    /// Maps the file at `path` and reads its header. [`map_file`] says what must not happen to a
    /// mapped file.
    ///
    /// # Errors
    /// The file cannot be opened or its header is not valid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        let path = path.as_ref();
        let file = map_file(path).map_err(|source| GgufError::Open {
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes(file)
    }

    /// Reads the header of a file in memory. Only the header is copied.
    ///
    /// # Errors
    /// The header is not valid.
    pub fn from_bytes(file: HostBytes) -> Result<Self, GgufError> {
        let header = parse::parse(&file)?;
        Ok(Self {
            file,
            version: header.version,
            alignment: header.alignment,
            metadata: header.metadata,
            tensors: header.tensors,
            index: header.index,
        })
    }

    /// Reads the header of a file that is embedded in the program.
    ///
    /// # Errors
    /// The header is not valid.
    pub fn from_static(file: &'static [u8]) -> Result<Self, GgufError> {
        Self::from_bytes(HostBytes::new(Arc::new(file)))
    }

    /// The format version of the file, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The alignment of tensor data from the start of the file, in bytes; a power of two.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Bytes of the whole file.
    pub fn file_len(&self) -> usize {
        self.file.len()
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors in the order of the file.
    pub fn tensors(&self) -> std::slice::Iter<'_, TensorInfo> {
        self.tensors.iter()
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.find(&self.tensors, name, |tensor| tensor.name())
    }

    pub(crate) fn into_header(self) -> (Metadata, Vec<TensorInfo>, NameIndex) {
        (self.metadata, self.tensors, self.index)
    }

    /// The data of `tensor`, a window of the file.
    pub fn bytes(&self, tensor: &TensorInfo) -> HostBytes {
        tensor.bytes()
    }
}
