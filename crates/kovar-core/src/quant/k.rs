//! The 256-element super-blocks: Q4_K, Q5_K and Q6_K.
//!
//! A Q4_K or Q5_K super-block has 8 sub-blocks of 32 elements, each with a 6-bit scale and a 6-bit
//! minimum; a Q6_K super-block has 16 sub-blocks of 16 elements, each with a signed 8-bit scale.
//! The sub-blocks' scales and minima are multiples of the super-block's f16 `d` and `dmin`.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use super::search::{self, magnitude_weights};
use super::super_block::{AffineCodes, ScaledCodes};
use super::{Block, F16Bytes, ScaleField};

/// 256 elements `(d * scale) * q - (dmin * min)`, `q` of 4 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ4K {
    /// Scale of the sub-blocks' scales.
    pub d: F16Bytes,
    /// Scale of the sub-blocks' minima.
    pub dmin: F16Bytes,
    /// The sub-blocks' scales and minima.
    pub scales: PackedScales,
    /// Codes: the low nibbles of bytes `32 p ..` are sub-block `2 p`, the high ones `2 p + 1`.
    pub qs: [u8; 128],
}

/// 256 elements `(d * scale) * q - (dmin * min)`, `q` of 5 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ5K {
    /// Scale of the sub-blocks' scales.
    pub d: F16Bytes,
    /// Scale of the sub-blocks' minima.
    pub dmin: F16Bytes,
    /// The sub-blocks' scales and minima.
    pub scales: PackedScales,
    /// The fifth bits: bit `s` of byte `i` belongs to element `i` of sub-block `s`.
    pub qh: [u8; 32],
    /// The low four bits, as in Q4_K.
    pub qs: [u8; 128],
}

/// 256 elements `(d * scale) * (q - 32)`, `q` of 6 bits.
///
/// Each half of 128 elements has 64 bytes of `ql` and 32 bytes of `qh`. Element `32 g + i` of a
/// half has its low four bits in `ql[32 (g % 2) + i]`, the low nibble for `g < 2` and the high one
/// otherwise, and its upper two bits at bit `2 g` of `qh[i]`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ6K {
    /// The low four bits of the codes.
    pub ql: [u8; 128],
    /// The upper two bits of the codes.
    pub qh: [u8; 64],
    /// Scales of the sub-blocks of 16 elements.
    pub scales: [i8; 16],
    /// Scale of the scales.
    pub d: F16Bytes,
}

/// Eight 6-bit scales and eight 6-bit minima in 12 bytes.
///
/// Bytes 0..4 hold scales 0..4 and bytes 4..8 minima 0..4 in their low six bits. Bytes 8..12 hold
/// the low four bits of scales 4..8 (low nibble) and minima 4..8 (high nibble); the upper two bits
/// of those are the upper two bits of bytes 0..4 and 4..8.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct PackedScales(pub [u8; 12]);

impl PackedScales {
    /// The scales and the minima, each `0..64`.
    pub fn unpack(&self) -> ([u8; 8], [u8; 8]) {
        let bytes = &self.0;
        let (mut scales, mut mins) = ([0; 8], [0; 8]);
        for i in 0..4 {
            scales[i] = bytes[i] & 0x3f;
            mins[i] = bytes[4 + i] & 0x3f;
            scales[4 + i] = bytes[8 + i] & 0x0f | bytes[i] >> 6 << 4;
            mins[4 + i] = bytes[8 + i] >> 4 | bytes[4 + i] >> 6 << 4;
        }
        (scales, mins)
    }

    /// Packs scales and minima, of each the low six bits.
    pub fn pack(scales: &[u8; 8], mins: &[u8; 8]) -> Self {
        let mut bytes = [0; 12];
        for i in 0..4 {
            bytes[i] = scales[i] & 0x3f | scales[4 + i] >> 4 << 6;
            bytes[4 + i] = mins[i] & 0x3f | mins[4 + i] >> 4 << 6;
            bytes[8 + i] = scales[4 + i] & 0x0f | mins[4 + i] << 4;
        }
        Self(bytes)
    }
}

impl Block<256> for BlockQ4K {
    const SCALES: &'static [ScaleField] = &[
        ScaleField::F16(offset_of!(Self, d)),
        ScaleField::F16(offset_of!(Self, dmin)),
    ];

    fn decode(&self) -> [f32; 256] {
        decode_affine(self.d, self.dmin, &self.scales, unpack_nibbles(&self.qs))
    }

    fn encode(values: &[f32; 256]) -> Self {
        let block = AffineCodes::<8>::encode::<32>(values, 15, 63, 1.0);
        Self {
            d: block.d,
            dmin: block.dmin,
            scales: PackedScales::pack(&block.scales, &block.mins),
            qs: pack_nibbles(&block.codes),
        }
    }
}

impl Block<256> for BlockQ5K {
    const SCALES: &'static [ScaleField] = &[
        ScaleField::F16(offset_of!(Self, d)),
        ScaleField::F16(offset_of!(Self, dmin)),
    ];

    fn decode(&self) -> [f32; 256] {
        let mut codes = unpack_nibbles(&self.qs);
        for (sub_block, codes) in codes.chunks_exact_mut(32).enumerate() {
            for (code, bits) in codes.iter_mut().zip(&self.qh) {
                *code |= (bits >> sub_block & 1) << 4;
            }
        }
        decode_affine(self.d, self.dmin, &self.scales, codes)
    }

    fn encode(values: &[f32; 256]) -> Self {
        let block = AffineCodes::<8>::encode::<32>(values, 31, 63, 1.0);
        let mut qh = [0; 32];
        for (sub_block, codes) in block.codes.chunks_exact(32).enumerate() {
            for (bits, code) in qh.iter_mut().zip(codes) {
                *bits |= (code >> 4 & 1) << sub_block;
            }
        }
        Self {
            d: block.d,
            dmin: block.dmin,
            scales: PackedScales::pack(&block.scales, &block.mins),
            qh,
            qs: pack_nibbles(&block.codes),
        }
    }
}

impl Block<256> for BlockQ6K {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 256] {
        let codes = ScaledCodes {
            d: self.d,
            scales: self.scales,
            codes: unpack_six_bits(&self.ql, &self.qh),
        };
        codes.decode(|q| f32::from(q) - 32.0)
    }

    fn encode(values: &[f32; 256]) -> Self {
        let block = ScaledCodes::<16>::encode::<16>(
            values,
            128.0,
            |values| search::fit_symmetric(values, &magnitude_weights(values), 32.0, 0.9),
            |q| (q.round_ties_even().clamp(-32.0, 31.0) + 32.0) as u8,
        );
        let (ql, qh) = pack_six_bits(&block.codes);
        Self {
            ql,
            qh,
            scales: block.scales,
            d: block.d,
        }
    }
}

fn decode_affine(
    d: F16Bytes,
    dmin: F16Bytes,
    scales: &PackedScales,
    codes: [u8; 256],
) -> [f32; 256] {
    let (scales, mins) = scales.unpack();
    let codes = AffineCodes {
        d,
        dmin,
        scales,
        mins,
        codes,
    };
    codes.decode()
}

/// Codes in the order of the elements, from pairs of sub-blocks that share their bytes.
fn unpack_nibbles(qs: &[u8; 128]) -> [u8; 256] {
    let mut codes = [0; 256];
    for (pair, bytes) in codes.chunks_exact_mut(64).zip(qs.chunks_exact(32)) {
        let (low, high) = pair.split_at_mut(32);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
            (*low, *high) = (byte & 0x0f, byte >> 4);
        }
    }
    codes
}

fn pack_nibbles(codes: &[u8; 256]) -> [u8; 128] {
    let mut qs = [0; 128];
    for (bytes, pair) in qs.chunks_exact_mut(32).zip(codes.chunks_exact(64)) {
        let (low, high) = pair.split_at(32);
        for ((byte, low), high) in bytes.iter_mut().zip(low).zip(high) {
            *byte = low & 0x0f | high << 4;
        }
    }
    qs
}

/// Where [`BlockQ6K`] keeps element `0..256`: the index into `ql` and its shift, the index into
/// `qh` and its shift.
fn six_bit_place(element: usize) -> (usize, u32, usize, u32) {
    let (half, group, i) = (element / 128, element / 32 % 4, element % 32);
    let ql = (half * 64 + group % 2 * 32 + i, group as u32 / 2 * 4);
    let qh = (half * 32 + i, group as u32 * 2);
    (ql.0, ql.1, qh.0, qh.1)
}

fn unpack_six_bits(ql: &[u8; 128], qh: &[u8; 64]) -> [u8; 256] {
    std::array::from_fn(|element| {
        let (low, low_shift, high, high_shift) = six_bit_place(element);
        ql[low] >> low_shift & 0x0f | (qh[high] >> high_shift & 0x03) << 4
    })
}

fn pack_six_bits(codes: &[u8; 256]) -> ([u8; 128], [u8; 64]) {
    let (mut ql, mut qh) = ([0; 128], [0; 64]);
    for (element, code) in codes.iter().enumerate() {
        let (low, low_shift, high, high_shift) = six_bit_place(element);
        ql[low] |= (code & 0x0f) << low_shift;
        qh[high] |= (code >> 4 & 0x03) << high_shift;
    }
    (ql, qh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bit_scales_and_minima_survive_packing() {
        let scales = [0, 63, 17, 42, 63, 1, 32, 21];
        let mins = [5, 62, 0, 33, 48, 63, 16, 15];
        assert_eq!(PackedScales::pack(&scales, &mins).unpack(), (scales, mins));
    }

    #[test]
    fn six_bit_codes_survive_packing() {
        let codes: [u8; 256] = std::array::from_fn(|i| (i * 37 % 64) as u8);
        let (ql, qh) = pack_six_bits(&codes);
        assert_eq!(unpack_six_bits(&ql, &qh), codes);
    }

    #[test]
    fn a_single_nan_makes_the_whole_super_block_nan() {
        let mut values = [0.5; 256];
        values[200] = f32::NAN;
        fn all_nan<B: Block<256>>(values: &[f32; 256]) -> bool {
            B::encode(values).decode().iter().all(|v| v.is_nan())
        }
        assert!(all_nan::<BlockQ4K>(&values));
        assert!(all_nan::<BlockQ5K>(&values));
        assert!(all_nan::<BlockQ6K>(&values));
    }
}
