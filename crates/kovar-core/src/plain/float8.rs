//! The 8-bit floats.

use super::minifloat;

/// The bits of an F8_E4M3 number: a sign, 4 exponent bits of bias 7, 3 mantissa bits. 0x7f and 0xff
/// are NaN, there are no infinities, and the greatest number is 448.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// The bits of an F8_E5M2 number: a sign, 5 exponent bits of bias 15, 2 mantissa bits, with
/// infinities and NaN as in binary16. The greatest number is 57344.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

impl F8E4M3 {
    /// The nearest number, ties to even; NaN if that is beyond 448.
    pub fn from_f64(value: f64) -> Self {
        Self(minifloat::F8E4M3.round(value) as u8)
    }

    /// As [`from_f64`](Self::from_f64).
    pub fn from_f32(value: f32) -> Self {
        Self::from_f64(value.into())
    }

    /// The number, exactly; without branches so that lanes convert together.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        // The factor 2^(127 - 7) rebiases the exponent, of subnormals too.
        let magnitude = f32::from_bits(u32::from(self.0 & 0x7f) << 20) * f32::from_bits(247 << 23);
        let nan = if self.0 & 0x7f == 0x7f { NAN } else { 0 };
        f32::from_bits(magnitude.to_bits() | nan | sign(self.0))
    }
}

impl F8E5M2 {
    /// The nearest number, ties to even; infinite if that is beyond 57344.
    pub fn from_f64(value: f64) -> Self {
        Self(minifloat::F8E5M2.round(value) as u8)
    }

    /// As [`from_f64`](Self::from_f64).
    pub fn from_f32(value: f32) -> Self {
        Self::from_f64(value.into())
    }

    /// The number, exactly; without branches so that lanes convert together.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        // The factor 2^(127 - 15) rebiases the exponent, of subnormals too.
        let magnitude = f32::from_bits(u32::from(self.0 & 0x7f) << 21) * f32::from_bits(239 << 23);
        // The last exponent stays the last one.
        let special = if self.0 & 0x7f >= 0x7c { INFINITY } else { 0 };
        f32::from_bits(magnitude.to_bits() | special | sign(self.0))
    }
}

const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;

#[inline(always)]
fn sign(bits: u8) -> u32 {
    u32::from(bits & 0x80) << 24
}
