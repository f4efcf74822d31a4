//! The 8-bit code of activations.

use kovar_core::quant::activation::{
    ActivationError, BLOCK_LEN, block_count, quantize_activations,
};
use proptest::prelude::*;

struct Quantized {
    codes: Vec<i8>,
    scales: Vec<f32>,
    sums: Vec<i32>,
}

fn quantize(row: &[f32]) -> Quantized {
    let blocks = block_count(row.len());
    let mut quantized = Quantized {
        codes: vec![99; row.len()],
        scales: vec![f32::NAN; blocks],
        sums: vec![-1; blocks],
    };
    let Quantized {
        codes,
        scales,
        sums,
    } = &mut quantized;
    quantize_activations(row, codes, scales, sums).unwrap();
    quantized
}

proptest! {
    #[test]
    fn codes_err_by_half_a_step_and_sums_are_their_sums(
        row in prop::collection::vec(-100.0_f32..100.0, 0..100)
    ) {
        let Quantized { codes, scales, sums } = quantize(&row);
        let blocks = row.chunks(BLOCK_LEN).zip(codes.chunks(BLOCK_LEN));
        for ((row, codes), (scale, sum)) in blocks.zip(scales.iter().zip(&sums)) {
            for (value, &code) in row.iter().zip(codes) {
                prop_assert!((value - scale * f32::from(code)).abs() <= scale * 0.50002);
            }
            prop_assert_eq!(*sum, codes.iter().map(|&code| i32::from(code)).sum::<i32>());
            prop_assert!(codes.iter().any(|code| code.abs() == 127));
        }
    }

    #[test]
    fn any_bits_quantise_to_symmetric_codes(
        row in prop::collection::vec(any::<u32>().prop_map(f32::from_bits), 0..100)
    ) {
        let Quantized { codes, scales, .. } = quantize(&row);
        prop_assert!(codes.iter().all(|&code| code != i8::MIN));
        for (row, scale) in row.chunks(BLOCK_LEN).zip(scales) {
            prop_assert_eq!(row.iter().all(|value| value.is_finite()), scale.is_finite());
        }
    }
}

#[test]
fn halves_go_to_the_even_neighbour() {
    let row = [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5];
    let Quantized {
        codes,
        scales,
        sums,
    } = quantize(&row);
    assert_eq!(codes, [127, 0, 2, 2, 0, -2, -2, 4]);
    assert_eq!((scales, sums), (vec![1.0], vec![131]));
}

#[test]
fn a_shorter_last_block_has_a_scale_of_its_own() {
    let mut row = [1.0; 35];
    row[32..].copy_from_slice(&[-254.0, 127.0, 2.0]);
    let Quantized {
        codes,
        scales,
        sums,
    } = quantize(&row);
    assert_eq!(codes[..32], [127; 32]);
    assert_eq!(codes[32..], [-127, 64, 1]);
    assert_eq!(scales, [1.0 / 127.0, 2.0]);
    assert_eq!(sums, [32 * 127, -62]);
}

#[test]
fn zero_blocks_have_zero_scale_and_codes() {
    let Quantized {
        codes,
        scales,
        sums,
    } = quantize(&[-0.0; 40]);
    assert_eq!(codes, [0; 40]);
    assert_eq!((scales, sums), (vec![0.0; 2], vec![0; 2]));
}

#[test]
fn subnormal_scales_saturate_the_codes() {
    let least = f32::from_bits(1);
    let Quantized { codes, scales, .. } = quantize(&[least * 180.0, least * -180.0]);
    assert_eq!((codes, scales), (vec![127, -127], vec![least]));
    assert_eq!(quantize(&[least]).scales, [0.0]);
}

#[test]
fn non_finite_blocks_are_marked_by_their_scale() {
    let nan = quantize(&[1.0, f32::NAN, f32::INFINITY, 2.0]);
    assert!(nan.scales[0].is_nan());
    assert_eq!((nan.codes, nan.sums), (vec![0; 4], vec![0]));
    let infinite = quantize(&[1.0, f32::NEG_INFINITY]);
    assert_eq!(infinite.scales, [f32::INFINITY]);
    assert_eq!((infinite.codes, infinite.sums), (vec![0; 2], vec![0]));
}

#[test]
fn wrong_sizes_are_errors_and_nothing_is_written() {
    let row = [1.0; 33];
    let (mut codes, mut scales, mut sums) = ([7; 33], [7.0; 2], [7; 2]);
    let mut check = |codes_len: usize, scales_len: usize, sums_len: usize| {
        let (codes, scales) = (&mut codes[..codes_len], &mut scales[..scales_len]);
        quantize_activations(&row, codes, scales, &mut sums[..sums_len])
    };
    assert_eq!(
        check(32, 2, 2),
        Err(ActivationError::CodeCount {
            elements: 33,
            actual: 32
        })
    );
    for (scales, sums) in [(1, 2), (2, 1)] {
        assert_eq!(
            check(33, scales, sums),
            Err(ActivationError::BlockCount {
                elements: 33,
                expected: 2,
                scales,
                sums
            })
        );
    }
    assert_eq!((codes, scales, sums), ([7; 33], [7.0; 2], [7; 2]));
}
