//! Writing GGUF files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use kovar_core::{DType, HostBytes};

use super::stream::GgufStream;
use super::value::{Array, Value, number_kinds};
use super::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAGIC, MAX_NAME_BYTES, MAX_NESTING};
use crate::error::FileWriteError;
use crate::index::{IndexError, NameIndex};
use crate::replace::{PartialFile, replace_file};
use crate::tensor::bytes_of;

const VERSION: u32 = 3;

/// Collects metadata and tensors and writes them as a GGUF file of version 3.
///
/// Keys and tensors are written in the order in which they were added. Tensor data is padded to the
/// alignment. [`Gguf`](super::Gguf) reads every file that the writer accepts.
#[derive(Clone, Debug)]
pub struct GgufWriter {
    alignment: u32,
    metadata: Vec<(String, Value)>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    type_id: u32,
    dims: Vec<usize>,
    size: usize,
    /// `None` if the data will be streamed.
    data: Option<HostBytes>,
}

impl Default for GgufWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl GgufWriter {
    /// An empty file with an alignment of 32 bytes.
    pub fn new() -> Self {
        Self {
            alignment: DEFAULT_ALIGNMENT,
            metadata: Vec::new(),
            tensors: Vec::new(),
        }
    }

    /// An empty file with this alignment in bytes, which is written as `general.alignment` if it is
    /// not 32.
    ///
    /// # Errors
    /// The alignment is not a power of two.
    pub fn with_alignment(alignment: u32) -> Result<Self, FileWriteError> {
        if !alignment.is_power_of_two() {
            return Err(FileWriteError::InvalidAlignment { alignment });
        }
        let mut writer = Self::new();
        if alignment != DEFAULT_ALIGNMENT {
            writer.alignment = alignment;
            writer
                .metadata
                .push((ALIGNMENT_KEY.to_owned(), alignment.into()));
        }
        Ok(writer)
    }

    /// Adds a key-value pair.
    ///
    /// # Errors
    /// The key is too long or is `general.alignment`, or the value nests arrays too deep. A key
    /// that is added twice is reported when the file is written.
    pub fn metadata(
        &mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<&mut Self, FileWriteError> {
        let (key, value) = (checked_name(key.into())?, value.into());
        if key == ALIGNMENT_KEY {
            return Err(FileWriteError::AlignmentKey);
        }
        if let Value::Array(array) = &value
            && array.depth() > MAX_NESTING
        {
            return Err(FileWriteError::NestedTooDeep { key });
        }
        self.metadata.push((key, value));
        Ok(self)
    }

    /// Adds a tensor whose data is in memory; see [`tensor_bytes`](Self::tensor_bytes).
    ///
    /// # Errors
    /// Those of [`tensor_bytes`](Self::tensor_bytes).
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        dims: &[usize],
        data: Vec<u8>,
    ) -> Result<&mut Self, FileWriteError> {
        self.tensor_bytes(name, dtype, dims, HostBytes::new(Arc::new(data)))
    }

    /// Adds a tensor. `dims` are row-major, outermost first; `data` holds the little-endian
    /// elements or the blocks, row after row.
    ///
    /// # Errors
    /// GGUF lacks the dtype, the name is too long, there are more than
    /// [`MAX_DIMS`](crate::MAX_DIMS) dims, a dim is zero, the rows are not whole blocks, or the
    /// data has another size. A name that is added twice is reported when the file is written.
    pub fn tensor_bytes(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        dims: &[usize],
        data: HostBytes,
    ) -> Result<&mut Self, FileWriteError> {
        let name = name.into();
        let actual = data.len();
        let tensor = self.declare(name, dtype, dims)?;
        if actual != tensor.size {
            let (tensor, expected) = (tensor.name.clone(), tensor.size);
            self.tensors.pop();
            return Err(FileWriteError::WrongSize {
                tensor,
                expected,
                actual,
            });
        }
        tensor.data = Some(data);
        Ok(self)
    }

    /// Adds a tensor whose data will be passed to the stream of [`stream`](Self::stream).
    ///
    /// # Errors
    /// Those of [`tensor_bytes`](Self::tensor_bytes) that do not concern the data.
    pub fn declare_tensor(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        dims: &[usize],
    ) -> Result<&mut Self, FileWriteError> {
        self.declare(name.into(), dtype, dims)?;
        Ok(self)
    }

    fn declare(
        &mut self,
        name: String,
        dtype: DType,
        dims: &[usize],
    ) -> Result<&mut Tensor, FileWriteError> {
        let name = checked_name(name)?;
        let Some(type_id) = dtype.gguf_id() else {
            return Err(FileWriteError::NoSuchDType {
                tensor: name,
                dtype,
                format: "GGUF",
            });
        };
        let Some(size) = bytes_of(dtype, dims).filter(|_| !dims.contains(&0)) else {
            return Err(FileWriteError::InvalidDims {
                tensor: name,
                dtype: dtype.name(),
                dims: dims.to_vec(),
            });
        };
        Ok(self.tensors.push_mut(Tensor {
            name,
            type_id,
            dims: dims.to_vec(),
            size,
            data: None,
        }))
    }

    /// Writes the header to `out`. The caller must then pass the data of all tensors to the stream,
    /// in order, including those of [`tensor_bytes`](Self::tensor_bytes).
    ///
    /// # Errors
    /// A key or tensor name was added twice, or `out` fails.
    pub fn stream<W: Write>(&self, out: W) -> Result<GgufStream<W>, FileWriteError> {
        let sizes = self.tensors.iter().map(|t| (t.name.clone(), t.size));
        GgufStream::start(
            out,
            &self.header()?,
            self.alignment as usize,
            sizes.collect(),
        )
    }

    /// Writes the file to `out`.
    ///
    /// # Errors
    /// A key or tensor name was added twice, a tensor has no data, or `out` fails.
    pub fn write_to(&self, out: &mut impl Write) -> Result<(), FileWriteError> {
        let mut stream = self.stream(out)?;
        for tensor in &self.tensors {
            let data = tensor.data.as_ref().ok_or_else(|| FileWriteError::NoData {
                tensor: tensor.name.clone(),
            })?;
            stream.data(data.as_slice())?;
        }
        stream.finish()?;
        Ok(())
    }

    /// The file as bytes.
    ///
    /// # Errors
    /// A key or tensor name was added twice, or a tensor has no data.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileWriteError> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the file at `path`, replacing an existing one.
    ///
    /// The bytes go to a new file in the same folder, which is renamed to `path` once it is
    /// complete. So the replaced file may be the mapped source of the tensors. If `path` is a link,
    /// the link stays and the file that it leads to is replaced.
    ///
    /// # Errors
    /// Those of [`write_to`](Self::write_to), or the file cannot be created.
    pub fn write_file(&self, path: impl AsRef<Path>) -> Result<(), FileWriteError> {
        replace_file(path.as_ref(), |out| self.write_to(out))
    }

    /// Checks that a file can be written at `path`: creates the new file that would be renamed to
    /// `path`, and removes it.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn check_writable(path: impl AsRef<Path>) -> Result<(), FileWriteError> {
        PartialFile::write(path.as_ref(), |_| Ok(())).map(drop)
    }

    /// Writes the file at `path` as [`write_file`](Self::write_file) does. `fill` passes the data
    /// of all tensors to the stream.
    ///
    /// # Errors
    /// Those of [`stream`](Self::stream) and of `fill`, or the file cannot be created or written.
    /// No file is left then.
    pub fn stream_file<E: From<FileWriteError>>(
        &self,
        path: impl AsRef<Path>,
        fill: impl FnOnce(&mut GgufStream<&mut BufWriter<File>>) -> Result<(), E>,
    ) -> Result<(), E> {
        Ok(self.stream_partial(path.as_ref(), fill)?.persist()?)
    }

    /// [`stream_file`](Self::stream_file) without renaming the file to `path`.
    pub(crate) fn stream_partial<E: From<FileWriteError>>(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut GgufStream<&mut BufWriter<File>>) -> Result<(), E>,
    ) -> Result<PartialFile, E> {
        PartialFile::write(path, |out| {
            let mut stream = self.stream(out)?;
            fill(&mut stream)?;
            stream.finish()?;
            Ok(())
        })
    }

    fn padding(&self, written: usize) -> usize {
        written.wrapping_neg() & (self.alignment as usize - 1)
    }

    fn header(&self) -> Result<Vec<u8>, FileWriteError> {
        self.check_names()?;
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        put_len(&mut out, self.tensors.len());
        put_len(&mut out, self.metadata.len());
        for (key, value) in &self.metadata {
            put_str(&mut out, key);
            out.extend(value.kind().id().to_le_bytes());
            put_value(&mut out, value);
        }
        let mut start = 0;
        for tensor in &self.tensors {
            put_str(&mut out, &tensor.name);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            for &dim in tensor.dims.iter().rev() {
                put_len(&mut out, dim);
            }
            out.extend(tensor.type_id.to_le_bytes());
            put_len(&mut out, start);
            start += tensor.size;
            start += self.padding(start);
        }
        Ok(out)
    }

    fn check_names(&self) -> Result<(), FileWriteError> {
        let keys = NameIndex::new(&self.metadata, |(key, _)| key);
        keys.map_err(|error| match error {
            IndexError::Duplicate(key) => FileWriteError::DuplicateKey { key },
            IndexError::TooMany => FileWriteError::TooManyEntries,
        })?;
        let tensors = NameIndex::new(&self.tensors, |tensor| &tensor.name);
        tensors.map(drop).map_err(FileWriteError::of_tensor_names)
    }
}

fn checked_name(name: String) -> Result<String, FileWriteError> {
    if name.len() > MAX_NAME_BYTES {
        return Err(FileWriteError::NameTooLong { name });
    }
    Ok(name)
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend((len as u64).to_le_bytes());
}

fn put_str(out: &mut Vec<u8>, text: &str) {
    put_len(out, text.len());
    out.extend(text.as_bytes());
}

impl Value {
    /// Appends the kind and the contents in the form of a GGUF file.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend(self.kind().id().to_le_bytes());
        put_value(out, self);
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    macro_rules! put {
        ($($kind:ident: $type:ty),*) => {
            match value {
                $(Value::$kind(v) => out.extend(v.to_le_bytes()),)*
                Value::Bool(v) => out.push((*v).into()),
                Value::String(v) => put_str(out, v),
                Value::Array(v) => put_array(out, v),
            }
        };
    }
    number_kinds!(put)
}

fn put_array(out: &mut Vec<u8>, array: &Array) {
    out.extend(array.element_kind().id().to_le_bytes());
    put_len(out, array.len());
    macro_rules! put {
        ($($kind:ident: $type:ty),*) => {
            match array {
                $(Array::$kind(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),)*
                Array::Bool(v) => out.extend(v.iter().map(|&x| u8::from(x))),
                Array::String(v) => v.iter().for_each(|text| put_str(out, text)),
                Array::Array(v) => v.iter().for_each(|inner| put_array(out, inner)),
            }
        };
    }
    number_kinds!(put)
}
