//! The 256-element super-blocks with the fewest bits: Q2_K and Q3_K.
//!
//! Both have 16 sub-blocks of 16 elements. Two bits of element `32 g + i` of a half of 128 elements
//! lie at bit `2 g` of byte `i` of that half's 32 bytes of `qs`.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use super::search::{self, magnitude_weights};
use super::super_block::{AffineCodes, ScaledCodes};
use super::{Block, F16Bytes, ScaleField};

/// 256 elements `(d * scale) * q - (dmin * min)`, `q` of 2 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ2K {
    /// The sub-blocks' scales in the low nibbles, their minima in the high ones.
    pub scales: [u8; 16],
    /// Codes.
    pub qs: [u8; 64],
    /// Scale of the sub-blocks' scales.
    pub d: F16Bytes,
    /// Scale of the sub-blocks' minima.
    pub dmin: F16Bytes,
}

/// 256 elements `(d * (scale - 32)) * (q - 4)`, `q` of 3 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ3K {
    /// The third bits: bit `s` of byte `i` belongs to element `32 s + i`.
    pub hmask: [u8; 32],
    /// The low two bits of the codes.
    pub qs: [u8; 64],
    /// The sub-blocks' scales.
    pub scales: PackedScales,
    /// Scale of the scales.
    pub d: F16Bytes,
}

/// Sixteen 6-bit scales in 12 bytes.
///
/// The low four bits of scale `i` are a nibble of byte `i % 8`, the low one for `i < 8`; the upper
/// two lie at bit `2 (i / 4)` of byte `8 + i % 4`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct PackedScales(pub [u8; 12]);

impl PackedScales {
    /// The scales without their offset of 32, each `-32..32`.
    pub fn unpack(&self) -> [i8; 16] {
        let bytes = &self.0;
        std::array::from_fn(|i| {
            let low = bytes[i % 8] >> (i / 8 * 4) & 0x0f;
            let high = bytes[8 + i % 4] >> (i / 4 * 2) & 0x03;
            (low | high << 4) as i8 - 32
        })
    }

    /// Packs scales of `-32..32`.
    pub fn pack(scales: &[i8; 16]) -> Self {
        let mut bytes = [0; 12];
        for (i, &scale) in scales.iter().enumerate() {
            let scale = scale.wrapping_add(32) as u8;
            bytes[i % 8] |= (scale & 0x0f) << (i / 8 * 4);
            bytes[8 + i % 4] |= (scale >> 4 & 0x03) << (i / 4 * 2);
        }
        Self(bytes)
    }
}

impl Block<256> for BlockQ2K {
    const SCALES: &'static [ScaleField] = &[
        ScaleField::F16(offset_of!(Self, d)),
        ScaleField::F16(offset_of!(Self, dmin)),
    ];

    fn decode(&self) -> [f32; 256] {
        let codes = AffineCodes {
            d: self.d,
            dmin: self.dmin,
            scales: self.scales.map(|parts| parts & 0x0f),
            mins: self.scales.map(|parts| parts >> 4),
            codes: unpack_two_bits(&self.qs),
        };
        codes.decode()
    }

    fn encode(values: &[f32; 256]) -> Self {
        let block = AffineCodes::<16>::encode::<16>(values, 3, 15, 1.0);
        Self {
            scales: std::array::from_fn(|i| block.scales[i] | block.mins[i] << 4),
            qs: pack_two_bits(&block.codes),
            d: block.d,
            dmin: block.dmin,
        }
    }
}

impl Block<256> for BlockQ3K {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 256] {
        let mut codes = unpack_two_bits(&self.qs);
        for (group, codes) in codes.chunks_exact_mut(32).enumerate() {
            for (code, bits) in codes.iter_mut().zip(&self.hmask) {
                *code |= (bits >> group & 1) << 2;
            }
        }
        let codes = ScaledCodes {
            d: self.d,
            scales: self.scales.unpack(),
            codes,
        };
        codes.decode(|q| f32::from(q) - 4.0)
    }

    fn encode(values: &[f32; 256]) -> Self {
        let block = ScaledCodes::<16>::encode::<16>(
            values,
            32.0,
            |values| search::fit_symmetric(values, &magnitude_weights(values), 4.0, 0.9),
            |q| (q.round_ties_even().clamp(-4.0, 3.0) + 4.0) as u8,
        );
        let mut hmask = [0; 32];
        for (group, codes) in block.codes.chunks_exact(32).enumerate() {
            for (bits, code) in hmask.iter_mut().zip(codes) {
                *bits |= (code >> 2 & 1) << group;
            }
        }
        Self {
            hmask,
            qs: pack_two_bits(&block.codes),
            scales: PackedScales::pack(&block.scales),
            d: block.d,
        }
    }
}

/// Where `qs` keeps element `0..256`: the byte and the shift.
fn two_bit_place(element: usize) -> (usize, u32) {
    let (half, group, i) = (element / 128, element / 32 % 4, element % 32);
    (half * 32 + i, group as u32 * 2)
}

pub(super) fn unpack_two_bits(qs: &[u8; 64]) -> [u8; 256] {
    std::array::from_fn(|element| {
        let (byte, shift) = two_bit_place(element);
        qs[byte] >> shift & 0x03
    })
}

/// Packs the low two bits of each code.
pub(super) fn pack_two_bits(codes: &[u8; 256]) -> [u8; 64] {
    let mut qs = [0; 64];
    for (element, code) in codes.iter().enumerate() {
        let (byte, shift) = two_bit_place(element);
        qs[byte] |= (code & 0x03) << shift;
    }
    qs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_and_codes_survive_packing() {
        let scales = std::array::from_fn(|i| (i * 13 % 64) as i8 - 32);
        assert_eq!(PackedScales::pack(&scales).unpack(), scales);
        let codes: [u8; 256] = std::array::from_fn(|i| (i * 37 / 8 % 4) as u8);
        assert_eq!(unpack_two_bits(&pack_two_bits(&codes)), codes);
    }

    #[test]
    fn a_single_nan_makes_the_whole_super_block_nan() {
        let mut values = [0.5; 256];
        values[200] = f32::NAN;
        fn all_nan<B: Block<256>>(values: &[f32; 256]) -> bool {
            B::encode(values).decode().iter().all(|v| v.is_nan())
        }
        assert!(all_nan::<BlockQ2K>(&values) && all_nan::<BlockQ3K>(&values));
    }
}
