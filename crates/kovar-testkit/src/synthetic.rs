//! Deterministic random data of every dtype: ordinary numbers, and ones that are hard to compute
//! with.

use kovar_core::quant::{ScaleField, scale_fields};
use kovar_core::{DType, Value};

use crate::tensor::{TensorData, TensorError, write_units, write_value};

/// A generator of random numbers whose stream never changes (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of a name (its FNV-1a hash is the seed).
    pub fn of_name(name: &str) -> Self {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::new(hash)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.state;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }

    /// Normally distributed with mean 0 and deviation 1 (Box and Muller 1958).
    pub fn gaussian(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// What a value is filled with.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Normally distributed with this deviation.
    Gaussian(f64),
    /// The magnitudes of a normal distribution of deviation 1: sums of products don't cancel.
    Positive,
    /// Rows (of the last dimension) in turn normal, zero, denormal, and normal with denormals
    /// among them: for operations that divide by a largest value or a norm.
    Small,
    /// Rows in turn normal, with one element of about this size, and of about this size throughout.
    Large(f64),
    /// Of a quantised dtype: blocks of random bits with scales of ordinary size and either sign.
    /// Of any other dtype, as [`Fill::Gaussian`] of deviation 1.
    RandomBlocks,
    /// Minus infinity for this share of the elements, else normally distributed: a mask.
    Mask(f64),
    /// These numbers, row-major.
    Values(Vec<f64>),
    /// These integers, row-major.
    Indices(Vec<i64>),
    /// These bytes as they are stored, elements or blocks row-major.
    Bytes(Vec<u8>),
}

/// Writes `fill` into the window of `value` in its storage's bytes, and nothing else.
pub fn fill_value(
    value: &Value,
    fill: &Fill,
    random: &mut Random,
    storage: &mut [u8],
) -> Result<(), TensorError> {
    let count = value.layout.elements();
    let dims = value.dims();
    if *fill == Fill::RandomBlocks && value.dtype.is_quantized() {
        return fill_blocks(value, random, storage);
    }
    if let Fill::Bytes(bytes) = fill {
        return write_units(value, bytes, None, storage);
    }
    let data = match fill {
        Fill::Indices(ids) => TensorData::ints(dims, ids.clone())?,
        Fill::Values(values) => TensorData::floats(dims, values.clone())?,
        fill => {
            let last = dims.from_end(0).max(1);
            let element = |i: usize| sample(fill, value.dtype, i / last, i % last, random);
            TensorData::floats(dims, (0..count).map(element).collect())?
        }
    };
    write_value(value, &data, None, storage)
}

fn sample(fill: &Fill, dtype: DType, row: usize, column: usize, random: &mut Random) -> f64 {
    let gaussian = random.gaussian();
    let denormal = match dtype {
        DType::F64 => 1e-309,
        DType::F32 | DType::BF16 => 1e-39,
        DType::F8E4M3 => 5e-3,
        DType::F8E5M2 => 2e-5,
        _ => 2e-6,
    };
    let near = (0.5 + random.unit() / 2.0).copysign(gaussian);
    match (fill, row % 4) {
        (Fill::Gaussian(deviation), _) => deviation * gaussian,
        (Fill::Positive, _) => gaussian.abs(),
        (Fill::Small, 1) => 0.0,
        (Fill::Small, 2) => denormal * gaussian,
        (Fill::Small, 3) if column % 3 == 1 => denormal * gaussian,
        (Fill::Large(size), 1 | 3) if column == row % 7 => size * near,
        (Fill::Large(size), 2) => size * near,
        (Fill::Mask(share), _) if random.unit() < *share => f64::NEG_INFINITY,
        _ => gaussian,
    }
}

impl Fill {
    /// [`Fill::Large`] of a size whose square the dtype can hold, unless the dtype has 8 bits.
    pub fn large(dtype: DType) -> Self {
        match dtype {
            DType::F64 | DType::F32 | DType::BF16 => Self::Large(1e12),
            _ => Self::Large(200.0),
        }
    }
}

fn fill_blocks(value: &Value, random: &mut Random, storage: &mut [u8]) -> Result<(), TensorError> {
    let bytes = value.dtype.block_bytes();
    for start in value.block_offsets() {
        let size = storage.len();
        let block = storage.get_mut(start..start + bytes);
        let block = block.ok_or(TensorError::OutOfStorage {
            dtype: value.dtype,
            end: start + bytes,
            bytes: size,
        })?;
        block.fill_with(|| random.bits() as u8);
        for &field in scale_fields(value.dtype) {
            match field {
                ScaleField::F16(at) => {
                    // Of either sign between 2^-8 and 2^-4.
                    let exponent = 7 + random.below(4) as u16;
                    let bits = (random.bits() as u16 & 0x83ff) | exponent << 10;
                    block[at..at + 2].copy_from_slice(&bits.to_le_bytes());
                }
                // A power of two between 2^-8 and 2^-5.
                ScaleField::E8M0(at) => block[at] = 120 + random.below(4) as u8,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_value;
    use kovar_core::Graph;

    #[test]
    fn the_stream_of_a_seed_is_fixed() {
        let mut random = Random::new(1234567);
        // The published test vector of SplitMix64.
        assert_eq!(random.bits(), 6457827717110365317);
        assert_eq!(random.bits(), 3203168211198807973);
    }

    #[test]
    fn gaussians_have_mean_zero_and_deviation_one() {
        let mut random = Random::of_name("gaussian");
        let values: Vec<f64> = (0..20_000).map(|_| random.gaussian()).collect();
        let mean = values.iter().sum::<f64>() / 20_000.0;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05);
    }

    #[test]
    fn every_fill_of_every_float_and_block_is_finite() {
        let fills = [
            Fill::Gaussian(1.0),
            Fill::Positive,
            Fill::Small,
            Fill::Large(200.0),
            Fill::RandomBlocks,
        ];
        for dtype in DType::ALL
            .into_iter()
            .filter(|dtype| dtype.is_float() || dtype.is_quantized())
        {
            let mut graph = Graph::new();
            let value = graph.input("x", dtype, &[5, 256]).unwrap();
            let value = *graph.value(value).unwrap();
            for fill in &fills {
                let mut bytes = vec![0xff; dtype.bytes_for(1280).unwrap()];
                fill_value(&value, fill, &mut Random::new(7), &mut bytes).unwrap();
                let data = read_value(&value, &bytes).unwrap();
                let values = data.values().unwrap();
                assert!(values.iter().all(|v| v.is_finite()), "{dtype} {fill:?}");
                assert!(values.iter().any(|v| *v != 0.0), "{dtype} {fill:?}");
            }
        }
    }
}
