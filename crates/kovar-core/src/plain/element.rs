//! One element of a plain dtype, as it lies in memory.

use half::{bf16, f16};

use super::minifloat;
use super::{Bool, F8E4M3, F8E5M2};

/// An element type with its conversions to and from numbers.
pub(super) trait Element: Sized {
    /// Bytes, little-endian.
    type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;

    fn from_bytes(bytes: Self::Bytes) -> Self;
    fn to_bytes(self) -> Self::Bytes;
    /// Rounded to nearest if not exact.
    fn to_f64(self) -> f64;
    fn to_f32(self) -> f32;
    /// Towards zero, saturating; 0 of NaN.
    fn to_i64(self) -> i64;
    fn from_f64(value: f64) -> Self;
    fn from_i64(value: i64) -> Self;
}

macro_rules! elements {
    ($($type:ty, $bytes:literal: $load:expr, $store:expr, $f64:expr, $f32:expr, $i64:expr, $of_f64:expr, $of_i64:expr;)*) => {
        $(impl Element for $type {
            type Bytes = [u8; $bytes];

            fn from_bytes(bytes: Self::Bytes) -> Self {
                $load(bytes)
            }

            fn to_bytes(self) -> Self::Bytes {
                $store(self)
            }

            fn to_f64(self) -> f64 {
                $f64(self)
            }

            fn to_f32(self) -> f32 {
                $f32(self)
            }

            fn to_i64(self) -> i64 {
                $i64(self)
            }

            fn from_f64(value: f64) -> Self {
                $of_f64(value)
            }

            fn from_i64(value: i64) -> Self {
                $of_i64(value)
            }
        })*
    };
}

macro_rules! integers {
    ($($type:ty, $bytes:literal;)*) => {
        elements! {$(
            $type, $bytes: <$type>::from_le_bytes, <$type>::to_le_bytes, |x| x as f64, |x| x as f32,
                i64::from, |x: f64| x as $type,
                |x: i64| x.clamp(<$type>::MIN.into(), <$type>::MAX.into()) as $type;
        )*}
    };
}

integers! {
    i8, 1;
    u8, 1;
    i16, 2;
    i32, 4;
    i64, 8;
}

elements! {
    f64, 8: f64::from_le_bytes, f64::to_le_bytes, |x| x, |x| x as f32, |x| x as i64, |x| x,
        |x| x as f64;
    f32, 4: f32::from_le_bytes, f32::to_le_bytes, f64::from, |x| x, |x| x as i64, |x| x as f32,
        |x| x as f32;
    f16, 2: f16::from_le_bytes, f16::to_le_bytes, f16::to_f64, f16::to_f32,
        |x: f16| x.to_f64() as i64, |x| f16::from_bits(minifloat::F16.round(x) as u16),
        |x| Self::from_f64(narrowed(x));
    bf16, 2: bf16::from_le_bytes, bf16::to_le_bytes, bf16::to_f64, bf16::to_f32,
        |x: bf16| x.to_f64() as i64, |x| bf16::from_bits(minifloat::BF16.round(x) as u16),
        |x| Self::from_f64(narrowed(x));
    F8E4M3, 1: |[x]: [u8; 1]| F8E4M3(x), |x: F8E4M3| [x.0], |x: F8E4M3| x.to_f32().into(), F8E4M3::to_f32,
        |x: F8E4M3| x.to_f32() as i64, F8E4M3::from_f64, |x| Self::from_f64(narrowed(x));
    F8E5M2, 1: |[x]: [u8; 1]| F8E5M2(x), |x: F8E5M2| [x.0], |x: F8E5M2| x.to_f32().into(), F8E5M2::to_f32,
        |x: F8E5M2| x.to_f32() as i64, F8E5M2::from_f64, |x| Self::from_f64(narrowed(x));
    Bool, 1: |[x]: [u8; 1]| Bool(x != 0), |x: Bool| [x.0.into()], |x: Bool| f64::from(x.0),
        |x: Bool| f32::from(x.0), |x: Bool| x.0.into(), |x| Bool(x != 0.0), |x| Bool(x != 0);
}

/// A number that rounds to the same as `value` in any format of at most 24 mantissa bits: where
/// binary64 has not enough bits, the last kept bit is set if any of the dropped bits is (round to
/// odd).
fn narrowed(value: i64) -> f64 {
    const REST: u64 = (1 << 11) - 1;
    let magnitude = value.unsigned_abs();
    if magnitude >> f64::MANTISSA_DIGITS == 0 {
        return value as f64;
    }
    let sticky = u64::from(magnitude & REST != 0) << REST.count_ones();
    ((magnitude & !REST | sticky) as f64).copysign(value as f64)
}
