//! The codecs against files that the `gguf` Python package made
//! (`scripts/goldens/quant_blocks.py`): every quantised dtype, and the floats that have goldens.

use kovar_core::DType;
use kovar_core::quant::{decode, encode};

/// The types that the package decodes only.
const WITHOUT_ENCODER: &[DType] = &[
    DType::Q2K,
    DType::Q3K,
    DType::Q4K,
    DType::Q5K,
    DType::Q6K,
    DType::IQ4NL,
    DType::IQ4XS,
];

/// The dtypes that have goldens.
fn dtypes() -> impl Iterator<Item = DType> {
    let floats = [DType::F16, DType::BF16];
    let quantized = DType::ALL
        .iter()
        .copied()
        .filter(|dtype| dtype.is_quantized());
    floats.into_iter().chain(quantized)
}

/// The golden `DTYPE.KIND.bin`. The kinds are `blocks`, `decoded` (what the blocks decode to) and
/// `encoded` (what `encode.values.bin` encodes to).
fn golden(dtype: DType, kind: &str) -> Vec<u8> {
    read(&format!("{}.{kind}.bin", dtype.name().to_lowercase()))
}

fn read(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / 4];
    decode(DType::F32, bytes, &mut values).unwrap();
    values
}

#[test]
fn decoding_equals_the_gguf_package_bit_for_bit() {
    for dtype in dtypes() {
        let blocks = golden(dtype, "blocks");
        let expected = floats(&golden(dtype, "decoded"));
        assert!(expected.len() >= 62, "{dtype}: the golden is too short");
        let mut actual = vec![f32::NAN; expected.len()];
        decode(dtype, &blocks, &mut actual).unwrap();
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
    let values = floats(&read("encode.values.bin"));
    for dtype in dtypes().filter(|dtype| !WITHOUT_ENCODER.contains(dtype)) {
        let expected = golden(dtype, "encoded");
        let mut actual = vec![0xa5; expected.len()];
        let block_bytes = dtype.block_bytes();
        // The whole blocks at the beginning.
        let whole = values.len() / dtype.block_len() * dtype.block_len();
        encode(dtype, &values[..whole], &mut actual).unwrap();
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
    }
}

#[test]
fn encoding_decoded_blocks_gives_them_back_for_plain_floats() {
    for dtype in [DType::F16, DType::BF16] {
        let blocks = golden(dtype, "blocks");
        let mut actual = vec![0; blocks.len()];
        let values = floats(&golden(dtype, "decoded"));
        encode(dtype, &values, &mut actual).unwrap();
        assert_eq!(actual, blocks, "{dtype}");
    }
}
