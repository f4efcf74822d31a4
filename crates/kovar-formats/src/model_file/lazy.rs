//! Tensors that are computed from the tensors of a file on demand.

use std::sync::Arc;

use kovar_core::error::CodecError;
use kovar_core::{DType, HostBytes, quant};

use crate::tensor::bytes_of;

/// Elements that are converted at a time.
const CHUNK: usize = 1 << 16;

/// A tensor whose bytes are a window of a file, or are computed from such windows on demand.
///
/// Building one reads no data: each transform only checks dtypes and dims, and
/// [`bytes`](Self::bytes) computes them all.
#[derive(Clone, Debug)]
pub struct LazyTensor {
    dtype: DType,
    dims: Box<[usize]>,
    size: usize,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Bytes(HostBytes),
    Cast(Box<LazyTensor>),
    Interleave { of: Box<LazyTensor>, heads: usize },
    Transpose(Box<LazyTensor>),
    Concat(Vec<LazyTensor>),
}

/// Why a tensor cannot be transformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// The number of bytes does not fit the requested dims.
    #[error("dims {dims:?} of {dtype} do not take {bytes} bytes")]
    Size {
        /// The dtype.
        dtype: DType,
        /// The dims, outermost first.
        dims: Vec<usize>,
        /// Bytes of the tensor.
        bytes: usize,
    },
    /// The dtype cannot be cast from or to.
    #[error("{from} cannot become {to}")]
    DType {
        /// The dtype of the tensor.
        from: DType,
        /// The requested dtype.
        to: DType,
    },
    /// The tensor is not a matrix of plain elements.
    #[error("dims {dims:?} of {dtype} are not those of a matrix of plain elements")]
    NotMatrix {
        /// The dtype.
        dtype: DType,
        /// The dims, outermost first.
        dims: Vec<usize>,
    },
    /// The rows are not heads with an even number of rows each.
    #[error("{rows} rows are not {heads} heads of an even number of rows")]
    Heads {
        /// Rows of the tensor.
        rows: usize,
        /// The requested number of heads.
        heads: usize,
    },
    /// The tensors differ in dtype or in their inner dims, or there are none.
    #[error("tensors of different rows or dtypes cannot be joined")]
    Concat,
}

impl LazyTensor {
    /// The tensor in `bytes`, row-major, little-endian.
    ///
    /// # Errors
    /// There are too many dims, the rows are not whole blocks, or `bytes` has another size.
    pub fn new(dtype: DType, dims: &[usize], bytes: HostBytes) -> Result<Self, TransformError> {
        match bytes_of(dtype, dims).filter(|&size| size == bytes.len()) {
            Some(size) => Ok(Self {
                dtype,
                dims: dims.into(),
                size,
                data: Data::Bytes(bytes),
            }),
            None => Err(TransformError::Size {
                dtype,
                dims: dims.to_vec(),
                bytes: bytes.len(),
            }),
        }
    }

    /// The tensor in `data`, whose size was checked to fit the dims.
    pub(crate) fn window(dtype: DType, dims: Box<[usize]>, data: HostBytes) -> Self {
        Self {
            dtype,
            dims,
            size: data.len(),
            data: Data::Bytes(data),
        }
    }

    /// The F32 tensor of these values.
    ///
    /// # Errors
    /// The dims have another number of elements.
    pub fn from_values(dims: &[usize], values: &[f32]) -> Result<Self, TransformError> {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self::new(DType::F32, dims, HostBytes::new(Arc::new(bytes)))
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dims, row-major, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Bytes of all elements.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The same elements with other dims.
    ///
    /// # Errors
    /// The dims have another number of elements, or their rows are not whole blocks.
    pub fn reshape(mut self, dims: &[usize]) -> Result<Self, TransformError> {
        if bytes_of(self.dtype, dims) != Some(self.size) {
            return Err(TransformError::Size {
                dtype: self.dtype,
                dims: dims.to_vec(),
                bytes: self.size,
            });
        }
        self.dims = dims.into();
        Ok(self)
    }

    /// The same values in another plain float dtype.
    ///
    /// # Errors
    /// The tensor has neither floats nor quantised blocks, or `dtype` is not a plain float.
    pub fn cast(self, dtype: DType) -> Result<Self, TransformError> {
        if self.dtype == dtype {
            return Ok(self);
        }
        let readable = self.dtype.is_float() || self.dtype.is_quantized();
        let size = dtype.bytes_for(self.elements());
        match size.filter(|_| readable && dtype.is_float()) {
            Some(size) => Ok(Self {
                dtype,
                dims: self.dims.clone(),
                size,
                data: Data::Cast(Box::new(self)),
            }),
            None => Err(TransformError::DType {
                from: self.dtype,
                to: dtype,
            }),
        }
    }

    /// Reorders the rows of each head from two halves to pairs: row `i + n / 2` of the `n` rows of
    /// a head comes after row `i`.
    ///
    /// In Hugging Face's files the rotary embedding pairs row `i` of a query or key with row
    /// `i + n / 2`; in the `llama` architecture of GGUF it pairs neighbours.
    ///
    /// # Errors
    /// The outermost dim is not `heads` heads with an even number of rows each.
    pub fn interleave_halves(self, heads: usize) -> Result<Self, TransformError> {
        let rows = self.dims.first().copied().unwrap_or(1);
        let is_cut = |per_head: usize| per_head.is_multiple_of(2);
        let fits = rows.checked_div(heads).is_some_and(is_cut) && rows.is_multiple_of(heads);
        if !fits || self.dims.len() < 2 && self.dtype.block_len() > 1 {
            return Err(TransformError::Heads { rows, heads });
        }
        Ok(Self {
            dtype: self.dtype,
            dims: self.dims.clone(),
            size: self.size,
            data: Data::Interleave {
                of: Box::new(self),
                heads,
            },
        })
    }

    /// Transposes a matrix of plain elements.
    ///
    /// # Errors
    /// The tensor is not such a matrix.
    pub fn transpose(self) -> Result<Self, TransformError> {
        match *self.dims {
            [rows, columns] if self.dtype.block_len() == 1 => Ok(Self {
                dtype: self.dtype,
                dims: [columns, rows].into(),
                size: self.size,
                data: Data::Transpose(Box::new(self)),
            }),
            _ => Err(TransformError::NotMatrix {
                dtype: self.dtype,
                dims: self.dims.into_vec(),
            }),
        }
    }

    /// Concatenates the tensors along the outermost dim.
    ///
    /// # Errors
    /// There are none, or they differ in dtype or inner dims.
    pub fn concat(tensors: Vec<Self>) -> Result<Self, TransformError> {
        let joined = tensors.split_first().and_then(|(first, rest)| {
            let (rows, inner) = first.dims.split_first()?;
            let mut rows = *rows;
            let mut size = first.size;
            for tensor in rest {
                let (more, same) = tensor.dims.split_first()?;
                if same != inner || tensor.dtype != first.dtype {
                    return None;
                }
                rows = rows.checked_add(*more)?;
                size = size.checked_add(tensor.size)?;
            }
            let dims = std::iter::once(rows).chain(inner.iter().copied()).collect();
            Some((first.dtype, dims, size))
        });
        let (dtype, dims, size) = joined.ok_or(TransformError::Concat)?;
        Ok(Self {
            dtype,
            dims,
            size,
            data: Data::Concat(tensors),
        })
    }

    /// The bytes: a window of the file if there are no transforms, and computed by this call
    /// otherwise.
    ///
    /// # Errors
    /// The elements cannot be decoded.
    pub fn bytes(&self) -> Result<HostBytes, CodecError> {
        let computed = match &self.data {
            Data::Bytes(bytes) => return Ok(bytes.clone()),
            Data::Cast(of) => cast(of.bytes()?.as_slice(), of.dtype, self.dtype)?,
            Data::Interleave { of, heads } => interleave(of.bytes()?.as_slice(), &of.dims, *heads),
            Data::Transpose(of) => {
                let columns = of.dims.last().copied().unwrap_or(1);
                transpose(of.bytes()?.as_slice(), columns, of.dtype.block_bytes())
            }
            Data::Concat(tensors) => {
                let mut joined = Vec::with_capacity(self.size);
                for tensor in tensors {
                    joined.extend_from_slice(tensor.bytes()?.as_slice());
                }
                joined
            }
        };
        Ok(HostBytes::new(Arc::new(computed)))
    }
}

fn cast(bytes: &[u8], from: DType, to: DType) -> Result<Vec<u8>, CodecError> {
    let elements = bytes.len() / from.block_bytes() * from.block_len();
    let mut out = vec![0; to.bytes_for(elements).unwrap_or(0)];
    let mut values = vec![0.0; CHUNK.min(elements)];
    let from_chunk = CHUNK / from.block_len() * from.block_bytes();
    let to_chunk = CHUNK / to.block_len() * to.block_bytes();
    for (source, target) in bytes.chunks(from_chunk).zip(out.chunks_mut(to_chunk)) {
        let count = source.len() / from.block_bytes() * from.block_len();
        if let Some(values) = values.get_mut(..count) {
            quant::decode(from, source, values)?;
            quant::encode(to, values, target)?;
        }
    }
    Ok(out)
}

fn interleave(bytes: &[u8], dims: &[usize], heads: usize) -> Vec<u8> {
    let rows = dims.first().copied().unwrap_or(1);
    let head_bytes = bytes.len() / heads.max(1);
    let row_bytes = bytes.len() / rows.max(1);
    let mut out = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(head_bytes.max(1)) {
        let (first, second) = head.split_at(head.len() / 2);
        let pairs = first.chunks(row_bytes.max(1));
        for (a, b) in pairs.zip(second.chunks(row_bytes.max(1))) {
            out.extend_from_slice(a);
            out.extend_from_slice(b);
        }
    }
    out
}

/// `bytes` are rows of `columns` elements of `width` bytes each. Works in tiles, so that neither
/// reads nor writes touch a new page at every element.
fn transpose(bytes: &[u8], columns: usize, width: usize) -> Vec<u8> {
    const TILE: usize = 32;
    let rows = bytes.len() / (columns * width).max(1);
    let mut out = vec![0; bytes.len()];
    for row_tile in (0..rows).step_by(TILE) {
        for column_tile in (0..columns).step_by(TILE) {
            for row in row_tile..rows.min(row_tile + TILE) {
                for column in column_tile..columns.min(column_tile + TILE) {
                    let from = (row * columns + column) * width;
                    let to = (column * rows + row) * width;
                    if let (Some(source), Some(target)) =
                        (bytes.get(from..from + width), out.get_mut(to..to + width))
                    {
                        target.copy_from_slice(source);
                    }
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize) -> LazyTensor {
        let values: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        LazyTensor::from_values(&[rows, columns], &values).unwrap()
    }

    fn values(tensor: &LazyTensor) -> Vec<f32> {
        let bytes = tensor.bytes().unwrap();
        assert_eq!(bytes.len(), tensor.size());
        let mut values = vec![0.0; tensor.elements()];
        quant::decode(tensor.dtype(), bytes.as_slice(), &mut values).unwrap();
        values
    }

    #[test]
    fn halves_of_each_head_become_pairs() {
        let tensor = matrix(8, 2).interleave_halves(2).unwrap();
        let rows: Vec<f32> = values(&tensor).chunks(2).map(|row| row[0] / 2.0).collect();
        assert_eq!(rows, [0., 2., 1., 3., 4., 6., 5., 7.]);
        for heads in [0, 3, 8] {
            assert_eq!(
                matrix(8, 2).interleave_halves(heads).unwrap_err(),
                TransformError::Heads { rows: 8, heads }
            );
        }
    }

    #[test]
    fn a_transposed_matrix_has_its_columns_as_rows() {
        for (rows, columns) in [(2, 3), (1, 5), (33, 70)] {
            let tensor = matrix(rows, columns).transpose().unwrap();
            assert_eq!(tensor.dims(), [columns, rows]);
            let found = values(&tensor);
            for (i, &value) in found.iter().enumerate() {
                assert_eq!(value, ((i % rows) * columns + i / rows) as f32);
            }
        }
        assert!(matrix(2, 3).reshape(&[6]).unwrap().transpose().is_err());
    }

    #[test]
    fn transforms_are_computed_in_their_order() {
        let joined = LazyTensor::concat(vec![matrix(1, 3), matrix(2, 3)]).unwrap();
        assert_eq!(joined.dims(), [3, 3]);
        let tensor = joined.cast(DType::F16).unwrap().transpose().unwrap();
        let tensor = tensor.reshape(&[9]).unwrap();
        assert_eq!((tensor.dtype(), tensor.size()), (DType::F16, 18));
        assert_eq!(
            values(&tensor),
            [0.0, 0.0, 3.0, 1.0, 1.0, 4.0, 2.0, 2.0, 5.0]
        );
    }

    #[test]
    fn a_long_cast_keeps_every_element() {
        let elements = 3 * (CHUNK / 2 + 7);
        let expected: Vec<f32> = (0..elements).map(|i| (i % 1024) as f32).collect();
        let tensor = LazyTensor::from_values(&[elements], &expected).unwrap();
        assert_eq!(values(&tensor.cast(DType::F16).unwrap()), expected);
    }

    #[test]
    fn nothing_is_copied_where_nothing_is_done() {
        let bytes = HostBytes::new(Arc::new(vec![0; 24]));
        let tensor = LazyTensor::new(DType::F32, &[2, 3], bytes.clone()).unwrap();
        let tensor = tensor.cast(DType::F32).unwrap().reshape(&[3, 2]).unwrap();
        let window = tensor.bytes().unwrap();
        assert_eq!(window.as_slice().as_ptr(), bytes.as_slice().as_ptr());
    }

    #[test]
    fn dims_that_do_not_fit_are_refused() {
        let bytes = || HostBytes::new(Arc::new(vec![0; 24]));
        assert!(LazyTensor::new(DType::F32, &[7], bytes()).is_err());
        assert!(LazyTensor::new(DType::F32, &[usize::MAX, 2], bytes()).is_err());
        assert!(LazyTensor::new(DType::F32, &[1, 1, 1, 1, 1, 1, 6], bytes()).is_err());
        assert!(LazyTensor::concat(vec![]).is_err());
        assert!(LazyTensor::concat(vec![matrix(1, 2), matrix(1, 3)]).is_err());
        assert!(matrix(2, 2).reshape(&[5]).is_err());
        let ids = LazyTensor::new(DType::I32, &[6], bytes()).unwrap();
        assert_eq!(
            ids.cast(DType::F32).unwrap_err().to_string(),
            "I32 cannot become F32"
        );
    }
}
