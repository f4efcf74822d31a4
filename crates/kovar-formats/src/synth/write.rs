//! Writing the model file of a shape.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::path::Path;

use kovar_core::error::CodecError;
use kovar_core::{DType, quant};

use super::random::Random;
use super::shape::{Fill, Shape, Tensor};
use crate::error::FileWriteError;
use crate::gguf::GgufWriter;
use crate::quantize::{
    FILE_TYPE_KEY, Mix, QUANTIZATION_VERSION, QUANTIZATION_VERSION_KEY, fall_back, mix_types,
};

/// Pieces in a pool.
const POOL_PIECES: usize = 1024;
/// Bytes that are joined before they are written.
const BATCH_BYTES: usize = 1 << 20;

/// Why a synthetic file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// The weights could not be encoded.
    #[error("the weights cannot be encoded")]
    Codec(#[from] CodecError),
    /// The caller stopped the writing.
    #[error("stopped")]
    Stopped,
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] FileWriteError),
}

/// Writes a model file of `shape` with random weights at `path`, replacing an existing one.
///
/// `mix` chooses the types as in [`quantize::plan`](crate::quantize::plan). Vectors are F32, and
/// matrices that the mix does not convert have their type in the files of the real model.
/// `progress` is called with the bytes that were written and the bytes in all, and can stop the
/// writing.
///
/// # Errors
/// The file cannot be written, or `progress` stopped the writing. No file is left then.
pub fn write_file(
    shape: &Shape,
    mix: Mix,
    seed: u64,
    path: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), SynthError> {
    let tensors = shape.tensors();
    let described = tensors
        .iter()
        .map(|t| (t.name.as_str(), DType::F32, t.dims.as_slice()));
    let wanted = mix_types(mix, described).into_iter();
    let dtypes: Vec<DType> = tensors
        .iter()
        .zip(wanted)
        .map(|(t, dtype)| dtype.map_or(t.kept, |dtype| fall_back(dtype, row_of(t))))
        .collect();

    let mut writer = GgufWriter::new();
    for (key, value) in shape.metadata() {
        writer.metadata(key, value)?;
    }
    writer.metadata(FILE_TYPE_KEY, mix.file_type())?;
    writer.metadata(QUANTIZATION_VERSION_KEY, QUANTIZATION_VERSION)?;
    for (tensor, &dtype) in tensors.iter().zip(&dtypes) {
        writer.declare_tensor(&*tensor.name, dtype, &tensor.dims)?;
    }
    let bytes_of = |t: &Tensor, dtype: DType| dtype.bytes_for(t.dims.iter().product()).unwrap_or(0);
    let sizes = tensors
        .iter()
        .zip(&dtypes)
        .map(|(t, &dtype)| bytes_of(t, dtype) as u64);
    let total: u64 = sizes.sum();

    let mut pools = Pools::new(seed);
    let mut written = 0;
    writer.stream_file(path, |stream| {
        for (tensor, &dtype) in tensors.iter().zip(&dtypes) {
            let mut left = bytes_of(tensor, dtype);
            while left > 0 {
                let batch = match &tensor.fill {
                    Fill::Values(values) => encode(dtype, values)?,
                    Fill::Random(deviation) => {
                        let most = left.min(BATCH_BYTES);
                        pools.batch(dtype, row_of(tensor), *deviation, most)?
                    }
                };
                stream.data(&batch)?;
                left = left.saturating_sub(batch.len());
                written += batch.len() as u64;
                if progress(written, total).is_break() {
                    return Err(SynthError::Stopped);
                }
            }
        }
        Ok(())
    })
}

fn row_of(tensor: &Tensor) -> usize {
    tensor.dims.last().copied().unwrap_or(1)
}

fn encode(dtype: DType, values: &[f32]) -> Result<Vec<u8>, SynthError> {
    let mut bytes = vec![0; dtype.bytes_for(values.len()).unwrap_or(0)];
    quant::encode(dtype, values, &mut bytes)?;
    Ok(bytes)
}

/// Encoded pieces of rows, by dtype, elements of a piece and bits of the standard deviation.
struct Pools {
    random: Random,
    pools: HashMap<(DType, usize, u32), Vec<u8>>,
}

impl Pools {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            pools: HashMap::new(),
        }
    }

    /// Whole pieces of rows of `row` elements, at most `most` bytes but at least one piece.
    fn batch(
        &mut self,
        dtype: DType,
        row: usize,
        deviation: f32,
        most: usize,
    ) -> Result<Vec<u8>, SynthError> {
        let piece = [256, 32]
            .into_iter()
            .find(|&n| row.is_multiple_of(n))
            .unwrap_or(row);
        let pool = match self.pools.entry((dtype, piece, deviation.to_bits())) {
            Entry::Occupied(pool) => pool.into_mut(),
            Entry::Vacant(place) => {
                let random = &mut self.random;
                let values = (0..POOL_PIECES * piece).map(|_| random.gaussian() * deviation);
                place.insert(encode(dtype, &values.collect::<Vec<_>>())?)
            }
        };
        let piece_bytes = pool.len() / POOL_PIECES;
        let count = (most / piece_bytes.max(1)).max(1);
        let mut batch = Vec::with_capacity(count * piece_bytes);
        for _ in 0..count {
            let start = self.random.below(POOL_PIECES) * piece_bytes;
            batch.extend_from_slice(pool.get(start..start + piece_bytes).unwrap_or_default());
        }
        Ok(batch)
    }
}
