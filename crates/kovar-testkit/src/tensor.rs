//! Logical tensors, and their conversion from and to the bytes of a strided value.

use kovar_core::error::CodecError;
use kovar_core::{DType, Value, plain, quant};

use crate::metrics::index_tuple;

/// The elements of a [`TensorData`], row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Of a floating-point or quantised value.
    Float(Vec<f64>),
    /// Of an integer value, or of Bool as 0 and 1.
    Int(Vec<i64>),
}

/// A tensor without strides, offsets or storage formats.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorData {
    dims: Vec<usize>,
    elements: Elements,
}

/// Why bytes and a logical tensor do not match.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A number of elements that is not the product of the dims.
    #[error("dims {dims:?} take {expected} elements, {found} were given")]
    Count {
        /// The dims.
        dims: Vec<usize>,
        /// Their product.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// Integers where numbers are needed, or the other way round.
    #[error("a tensor of dims {dims:?} does not hold {wanted}")]
    Kind {
        /// The dims.
        dims: Vec<usize>,
        /// "numbers" or "integers".
        wanted: &'static str,
    },
    /// A value that reaches beyond its storage.
    #[error("a {dtype} value reaches byte {end} of a storage of {bytes} bytes")]
    OutOfStorage {
        /// The value's dtype.
        dtype: DType,
        /// The byte after the unit that is outside.
        end: usize,
        /// The storage's size.
        bytes: usize,
    },
    /// Elements that the dtype cannot encode.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl TensorData {
    /// Numbers; their count must be the product of `dims`.
    pub fn floats(dims: &[usize], values: Vec<f64>) -> Result<Self, TensorError> {
        Self::new(dims, values.len(), Elements::Float(values))
    }

    /// Integers; their count must be the product of `dims`.
    pub fn ints(dims: &[usize], values: Vec<i64>) -> Result<Self, TensorError> {
        Self::new(dims, values.len(), Elements::Int(values))
    }

    fn new(dims: &[usize], found: usize, elements: Elements) -> Result<Self, TensorError> {
        let (dims, expected) = (dims.to_vec(), dims.iter().product());
        if found != expected {
            return Err(TensorError::Count {
                dims,
                expected,
                found,
            });
        }
        Ok(Self { dims, elements })
    }

    /// Sizes, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The size counted from the innermost dimension; 1 beyond the outermost.
    pub fn from_end(&self, i: usize) -> usize {
        self.dims.iter().rev().nth(i).copied().unwrap_or(1)
    }

    /// The elements, row-major.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// The numbers, row-major.
    pub fn values(&self) -> Result<&[f64], TensorError> {
        match &self.elements {
            Elements::Float(values) => Ok(values),
            Elements::Int(_) => Err(self.wrong_kind("numbers")),
        }
    }

    /// The integers, row-major.
    pub fn indices(&self) -> Result<&[i64], TensorError> {
        match &self.elements {
            Elements::Int(values) => Ok(values),
            Elements::Float(_) => Err(self.wrong_kind("integers")),
        }
    }

    fn wrong_kind(&self, wanted: &'static str) -> TensorError {
        TensorError::Kind {
            dims: self.dims.clone(),
            wanted,
        }
    }

    /// The numbers repeated to `dims`, to which the tensor's own must broadcast (sizes equal or 1,
    /// counted from the last).
    pub fn broadcast(&self, dims: &[usize]) -> Result<Vec<f64>, TensorError> {
        let values = self.values()?;
        let count = dims.iter().product();
        let mut out = Vec::with_capacity(count);
        for flat in 0..count {
            let (mut rest, mut at, mut stride) = (flat, 0, 1);
            for (i, &size) in dims.iter().rev().enumerate() {
                let own = self.from_end(i);
                if own != 1 {
                    at += rest % size * stride;
                }
                stride *= own;
                rest /= size;
            }
            out.push(values[at]);
        }
        Ok(out)
    }

    /// The tensor whose element at each index tuple is the one that `from` gives (a source, and the
    /// index tuple in it), or the constant where `from` gives `None`. The sources hold all numbers
    /// or all integers.
    pub(crate) fn gathered(
        dims: &[usize],
        sources: &[&TensorData],
        constant: f64,
        from: impl Fn(&[usize]) -> Option<(usize, Vec<usize>)>,
    ) -> Result<TensorData, TensorError> {
        let count = dims.iter().product();
        let places = (0..count).map(|flat| {
            let (source, index) = from(&index_tuple(dims, flat))?;
            let at = index.iter().zip(sources[source].dims());
            Some((source, at.fold(0, |at, (i, size)| at * size + i)))
        });
        if sources.iter().all(|x| x.indices().is_ok()) {
            let lists: Vec<&[i64]> = sources.iter().flat_map(|x| x.indices()).collect();
            let element = |place: Option<(usize, usize)>| match place {
                Some((source, at)) => lists[source][at],
                None => constant as i64,
            };
            return Self::ints(dims, places.map(element).collect());
        }
        let lists = sources.iter().map(|x| x.values());
        let lists: Vec<&[f64]> = lists.collect::<Result<_, _>>()?;
        let element = |place: Option<(usize, usize)>| match place {
            Some((source, at)) => lists[source][at],
            None => constant,
        };
        Self::floats(dims, places.map(element).collect())
    }

    /// The numbers after they were stored in `dtype`.
    pub fn rounded_to(&self, dtype: DType) -> Result<TensorData, TensorError> {
        let values = decode(dtype, &encode(dtype, self)?)?;
        Ok(TensorData {
            dims: self.dims.clone(),
            elements: values,
        })
    }
}

/// The stored bytes of a value's units, row-major and without gaps.
pub(crate) fn read_units(value: &Value, storage: &[u8]) -> Result<Vec<u8>, TensorError> {
    let unit = value.dtype.block_bytes();
    let mut packed = Vec::with_capacity(value.layout.elements() / value.dtype.block_len() * unit);
    for start in value.block_offsets() {
        let bytes = storage.get(start..start + unit);
        packed.extend_from_slice(bytes.ok_or_else(|| outside(value, start + unit, storage))?);
    }
    Ok(packed)
}

/// The logical tensor of a value, from all bytes of its storage.
pub fn read_value(value: &Value, storage: &[u8]) -> Result<TensorData, TensorError> {
    let packed = read_units(value, storage)?;
    Ok(TensorData {
        dims: value.dims().to_vec(),
        elements: decode(value.dtype, &packed)?,
    })
}

/// Stores a logical tensor as a value, into all bytes of its storage. With `written`, only the
/// elements marked there; a block counts as marked if its first element is.
pub fn write_value(
    value: &Value,
    data: &TensorData,
    written: Option<&[bool]>,
    storage: &mut [u8],
) -> Result<(), TensorError> {
    write_units(value, &encode(value.dtype, data)?, written, storage)
}

/// Stores bytes as [`read_units`] gives them; see [`write_value`].
pub(crate) fn write_units(
    value: &Value,
    packed: &[u8],
    written: Option<&[bool]>,
    storage: &mut [u8],
) -> Result<(), TensorError> {
    let unit = value.dtype.block_bytes();
    let offsets = value.block_offsets();
    if offsets.len() * unit != packed.len() {
        return Err(TensorError::Count {
            dims: value.dims().to_vec(),
            expected: offsets.len() * value.dtype.block_len(),
            found: packed.len() / unit * value.dtype.block_len(),
        });
    }
    for (i, (start, bytes)) in offsets
        .into_iter()
        .zip(packed.chunks_exact(unit))
        .enumerate()
    {
        let first = i * value.dtype.block_len();
        if written.is_none_or(|written| written.get(first) == Some(&true)) {
            let size = storage.len();
            let place = storage.get_mut(start..start + unit);
            place
                .ok_or(TensorError::OutOfStorage {
                    dtype: value.dtype,
                    end: start + unit,
                    bytes: size,
                })?
                .copy_from_slice(bytes);
        }
    }
    Ok(())
}

fn outside(value: &Value, end: usize, storage: &[u8]) -> TensorError {
    TensorError::OutOfStorage {
        dtype: value.dtype,
        end,
        bytes: storage.len(),
    }
}

fn decode(dtype: DType, packed: &[u8]) -> Result<Elements, TensorError> {
    let n = packed.len() / dtype.block_bytes() * dtype.block_len();
    if dtype.is_integer() {
        let mut ints = vec![0; n];
        plain::decode_i64(dtype, packed, &mut ints)?;
        return Ok(Elements::Int(ints));
    }
    let mut values = vec![0.0; n];
    if dtype.is_float() {
        plain::decode_f64(dtype, packed, &mut values)?;
    } else {
        let mut decoded = vec![0.0; n];
        quant::decode(dtype, packed, &mut decoded)?;
        values = decoded.into_iter().map(f64::from).collect();
    }
    Ok(Elements::Float(values))
}

fn encode(dtype: DType, data: &TensorData) -> Result<Vec<u8>, TensorError> {
    let elements = match &data.elements {
        Elements::Int(ints) => ints.len(),
        Elements::Float(values) => values.len(),
    };
    let bytes = dtype
        .bytes_for(elements)
        .ok_or(CodecError::PartialBlock { dtype, elements })?;
    let mut packed = vec![0; bytes];
    if dtype.is_integer() {
        plain::encode_i64(dtype, data.indices()?, &mut packed)?;
    } else if dtype.is_float() {
        plain::encode_f64(dtype, data.values()?, &mut packed)?;
    } else {
        let values: Vec<f32> = data.values()?.iter().map(|&v| v as f32).collect();
        quant::encode(dtype, &values, &mut packed)?;
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kovar_core::Graph;

    #[test]
    fn a_permuted_slice_reads_what_was_written_and_leaves_the_rest() {
        let mut graph = Graph::new();
        let whole = graph.input("x", DType::F16, &[3, 4, 5]).unwrap();
        let part = graph.slice(whole, 1, 1..3).unwrap();
        let view = graph.permute(part, &[2, 0, 1]).unwrap();
        let view = *graph.value(view).unwrap();
        let data = TensorData::floats(&[5, 3, 2], (0..30).map(f64::from).collect()).unwrap();
        let mut bytes = vec![0xff; 120];
        write_value(&view, &data, None, &mut bytes).unwrap();
        assert_eq!(read_value(&view, &bytes).unwrap(), data);
        assert_eq!(bytes.iter().filter(|&&byte| byte == 0xff).count(), 60);
        let whole = read_value(graph.value(whole).unwrap(), &bytes).unwrap();
        // Element [2, 1 + 1, 3] of the whole is [3, 2, 1] of the view.
        assert_eq!(whole.values().unwrap()[2 * 20 + 2 * 5 + 3], 3.0 * 6.0 + 5.0);
    }

    #[test]
    fn blocks_are_written_only_where_marked() {
        let mut graph = Graph::new();
        let value = graph.input("x", DType::Q8_0, &[2, 64]).unwrap();
        let value = *graph.value(value).unwrap();
        let data = TensorData::floats(&[2, 64], vec![1.0; 128]).unwrap();
        let mut written = vec![true; 128];
        written[..64].fill(false);
        let mut bytes = vec![0; 4 * 34];
        write_value(&value, &data, Some(&written), &mut bytes).unwrap();
        assert!(bytes[..68].iter().all(|&byte| byte == 0));
        let read = read_value(&value, &bytes).unwrap();
        assert!(
            read.values().unwrap()[64..]
                .iter()
                .all(|v| (v - 1.0).abs() < 1e-3)
        );
    }

    #[test]
    fn a_broadcast_repeats_sizes_of_one() {
        let data = TensorData::floats(&[2, 1], vec![1.0, 2.0]).unwrap();
        let wide = data.broadcast(&[2, 2, 2]).unwrap();
        assert_eq!(wide, [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
        let one = TensorData::floats(&[], vec![3.0]).unwrap();
        assert_eq!(one.broadcast(&[2]).unwrap(), [3.0, 3.0]);
    }

    #[test]
    fn a_value_beyond_its_storage_is_an_error() {
        let mut graph = Graph::new();
        let value = graph.input("x", DType::F32, &[4]).unwrap();
        let value = *graph.value(value).unwrap();
        let error = read_value(&value, &[0; 12]).unwrap_err();
        assert!(matches!(error, TensorError::OutOfStorage { end: 16, .. }));
    }
}
