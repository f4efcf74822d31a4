//! The codecs against files that the `gguf` Python package made
//! (`scripts/goldens/quant_blocks.py`).

use kovar_core::DType;
use kovar_core::quant::{decode, encode};

/// The fixtures of one dtype: its name, blocks, what they decode to, and what
/// `encode.values.bin` encodes to where the package has an encoder.
type Golden = (DType, &'static [u8], &'static [u8], Option<&'static [u8]>);

macro_rules! golden {
    ($dtype:ident, $name:literal, decode) => {
        (
            DType::$dtype,
            include_bytes!(concat!("data/", $name, ".blocks.bin")),
            include_bytes!(concat!("data/", $name, ".decoded.bin")),
            None,
        )
    };
    ($dtype:ident, $name:literal, both) => {
        (
            DType::$dtype,
            include_bytes!(concat!("data/", $name, ".blocks.bin")),
            include_bytes!(concat!("data/", $name, ".decoded.bin")),
            Some(include_bytes!(concat!("data/", $name, ".encoded.bin"))),
        )
    };
}

const GOLDENS: [Golden; 15] = [
    golden!(F16, "f16", both),
    golden!(BF16, "bf16", both),
    golden!(Q4_0, "q4_0", both),
    golden!(Q4_1, "q4_1", both),
    golden!(Q5_0, "q5_0", both),
    golden!(Q5_1, "q5_1", both),
    golden!(Q8_0, "q8_0", both),
    golden!(Q2K, "q2_k", decode),
    golden!(Q3K, "q3_k", decode),
    golden!(Q4K, "q4_k", decode),
    golden!(Q5K, "q5_k", decode),
    golden!(Q6K, "q6_k", decode),
    golden!(IQ4NL, "iq4_nl", decode),
    golden!(IQ4XS, "iq4_xs", decode),
    golden!(MXFP4, "mxfp4", both),
];

const VALUES_TO_ENCODE: &[u8] = include_bytes!("data/encode.values.bin");

fn floats(bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / 4];
    decode(DType::F32, bytes, &mut values).unwrap();
    values
}

#[test]
fn decoding_equals_the_gguf_package_bit_for_bit() {
    for (dtype, blocks, decoded, _) in GOLDENS {
        let expected = floats(decoded);
        assert!(expected.len() >= 62, "{dtype}: the golden is too short");
        let mut actual = vec![f32::NAN; expected.len()];
        decode(dtype, blocks, &mut actual).unwrap();
        for (i, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            // Which NaN an operation gives depends on the machine.
            let same = actual.to_bits() == expected.to_bits();
            assert!(
                same || actual.is_nan() && expected.is_nan(),
                "{dtype} element {i}: {actual} instead of {expected}"
            );
        }
    }
}

#[test]
fn encoding_equals_the_gguf_package_byte_for_byte() {
    let values = floats(VALUES_TO_ENCODE);
    let mut checked = 0;
    for (dtype, _, _, encoded) in GOLDENS {
        let Some(expected) = encoded else { continue };
        let mut actual = vec![0xa5; expected.len()];
        encode(dtype, &values, &mut actual).unwrap();
        let block_bytes = dtype.block_bytes();
        let blocks = actual.chunks(block_bytes).zip(expected.chunks(block_bytes));
        for (block, (actual, expected)) in blocks.enumerate() {
            let from = block * dtype.block_len();
            let values = &values[from..from + dtype.block_len()];
            let largest = values.iter().fold(0.0, |largest, v| v.abs().max(largest));
            if dtype == DType::MXFP4 && largest > 0.0 && largest < 2f32.powi(-125) {
                // The package lets the exponent of such a block wrap around.
                assert_eq!(actual[0], 0, "block {block}");
                continue;
            }
            assert_eq!(actual, expected, "{dtype} block {block}: {values:?}");
        }
        checked += 1;
    }
    assert_eq!(checked, 8);
}

#[test]
fn encoding_decoded_blocks_gives_them_back_for_plain_floats() {
    for (dtype, blocks, decoded, _) in GOLDENS.into_iter().filter(|golden| golden.0.is_float()) {
        let mut actual = vec![0; blocks.len()];
        encode(dtype, &floats(decoded), &mut actual).unwrap();
        assert_eq!(actual, blocks, "{dtype}");
    }
}
