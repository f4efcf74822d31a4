//! The types whose codes are indices into a table of 16 levels: IQ4_NL, IQ4_XS and MXFP4.
//!
//! Every 32 elements have 16 bytes of codes: the low nibbles are elements 0 to 15, the high ones
//! 16 to 31.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use super::legacy::{pack_nibbles, unpack_nibbles};
use super::search::{self, magnitude_weights};
use super::super_block::ScaledCodes;
use super::{Block, F16Bytes, ScaleField, largest_magnitude};

/// The levels of IQ4_NL and IQ4_XS: quantiles of the weights of usual models, denser near zero.
///
/// Source: `kvalues_iq4nl` of ggml.
pub const IQ4_LEVELS: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// The levels of MXFP4, doubled: the floats of 1 sign, 2 exponent and 1 mantissa bits.
///
/// Source: OCP Microscaling Formats (MX) Specification 1.0; doubled as `kvalues_mxfp4` of ggml.
pub const E2M1_LEVELS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// 32 elements `d * level(q)`, `q` of 4 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockIQ4NL {
    /// Scale.
    pub d: F16Bytes,
    /// Codes, two per byte.
    pub qs: [u8; 16],
}

/// 256 elements `(d * (scale - 32)) * level(q)`, `q` of 4 bits, in 8 sub-blocks of 32.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockIQ4XS {
    /// Scale of the sub-blocks' scales.
    pub d: F16Bytes,
    /// The sub-blocks' scales, of 6 bits.
    pub scales: PackedScales,
    /// Codes, 16 bytes for each sub-block.
    pub qs: [u8; 128],
}

/// 32 elements `d * level(q)`, `q` of 4 bits; `d` is half of 2 to the power of `e - 127`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockMXFP4 {
    /// The biased exponent of the scale.
    pub e: u8,
    /// Codes, two per byte.
    pub qs: [u8; 16],
}

/// Eight 6-bit scales in 6 bytes: the upper two bits of scale `i` at bit `2 i` of the little-endian
/// integer of the first two bytes, the low four in nibble `i` of the others.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct PackedScales(pub [u8; 6]);

impl PackedScales {
    /// The scales without their offset of 32, each `-32..32`.
    pub fn unpack(&self) -> [i8; 8] {
        let [h0, h1, low @ ..] = self.0;
        let high = u16::from_le_bytes([h0, h1]);
        std::array::from_fn(|i| {
            let low = low[i / 2] >> (i % 2 * 4) & 0x0f;
            let high = (high >> (2 * i) & 0x03) as u8;
            (low | high << 4) as i8 - 32
        })
    }

    /// Packs scales of `-32..32`.
    pub fn pack(scales: &[i8; 8]) -> Self {
        let mut bytes = [0; 6];
        for (i, &scale) in scales.iter().enumerate() {
            let scale = scale.wrapping_add(32) as u8;
            bytes[i / 4] |= (scale >> 4 & 0x03) << (i % 4 * 2);
            bytes[2 + i / 2] |= (scale & 0x0f) << (i % 2 * 4);
        }
        Self(bytes)
    }
}

/// The scale of an MXFP4 block: `2^(e - 128)`, exactly; no exponent is a NaN.
///
/// Source: `ggml_e8m0_to_fp32_half` of ggml.
pub fn e8m0_half(e: u8) -> f32 {
    f32::from_bits(match e {
        0 | 1 => 0x0020_0000 << e,
        _ => (u32::from(e) - 1) << 23,
    })
}

fn levels(table: &[i8; 16], qs: &[u8; 16]) -> [f32; 32] {
    unpack_nibbles(qs).map(|q| f32::from(table[usize::from(q & 0x0f)]))
}

/// The code of the nearest level of IQ4, by half units from the first level on: halfway between two
/// levels there is always a multiple of a half.
const NEAREST: [u8; 481] = {
    let mut codes = [0; 481];
    let (mut at, mut code) = (0, 0);
    while at < codes.len() {
        // The threshold is twice the distance from the first level to where the next code begins.
        if code < 15 && at as i32 >= IQ4_LEVELS[code] as i32 + IQ4_LEVELS[code + 1] as i32 + 254 {
            code += 1;
        }
        codes[at] = code as u8;
        at += 1;
    }
    codes
};

/// The code of the level of IQ4 that is nearest to `q`.
fn nearest_code(q: f64) -> u8 {
    let first = f64::from(IQ4_LEVELS[0]);
    // The cast saturates negative numbers at zero.
    let at = ((q - first) * 2.0) as usize;
    NEAREST[at.min(NEAREST.len() - 1)]
}

/// The scale of least error of 32 finite values.
fn fit(values: &[f32; 32]) -> f64 {
    let nearest = |q| f64::from(IQ4_LEVELS[usize::from(nearest_code(q))]);
    // The largest value goes to one of the outermost levels, or near it.
    let [low, high] = [IQ4_LEVELS[0], IQ4_LEVELS[15]].map(f64::from);
    let near = |level: f64| (-6..=6).map(move |offset| level + f64::from(offset));
    let anchors = near(low).chain(near(high));
    search::fit_levels(values, &magnitude_weights(values), anchors, nearest)
}

impl Block<32> for BlockIQ4NL {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 32] {
        let d = self.d.to_f32();
        levels(&IQ4_LEVELS, &self.qs).map(|level| d * level)
    }

    fn encode(values: &[f32; 32]) -> Self {
        if !values.iter().all(|value| value.is_finite()) {
            return Self {
                d: F16Bytes::from_f32(f32::NAN),
                qs: [0; 16],
            };
        }
        let d = F16Bytes::from_f32(fit(values) as f32);
        let step = f64::from(d.to_f32());
        let codes = values.map(|value| match step {
            0.0 => 0,
            step => nearest_code(f64::from(value) / step),
        });
        Self {
            d,
            qs: pack_nibbles(&codes),
        }
    }
}

impl Block<256> for BlockIQ4XS {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 256] {
        let d = self.d.to_f32();
        let mut out = [0.0; 256];
        let sub_blocks = out.as_chunks_mut::<32>().0.iter_mut();
        let codes = self.qs.as_chunks::<16>().0;
        for ((out, qs), scale) in sub_blocks.zip(codes).zip(self.scales.unpack()) {
            let scale = d * f32::from(scale);
            *out = levels(&IQ4_LEVELS, qs).map(|level| scale * level);
        }
        out
    }

    fn encode(values: &[f32; 256]) -> Self {
        let block =
            ScaledCodes::<8>::encode::<32>(values, 32.0, fit, |q| nearest_code(f64::from(q)));
        let mut qs = [0; 128];
        let packed = qs.as_chunks_mut::<16>().0.iter_mut();
        for (qs, codes) in packed.zip(block.codes.as_chunks::<32>().0) {
            *qs = pack_nibbles(codes);
        }
        Self {
            d: block.d,
            scales: PackedScales::pack(&block.scales),
            qs,
        }
    }
}

impl Block<32> for BlockMXFP4 {
    const SCALES: &'static [ScaleField] = &[ScaleField::E8M0(offset_of!(Self, e))];

    fn decode(&self) -> [f32; 32] {
        let d = e8m0_half(self.e);
        levels(&E2M1_LEVELS, &self.qs).map(|level| d * level)
    }

    fn encode(values: &[f32; 32]) -> Self {
        let largest = largest_magnitude(values).abs();
        if !largest.is_finite() {
            // Twelve times the largest scale is infinite.
            return Self {
                e: u8::MAX,
                qs: [0x77; 16],
            };
        }
        // The largest value's power of two becomes that of the largest level, 1.5 * 2^2.
        let e = (largest.to_bits() >> 23).saturating_sub(2) as u8;
        let d = e8m0_half(e);
        let codes = values.map(|value| {
            let mut nearest = (f32::INFINITY, 0);
            for (code, &level) in (0..).zip(&E2M1_LEVELS) {
                let error = (d * f32::from(level) - value).abs();
                if error < nearest.0 {
                    nearest = (error, code);
                }
            }
            nearest.1
        });
        Self {
            e,
            qs: pack_nibbles(&codes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_survive_packing() {
        let scales = [-32, 31, 0, -1, 17, -16, 5, -27];
        assert_eq!(PackedScales::pack(&scales).unpack(), scales);
    }

    #[test]
    fn the_nearest_level_is_found() {
        for (q, level) in [
            (-1e9, -127),
            (-127.0, -127),
            (-115.4, -104),
            (-115.6, -127),
            (-94.0, -104),
            (-93.0, -83),
            (0.0, 1),
            (7.1, 13),
            (101.1, 113),
            (1e9, 113),
        ] {
            assert_eq!(IQ4_LEVELS[usize::from(nearest_code(q))], level, "{q}");
        }
    }

    #[test]
    fn a_block_of_an_infinity_or_a_nan_is_not_finite() {
        for bad in [f32::NAN, f32::NEG_INFINITY] {
            let mut values = [1.0; 32];
            values[5] = bad;
            let iq4 = BlockIQ4NL::encode(&values).decode();
            let mxfp4 = BlockMXFP4::encode(&values).decode();
            assert!(iq4.iter().chain(&mxfp4).all(|v| !v.is_finite()));
        }
    }
}
