//! What holds of the codecs for all inputs: error bounds, no panics, typed size errors.

use kovar_core::DType;
use kovar_core::error::CodecError;
use kovar_core::quant::{decode, encode};
use proptest::prelude::*;

fn codecs() -> impl Iterator<Item = DType> {
    DType::ALL
        .into_iter()
        .filter(|dtype| dtype.is_float() || dtype.is_quantized())
}

fn round_trip(dtype: DType, values: &[f32]) -> Vec<f32> {
    let mut bytes = vec![0; dtype.bytes_for(values.len()).unwrap()];
    encode(dtype, values, &mut bytes).unwrap();
    let mut decoded = vec![f32::NAN; values.len()];
    decode(dtype, &bytes, &mut decoded).unwrap();
    decoded
}

fn max_magnitude(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |max, value| value.abs().max(max))
}

/// Largest error of rounding a scale to f16 where it is subnormal, per unit of the code.
const SUBNORMAL: f32 = 1.0 / (1 << 25) as f32;

/// A super-block's worth of values in `-a..=a` for `a` from 2^-6 to 2^11; zeros, extremes and tiny
/// values are frequent.
fn values() -> impl Strategy<Value = Vec<f32>> {
    let element = prop_oneof![
        6 => -1.0_f32..1.0,
        1 => Just(0.0_f32),
        1 => Just(1.0_f32),
        1 => Just(-1.0_f32),
        1 => -1e-3_f32..1e-3,
    ];
    let sub_block = (
        0.01_f32..1.0,
        -0.5_f32..0.5,
        prop::collection::vec(element, 16),
    );
    let shaped = sub_block.prop_map(|(gain, offset, values)| {
        let shape = |value: f32| (value * gain + offset).clamp(-1.0, 1.0);
        values.into_iter().map(shape).collect::<Vec<_>>()
    });
    (-6..12_i32, prop::collection::vec(shaped, 16)).prop_map(|(exponent, parts)| {
        let magnitude = (exponent as f32).exp2();
        parts
            .concat()
            .iter()
            .map(|value| value * magnitude)
            .collect()
    })
}

/// Any bit pattern: subnormals, huge values, infinities, NaN.
fn any_values() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(any::<u32>().prop_map(f32::from_bits), 256)
}

proptest! {
    /// Q4_0, Q5_0, Q8_0: half a step, a whole one for values beyond the last code (the type has
    /// one code less on the side opposite to the largest value), and the rounding of the scale to
    /// f16: 2^-11 of the value, or `SUBNORMAL` per code.
    #[test]
    fn symmetric_blocks_err_by_at_most_half_a_step(values in values()) {
        for (dtype, codes) in [(DType::Q4_0, 8.0), (DType::Q5_0, 16.0), (DType::Q8_0, 127.0)] {
            let decoded = round_trip(dtype, &values);
            for (values, decoded) in values.chunks(32).zip(decoded.chunks(32)) {
                let step = max_magnitude(values) / codes;
                for (value, decoded) in values.iter().zip(decoded) {
                    let beyond = dtype != DType::Q8_0 && value.abs() > (codes - 1.0) * step;
                    let steps = if beyond { 1.0 } else { 0.5 };
                    let scale_rounding = value.abs().max(step) / 2000.0 + codes * SUBNORMAL;
                    let bound = step * (steps + 1e-4) + scale_rounding;
                    prop_assert!((value - decoded).abs() <= bound, "{dtype}: {value} {decoded}");
                }
            }
        }
    }

    /// Q4_1, Q5_1: half a step, and the rounding of scale and minimum to f16: 2^-11 of each, or
    /// `SUBNORMAL` per code.
    #[test]
    fn affine_blocks_err_by_at_most_half_a_step(values in values()) {
        for (dtype, codes) in [(DType::Q4_1, 15.0), (DType::Q5_1, 31.0)] {
            let decoded = round_trip(dtype, &values);
            for (values, decoded) in values.chunks(32).zip(decoded.chunks(32)) {
                let min = values.iter().copied().fold(f32::INFINITY, f32::min);
                let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let half_step = (max - min) / codes / 2.0;
                let scale_rounding =
                    (max - min + min.abs()) / 2000.0 + (codes + 1.0) * SUBNORMAL;
                let bound = half_step * 1.001 + scale_rounding;
                for (value, decoded) in values.iter().zip(decoded) {
                    prop_assert!((value - decoded).abs() <= bound, "{dtype}: {value} {decoded}");
                }
            }
        }
    }

    /// K types: the root mean square error over a super-block, relative to its largest magnitude.
    ///
    /// The weights are between `rms` and, on average, `2 rms`, and the search is never worse than
    /// the grid over the range, so a sub-block's error is at most sqrt(2) times the largest error
    /// of that grid: half a step of `2 / 15` or `2 / 31`, a whole one of `1 / 32` for Q6_K.
    /// Rounding the scales and minima to 6 bits (8 for Q6_K) adds half a unit times the largest
    /// code. That is 0.12, 0.07 and 0.05 of the magnitude, plus `SUBNORMAL` per product of scale
    /// and code. In the same way Q2_K, whose scales and minima have 4 bits, errs by 0.57 and Q3_K
    /// by 0.39. Of IQ4_XS the largest error of the grid is 14 / 127, the distance to the last
    /// level.
    #[test]
    fn super_blocks_err_by_a_bounded_share_of_their_magnitude(values in values()) {
        for (dtype, share) in [
            (DType::Q2K, 0.57),
            (DType::Q3K, 0.39),
            (DType::Q4K, 0.12),
            (DType::Q5K, 0.07),
            (DType::Q6K, 0.05),
            (DType::IQ4XS, 0.2),
        ] {
            let decoded = round_trip(dtype, &values);
            let errors = values.iter().zip(&decoded).map(|(value, decoded)| value - decoded);
            let rms = (errors.map(|error| error * error).sum::<f32>() / 256.0).sqrt();
            let bound = share * max_magnitude(&values) + 128.0 * 32.0 * SUBNORMAL;
            prop_assert!(rms <= bound, "{dtype}: {rms} above {bound}");
        }
    }

    /// IQ4_NL as IQ4_XS above, a block having an f16 of its own. MXFP4: a quarter of the block's
    /// largest magnitude `a` for each element, as the largest level is at least 3/4 of `a` and
    /// levels are at most `a / 2` apart.
    #[test]
    fn blocks_of_levels_err_by_a_bounded_share_of_their_magnitude(values in values()) {
        let iq4 = round_trip(DType::IQ4NL, &values);
        let mxfp4 = round_trip(DType::MXFP4, &values);
        for ((values, iq4), mxfp4) in values.chunks(32).zip(iq4.chunks(32)).zip(mxfp4.chunks(32)) {
            let largest = max_magnitude(values);
            let errors = values.iter().zip(iq4).map(|(value, decoded)| value - decoded);
            let rms = (errors.map(|error| error * error).sum::<f32>() / 32.0).sqrt();
            prop_assert!(rms <= 0.16 * largest + 127.0 * SUBNORMAL, "IQ4_NL: {rms} of {largest}");
            for (value, decoded) in values.iter().zip(mxfp4) {
                prop_assert!((value - decoded).abs() <= largest / 4.0, "MXFP4: {value} {decoded}");
            }
        }
    }

    /// TQ2_0: half a step, the step being the largest magnitude, and the rounding of the scale.
    #[test]
    fn ternary_blocks_err_by_at_most_half_a_step(values in values()) {
        let step = max_magnitude(&values);
        let bound = step * (0.5 + 1e-4 + 1.0 / 2000.0) + SUBNORMAL;
        for (value, decoded) in values.iter().zip(round_trip(DType::TQ2_0, &values)) {
            prop_assert!((value - decoded).abs() <= bound, "{value} {decoded}");
        }
    }

    #[test]
    fn plain_floats_round_to_nearest(values in values()) {
        for (dtype, ulp) in [(DType::F32, 0.0), (DType::F16, 1.0 / 1024.0), (DType::BF16, 1.0 / 128.0)] {
            for (value, decoded) in values.iter().zip(round_trip(dtype, &values)) {
                // Half a unit in the last place; subnormal f16 numbers are 2^-24 apart.
                let bound = value.abs() * ulp / 2.0 + if dtype == DType::F16 { 3e-8 } else { 0.0 };
                prop_assert!((value - decoded).abs() <= bound, "{dtype}: {value} {decoded}");
            }
        }
    }

    #[test]
    fn any_bytes_decode(bytes in prop::collection::vec(any::<u8>(), 8 * 256)) {
        for dtype in codecs() {
            let needed = dtype.bytes_for(256).unwrap();
            let mut out = vec![0.0; 256];
            prop_assert_eq!(decode(dtype, &bytes[..needed], &mut out), Ok(()));
        }
    }

    #[test]
    fn any_values_encode_and_non_finite_ones_stay_so(values in any_values()) {
        for dtype in codecs() {
            let decoded = round_trip(dtype, &values);
            let block_len = dtype.block_len();
            for (values, decoded) in values.chunks(block_len).zip(decoded.chunks(block_len)) {
                if values.iter().any(|value| !value.is_finite()) {
                    prop_assert!(decoded.iter().all(|value| !value.is_finite()), "{dtype}");
                }
            }
        }
    }

    #[test]
    fn encoding_depends_on_the_block_alone(values in values()) {
        for dtype in codecs() {
            let once = round_trip(dtype, &values);
            let twice = round_trip(dtype, &[values.as_slice(), values.as_slice()].concat());
            let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|x| x.to_bits()).collect() };
            prop_assert_eq!([bits(&once), bits(&once)].concat(), bits(&twice));
        }
    }
}

#[test]
fn one_non_finite_element_spoils_its_block_and_no_other() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for dtype in codecs() {
            let block_len = dtype.block_len();
            for position in [0, block_len / 2, block_len - 1] {
                let mut values: Vec<f32> =
                    (0..3 * block_len).map(|i| i as f32 * 0.1 - 1.0).collect();
                values[block_len + position] = bad;
                let decoded = round_trip(dtype, &values);
                let spoiled: Vec<bool> = decoded
                    .chunks(block_len)
                    .map(|block| block.iter().all(|value| !value.is_finite()))
                    .collect();
                assert_eq!(spoiled, [false, true, false], "{dtype} {bad} at {position}");
                assert!(decoded[..block_len].iter().all(|value| value.is_finite()));
                assert!(
                    decoded[2 * block_len..]
                        .iter()
                        .all(|value| value.is_finite())
                );
            }
        }
    }
}

#[test]
fn scales_beyond_their_format_spoil_their_block() {
    let ramp = |magnitude: f32| -> Vec<f32> {
        let value = |i| (i as f32 / 127.5 - 1.0) * magnitude;
        (0..256).map(value).collect()
    };
    // The scales of MXFP4 reach as far as f32.
    let f16_scales = |dtype: &DType| dtype.is_quantized() && *dtype != DType::MXFP4;
    for dtype in codecs().filter(f16_scales) {
        for magnitude in [1e12, 3e38] {
            let decoded = round_trip(dtype, &ramp(magnitude));
            assert!(decoded.iter().all(|value| !value.is_finite()), "{dtype}");
        }
        let decoded = round_trip(dtype, &ramp(6e4));
        assert!(decoded.iter().all(|value| value.is_finite()), "{dtype}");
    }
}

/// Sums of twelve uniform numbers: near enough to a Gaussian of variance 1.
fn gaussian_values(count: usize) -> Vec<f32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..count)
        .map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0)
        .collect()
}

/// The limits are what ggml's reference encoders reach on Gaussian data, and two per cent.
#[test]
fn gaussian_weights_keep_the_error_of_the_reference_encoders() {
    let values = gaussian_values(256 * 200);
    let power: f32 = values.iter().map(|value| value * value).sum();
    let limits = [
        (DType::Q2K, 0.0867 * 1.02),
        (DType::Q3K, 0.0226 * 1.02),
        (DType::Q4K, 0.0051 * 1.02),
        (DType::Q5K, 0.00131 * 1.02),
        (DType::Q6K, 0.000316 * 1.02),
        (DType::IQ4NL, 0.00571 * 1.02),
        (DType::IQ4XS, 0.0058 * 1.02),
        (DType::MXFP4, 0.01323 * 1.02),
    ];
    for (dtype, limit) in limits {
        let decoded = round_trip(dtype, &values);
        let errors = values
            .iter()
            .zip(&decoded)
            .map(|(value, decoded)| value - decoded);
        let nmse = errors.map(|error| error * error).sum::<f32>() / power;
        assert!(nmse <= limit, "{dtype}: {nmse} above {limit}");
    }
}

#[test]
fn zeros_stay_zeros() {
    for dtype in codecs() {
        assert!(
            round_trip(dtype, &[0.0; 512])
                .iter()
                .all(|&value| value == 0.0)
        );
    }
}

#[test]
fn wrong_sizes_are_errors_that_name_them() {
    for dtype in codecs() {
        let (elements, expected) = (2 * dtype.block_len(), 2 * dtype.block_bytes());
        for actual in [0, expected - 1, expected + 1, 2 * expected] {
            let error = Err(CodecError::WrongSize {
                dtype,
                elements,
                expected,
                actual,
            });
            let (mut bytes, mut values) = (vec![0; actual], vec![0.0; elements]);
            assert_eq!(decode(dtype, &bytes, &mut values), error);
            assert_eq!(encode(dtype, &values, &mut bytes), error);
        }
        if dtype.is_quantized() {
            let elements = elements + 1;
            let error = Err(CodecError::PartialBlock { dtype, elements });
            let (mut bytes, mut values) = (vec![0; expected], vec![0.0; elements]);
            assert_eq!(decode(dtype, &bytes, &mut values), error);
            assert_eq!(encode(dtype, &values, &mut bytes), error);
        }
        assert_eq!(decode(dtype, &[], &mut []), Ok(()));
        assert_eq!(encode(dtype, &[], &mut []), Ok(()));
    }
}
