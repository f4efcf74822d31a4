//! The 32-element blocks: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0.
//!
//! Each block has one scale `d`, the `_1` types also a minimum `m`. The low four bits of
//! element `i < 16` are the low nibble of `qs[i]`, those of element `16 + i` the high nibble. The
//! fifth bit of element `i` is bit `i` of the little-endian integer `qh`.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use super::{Block, F16Bytes, ScaleField, largest_magnitude};

/// 32 elements `d * (q - 8)`, `q` of 4 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ4_0 {
    /// Scale.
    pub d: F16Bytes,
    /// Codes, two per byte.
    pub qs: [u8; 16],
}

/// 32 elements `d * q + m`, `q` of 4 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ4_1 {
    /// Scale.
    pub d: F16Bytes,
    /// Minimum.
    pub m: F16Bytes,
    /// Codes, two per byte.
    pub qs: [u8; 16],
}

/// 32 elements `d * (q - 16)`, `q` of 5 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ5_0 {
    /// Scale.
    pub d: F16Bytes,
    /// The fifth bits, one per element.
    pub qh: [u8; 4],
    /// The low four bits, two elements per byte.
    pub qs: [u8; 16],
}

/// 32 elements `d * q + m`, `q` of 5 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ5_1 {
    /// Scale.
    pub d: F16Bytes,
    /// Minimum.
    pub m: F16Bytes,
    /// The fifth bits, one per element.
    pub qh: [u8; 4],
    /// The low four bits, two elements per byte.
    pub qs: [u8; 16],
}

/// 32 elements `d * q`, `q` a signed byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockQ8_0 {
    /// Scale.
    pub d: F16Bytes,
    /// Codes.
    pub qs: [i8; 32],
}

impl Block<32> for BlockQ4_0 {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 32] {
        let d = self.d.to_f32();
        unpack_nibbles(&self.qs).map(|q| d * (f32::from(q) - 8.0))
    }

    fn encode(values: &[f32; 32]) -> Self {
        let (d, codes) = symmetric_codes(values, 8);
        Self {
            d,
            qs: pack_nibbles(&codes),
        }
    }
}

impl Block<32> for BlockQ4_1 {
    const SCALES: &'static [ScaleField] = &[
        ScaleField::F16(offset_of!(Self, d)),
        ScaleField::F16(offset_of!(Self, m)),
    ];

    fn decode(&self) -> [f32; 32] {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        unpack_nibbles(&self.qs).map(|q| d * f32::from(q) + m)
    }

    fn encode(values: &[f32; 32]) -> Self {
        let (d, m, codes) = affine_codes(values, 15);
        Self {
            d,
            m,
            qs: pack_nibbles(&codes),
        }
    }
}

impl Block<32> for BlockQ5_0 {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 32] {
        let d = self.d.to_f32();
        unpack_five_bits(&self.qh, &self.qs).map(|q| d * (f32::from(q) - 16.0))
    }

    fn encode(values: &[f32; 32]) -> Self {
        let (d, codes) = symmetric_codes(values, 16);
        Self {
            d,
            qh: pack_fifth_bits(&codes),
            qs: pack_nibbles(&codes),
        }
    }
}

impl Block<32> for BlockQ5_1 {
    const SCALES: &'static [ScaleField] = &[
        ScaleField::F16(offset_of!(Self, d)),
        ScaleField::F16(offset_of!(Self, m)),
    ];

    fn decode(&self) -> [f32; 32] {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        unpack_five_bits(&self.qh, &self.qs).map(|q| d * f32::from(q) + m)
    }

    fn encode(values: &[f32; 32]) -> Self {
        let (d, m, codes) = affine_codes(values, 31);
        Self {
            d,
            m,
            qh: pack_fifth_bits(&codes),
            qs: pack_nibbles(&codes),
        }
    }
}

impl Block<32> for BlockQ8_0 {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 32] {
        let d = self.d.to_f32();
        self.qs.map(|q| f32::from(q) * d)
    }

    fn encode(values: &[f32; 32]) -> Self {
        let d = largest_magnitude(values).abs() / 127.0;
        let qs = match inverse(d) {
            // `round` takes halves away from zero.
            Some(inverse) => values.map(|value| (value * inverse).round() as i8),
            None => [0; 32],
        };
        Self {
            d: F16Bytes::from_f32(d),
            qs,
        }
    }
}

/// Scale and codes of the types without a minimum: the value of largest magnitude gets code 0,
/// zero gets code `offset`. `value as u8` truncates, so adding a half more rounds.
fn symmetric_codes(values: &[f32; 32], offset: u8) -> (F16Bytes, [u8; 32]) {
    let centre = f32::from(offset);
    let d = largest_magnitude(values) / -centre;
    let codes = match inverse(d) {
        Some(inverse) => {
            values.map(|value| ((value * inverse + (centre + 0.5)) as u8).min(2 * offset - 1))
        }
        None => [0; 32],
    };
    (F16Bytes::from_f32(d), codes)
}

/// Scale, minimum and codes of the types with a minimum: the smallest value gets code 0, the
/// largest `max_code`.
fn affine_codes(values: &[f32; 32], max_code: u8) -> (F16Bytes, F16Bytes, [u8; 32]) {
    let [first, ..] = *values;
    let (mut min, mut max) = (first, first);
    for &value in values {
        if value < min || value.is_nan() {
            min = value;
        }
        if value > max || value.is_nan() {
            max = value;
        }
    }
    let d = (max - min) / f32::from(max_code);
    let codes = match inverse(d) {
        Some(inverse) => values.map(|value| (((value - min) * inverse + 0.5) as u8).min(max_code)),
        None => [0; 32],
    };
    (F16Bytes::from_f32(d), F16Bytes::from_f32(min), codes)
}

/// `1 / d`, 0 for 0; `None` if it is not finite. That happens for NaN and for scales far below the
/// least f16, which are stored as 0, so that the codes do not matter.
pub(super) fn inverse(d: f32) -> Option<f32> {
    let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
    inverse.is_finite().then_some(inverse)
}

pub(super) fn unpack_nibbles(qs: &[u8; 16]) -> [u8; 32] {
    let mut codes = [0; 32];
    let (low, high) = codes.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(qs) {
        (*low, *high) = (byte & 0x0f, byte >> 4);
    }
    codes
}

pub(super) fn pack_nibbles(codes: &[u8; 32]) -> [u8; 16] {
    let mut qs = [0; 16];
    let (low, high) = codes.split_at(16);
    for ((byte, low), high) in qs.iter_mut().zip(low).zip(high) {
        *byte = low & 0x0f | high << 4;
    }
    qs
}

fn unpack_five_bits(qh: &[u8; 4], qs: &[u8; 16]) -> [u8; 32] {
    let fifth = u32::from_le_bytes(*qh);
    let mut codes = unpack_nibbles(qs);
    for (i, code) in codes.iter_mut().enumerate() {
        *code |= ((fifth >> i & 1) as u8) << 4;
    }
    codes
}

fn pack_fifth_bits(codes: &[u8; 32]) -> [u8; 4] {
    let bits = codes.iter().enumerate();
    bits.fold(0_u32, |bits, (i, code)| {
        bits | u32::from(code >> 4 & 1) << i
    })
    .to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_bit_codes_survive_packing() {
        let codes: [u8; 32] = std::array::from_fn(|i| (i * 7 % 32) as u8);
        let (qh, qs) = (pack_fifth_bits(&codes), pack_nibbles(&codes));
        assert_eq!(unpack_five_bits(&qh, &qs), codes);
    }

    #[test]
    fn an_infinite_element_makes_the_whole_block_non_finite() {
        let mut values = [1.0; 32];
        values[5] = f32::NEG_INFINITY;
        fn all_odd<B: Block<32>>(values: &[f32; 32]) -> bool {
            B::encode(values).decode().iter().all(|v| !v.is_finite())
        }
        assert!(all_odd::<BlockQ4_0>(&values) && all_odd::<BlockQ4_1>(&values));
        assert!(all_odd::<BlockQ5_0>(&values) && all_odd::<BlockQ5_1>(&values));
        assert!(all_odd::<BlockQ8_0>(&values));
    }
}
