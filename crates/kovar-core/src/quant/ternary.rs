//! The ternary type TQ2_0, for models trained with weights of -1, 0 and 1 times a scale.
//!
//! Its codes are in the order of Q2_K's.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use super::k_low::{pack_two_bits, unpack_two_bits};
use super::legacy::inverse;
use super::{Block, F16Bytes, ScaleField, largest_magnitude};

/// 256 elements `d * (q - 1)`, `q` of 2 bits; encoders write 0, 1 and 2 only.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockTQ2_0 {
    /// Codes.
    pub qs: [u8; 64],
    /// Scale.
    pub d: F16Bytes,
}

impl Block<256> for BlockTQ2_0 {
    const SCALES: &'static [ScaleField] = &[ScaleField::F16(offset_of!(Self, d))];

    fn decode(&self) -> [f32; 256] {
        let d = self.d.to_f32();
        unpack_two_bits(&self.qs).map(|q| d * (f32::from(q) - 1.0))
    }

    fn encode(values: &[f32; 256]) -> Self {
        let d = largest_magnitude(values).abs();
        let codes = match inverse(d) {
            // `round` takes halves away from zero.
            Some(inverse) => values.map(|value| ((value * inverse).round() + 1.0) as u8),
            None => [1; 256],
        };
        Self {
            qs: pack_two_bits(&codes),
            d: F16Bytes::from_f32(d),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ternary_values_survive_and_the_fourth_code_is_two() {
        let values: [f32; 256] = std::array::from_fn(|i| (i * 5 / 3 % 3) as f32 * 0.5 - 0.5);
        let mut block = BlockTQ2_0::encode(&values);
        assert_eq!(block.decode(), values);
        block.qs[33] |= 0b1100;
        assert_eq!(block.decode()[128 + 32 + 1], 1.0);
    }

    #[test]
    fn halves_round_away_from_zero() {
        let mut values = [0.0; 256];
        values[..5].copy_from_slice(&[-4.0, 2.0, -2.0, 1.99, -1.99]);
        let decoded = BlockTQ2_0::encode(&values).decode();
        assert_eq!(decoded[..5], [-4.0, 4.0, -4.0, 0.0, 0.0]);
    }
}
