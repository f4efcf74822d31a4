//! Reference codecs of the element types to and from f32: the plain dtypes (through
//! [`plain`]) and the quantised blocks of GGUF.
//!
//! They are written for clarity and follow the file layouts bit by bit; the backends have faster
//! code of their own and are tested against these. [`decode`] and [`encode`] work on any number of
//! whole blocks.
//!
//! The documentation of a block ([`BlockQ4_0`], ..) gives its fields and the formula of its
//! elements; [`DType`] names the dtype of each block. A file holds the blocks of a family.
//!
//! Decoding is plain f32 arithmetic in the order of the formula, each operation rounded on its own
//! (no fused multiply-add), so it equals ggml's reference and the `gguf` Python package exactly.
//! Multi-byte fields are little-endian on every machine.
//!
//! [`activation`] is the 8-bit code of activations inside integer products; it is no file format.
//!
//! Source of the layouts: the GGUF specification and ggml's `ggml-common.h`.

pub mod activation;
pub mod k;
pub mod k_low;
pub mod legacy;
pub mod levels;
mod search;
mod super_block;
pub mod ternary;

use bytemuck::{Pod, Zeroable};
use half::f16;

use crate::error::CodecError;
use crate::{DType, plain};

pub use k::{BlockQ4K, BlockQ5K, BlockQ6K};
pub use k_low::{BlockQ2K, BlockQ3K};
pub use legacy::{BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0};
pub use levels::{BlockIQ4NL, BlockIQ4XS, BlockMXFP4};
pub use ternary::BlockTQ2_0;

/// An f16 as it lies in a file: two bytes, little-endian, of any alignment.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct F16Bytes(pub [u8; 2]);

impl F16Bytes {
    /// Rounds to the nearest f16, ties to even; beyond the f16 range the result is infinite.
    pub fn from_f32(value: f32) -> Self {
        Self(f16::from_f32(value).to_le_bytes())
    }

    /// The value, exactly.
    pub fn to_f32(self) -> f32 {
        f16::from_le_bytes(self.0).to_f32()
    }
}

/// A quantised block of `N` elements with the layout of the file (alignment 1, no padding).
///
/// Blocks are plain old data, so `bytemuck::try_cast_slice` reads them in place from any bytes.
pub trait Block<const N: usize>: Pod {
    /// The fields that scale elements.
    const SCALES: &'static [ScaleField];

    /// The elements of the block, for any bits: damaged scales give odd or non-finite numbers.
    fn decode(&self) -> [f32; N];

    /// The block that stands for `values`; see [`encode`] for the rounding.
    fn encode(values: &[f32; N]) -> Self;
}

/// A field of a block that scales elements, by its byte offset. Random bits there may give scales
/// that are not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleField {
    /// An [`F16Bytes`], a scale or a minimum.
    F16(usize),
    /// A byte of E8M0: the biased exponent of a power of two.
    E8M0(usize),
}

/// The fields of a block of `dtype` that scale elements; none for plain dtypes.
pub fn scale_fields(dtype: DType) -> &'static [ScaleField] {
    dtype.codec().map_or(&[], |codec| codec.scales)
}

/// The codec of a block, as the table of dtypes holds it. Sizes have been checked before a call.
pub(crate) struct Codec {
    decode: fn(&[u8], &mut [f32]),
    encode: fn(&[f32], &mut [u8]),
    scales: &'static [ScaleField],
}

impl Codec {
    pub(crate) const fn of<B: Block<N>, const N: usize>() -> Self {
        const { assert!(align_of::<B>() == 1) };
        Self {
            decode: decode_blocks::<B, N>,
            encode: encode_blocks::<B, N>,
            scales: B::SCALES,
        }
    }
}

/// Decodes whole blocks of `dtype` into f32; F64 and large integers round to nearest.
///
/// `out.len()` is the element count and `bytes` must be exactly as long as that many elements
/// are. Any bytes decode: the content of a block is never an error.
///
/// # Errors
/// [`CodecError::PartialBlock`] if `out` is not
/// a whole number of blocks, [`CodecError::WrongSize`] if `bytes` is shorter or longer.
pub fn decode(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
    check_sizes(dtype, out.len(), bytes.len())?;
    match dtype.codec() {
        Some(codec) => (codec.decode)(bytes, out),
        None => plain::decode_f32(dtype, bytes, out)?,
    }
    Ok(())
}

/// Encodes f32 values as whole blocks of `dtype`.
///
/// `values.len()` is the element count and `out` must be exactly as long as that many elements
/// are.
///
/// - Plain dtypes follow the rules of [`plain`]: floats round to nearest, ties to even.
/// - Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and TQ2_0 round as ggml's reference does: finite values give the
///   same bytes as the `gguf` Python package.
/// - Q2_K to Q6_K, IQ4_NL and IQ4_XS search each sub-block for the scale (and minimum) of least
///   squared error, weighted by magnitude; another encoder's bytes may differ and be as good.
/// - MXFP4 takes the power of two that the OCP specification names, and the nearest levels: finite
///   values of at least 2^-125 in magnitude give the same bytes as the `gguf` Python package.
///
/// A block with a NaN or an infinity, or whose scale is outside the range of its format, decodes
/// to non-finite numbers throughout, so that it is not mistaken for good data.
///
/// # Errors
/// [`CodecError::PartialBlock`] if `values` is
/// not a whole number of blocks, [`CodecError::WrongSize`] if `out` is shorter or longer.
pub fn encode(dtype: DType, values: &[f32], out: &mut [u8]) -> Result<(), CodecError> {
    check_sizes(dtype, values.len(), out.len())?;
    match dtype.codec() {
        Some(codec) => (codec.encode)(values, out),
        None => plain::encode_f32(dtype, values, out)?,
    }
    Ok(())
}

pub(crate) fn check_sizes(dtype: DType, elements: usize, actual: usize) -> Result<(), CodecError> {
    let expected = dtype
        .bytes_for(elements)
        .ok_or(CodecError::PartialBlock { dtype, elements })?;
    if expected == actual {
        Ok(())
    } else {
        Err(CodecError::WrongSize {
            dtype,
            elements,
            expected,
            actual,
        })
    }
}

/// The sizes have been checked, so the zip ends neither side early.
fn decode_blocks<B: Block<N>, const N: usize>(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.chunks_exact(size_of::<B>());
    for (bytes, out) in blocks.zip(out.as_chunks_mut::<N>().0) {
        *out = bytemuck::pod_read_unaligned::<B>(bytes).decode();
    }
}

/// The sizes have been checked, so the zip ends neither side early.
fn encode_blocks<B: Block<N>, const N: usize>(values: &[f32], out: &mut [u8]) {
    let blocks = out.chunks_exact_mut(size_of::<B>());
    for (values, bytes) in values.as_chunks::<N>().0.iter().zip(blocks) {
        bytes.copy_from_slice(bytemuck::bytes_of(&B::encode(values)));
    }
}

/// The first of the values that are largest in magnitude, with its sign; NaN if any is NaN.
fn largest_magnitude(values: &[f32]) -> f32 {
    let mut largest = values.first().copied().unwrap_or(0.0);
    for &value in values {
        if value.abs() > largest.abs() || value.is_nan() {
            largest = value;
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_bytes_and_scales_lie_within_them() {
        for dtype in DType::ALL {
            for field in scale_fields(dtype) {
                let end = match field {
                    ScaleField::F16(at) => at + 2,
                    ScaleField::E8M0(at) => at + 1,
                };
                assert!(end <= dtype.block_bytes(), "{dtype}");
            }
        }
    }

    #[test]
    fn the_first_of_equal_magnitudes_wins_and_nan_beats_all() {
        assert_eq!(largest_magnitude(&[1.0, -3.0, 3.0]), -3.0);
        assert!(largest_magnitude(&[1.0, f32::NAN, f32::INFINITY]).is_nan());
        assert!(largest_magnitude(&[f32::NAN, 2.0]).is_nan());
    }
}
