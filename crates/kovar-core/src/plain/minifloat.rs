//! Rounding to the floating-point formats narrower than binary32.

/// A format of a sign, `exponent_bits` and `mantissa_bits`, with subnormals.
pub(super) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    /// The bits of the greatest finite number.
    greatest: u32,
    /// The bits of numbers that round to more than that.
    beyond: u32,
    /// The bits of a NaN.
    nan: u32,
}

pub(super) const F16: Format = Format::ieee(5, 10);
pub(super) const BF16: Format = Format::ieee(8, 7);
pub(super) const F8E5M2: Format = Format::ieee(5, 2);
/// All exponents are those of numbers; only the last mantissa of the last exponent is NaN.
pub(super) const F8E4M3: Format = Format {
    exponent_bits: 4,
    mantissa_bits: 3,
    greatest: 0x7e,
    beyond: 0x7f,
    nan: 0x7f,
};

/// Mantissa bits of binary64, and its exponent bias.
const MANTISSA: u32 = 52;
const BIAS: i32 = 1023;

impl Format {
    /// The last exponent is that of infinities and NaN.
    const fn ieee(exponent_bits: u32, mantissa_bits: u32) -> Self {
        let infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
        Self {
            exponent_bits,
            mantissa_bits,
            greatest: infinity - 1,
            beyond: infinity,
            nan: infinity | 1 << (mantissa_bits - 1),
        }
    }

    /// The bits of the number nearest to `value`; of two equally near ones, the one whose last bit
    /// is 0. A value that rounds to more than the greatest number becomes infinite, or NaN in a
    /// format without infinities.
    pub(super) fn round(&self, value: f64) -> u32 {
        let sign = u32::from(value.is_sign_negative()) << (self.exponent_bits + self.mantissa_bits);
        if value.is_nan() {
            return sign | self.nan;
        }
        let bits = value.abs().to_bits();
        // Subnormals of binary64 are far below half of the least number of any format.
        let exponent = (bits >> MANTISSA) as i32 - BIAS;
        let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
        // The exponent of the least normal number, which subnormals have too.
        let least = 2 - (1 << (self.exponent_bits - 1));
        let shared = exponent.max(least);
        // One bit more than a mantissa with its leading one shifts everything out.
        let dropped = MANTISSA - self.mantissa_bits + shared.abs_diff(exponent);
        let dropped = dropped.min(MANTISSA + 2);
        let (kept, rest) = (mantissa >> dropped, mantissa & ((1 << dropped) - 1));
        let half = 1u64 << (dropped - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        // A leading one adds to the exponent, as does a mantissa that rounds up to two.
        let magnitude =
            (shared.abs_diff(least) << self.mantissa_bits) + kept as u32 + u32::from(up);
        let fits = magnitude <= self.greatest;
        sign | if fits { magnitude } else { self.beyond }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_format_are_their_own_nearest() {
        for bits in 0..=u16::MAX {
            let half = half::f16::from_bits(bits);
            let brain = half::bf16::from_bits(bits);
            for (value, format) in [(half.to_f64(), &F16), (brain.to_f64(), &BF16)] {
                if !value.is_nan() {
                    assert_eq!(format.round(value), bits.into(), "{value:e}");
                }
            }
        }
    }

    #[test]
    fn halfway_numbers_round_to_even_and_the_least_excess_up() {
        for bits in (0..0x7bff_u16).step_by(7) {
            let value = |bits| half::f16::from_bits(bits).to_f64();
            let middle = (value(bits) + value(bits + 1)) / 2.0;
            let even = u32::from(bits + bits % 2);
            assert_eq!(F16.round(middle), even, "{middle:e}");
            assert_eq!(F16.round(middle.next_up()), u32::from(bits) + 1);
            assert_eq!(F16.round(-middle.next_down()), u32::from(bits) | 0x8000);
        }
    }
}
