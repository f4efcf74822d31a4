//! The codecs and casts of the plain dtypes against goldens of numpy and ml_dtypes
//! (`scripts/goldens/plain_dtypes.py`), and every byte of the 8-bit ones.

use kovar_core::error::CodecError;
use kovar_core::ops::dtypes::PLAIN;
use kovar_core::plain::{F8E4M3, F8E5M2, cast, decode_f64, decode_i64, encode_f64, encode_i64};
use kovar_core::{DType, quant};

macro_rules! goldens {
    ($kind:literal: $($dtype:ident $name:literal),*) => {
        [$((DType::$dtype, include_bytes!(concat!("data/plain/", $kind, ".", $name, ".bin")) as &[u8])),*]
    };
}

const FLOATS: &[u8] = include_bytes!("data/plain/floats.bin");
const INTEGERS: &[u8] = include_bytes!("data/plain/integers.bin");
const OF_FLOATS: [(DType, &[u8]); 12] = goldens!("floats": F64 "F64", F32 "F32", F16 "F16",
    BF16 "BF16", F8E4M3 "F8_E4M3", F8E5M2 "F8_E5M2", I8 "I8", U8 "U8", I16 "I16", I32 "I32",
    I64 "I64", Bool "BOOL");
const OF_INTEGERS: [(DType, &[u8]); 12] = goldens!("integers": F64 "F64", F32 "F32", F16 "F16",
    BF16 "BF16", F8E4M3 "F8_E4M3", F8E5M2 "F8_E5M2", I8 "I8", U8 "U8", I16 "I16", I32 "I32",
    I64 "I64", Bool "BOOL");

fn f64s(bytes: &[u8]) -> Vec<f64> {
    let (numbers, _) = bytes.as_chunks();
    numbers
        .iter()
        .map(|bytes| f64::from_le_bytes(*bytes))
        .collect()
}

/// The bits but those of NaN, of which there are many.
fn same(dtype: DType, actual: &[u8], expected: &[u8]) -> bool {
    let (mut a, mut b) = ([0.0], [0.0]);
    decode_f64(dtype, actual, &mut a).unwrap();
    decode_f64(dtype, expected, &mut b).unwrap();
    actual == expected || (dtype.is_float() && a[0].is_nan() && b[0].is_nan())
}

fn assert_elements(dtype: DType, actual: &[u8], expected: &[u8], of: &[u8]) {
    assert_eq!(actual.len(), expected.len());
    let size = dtype.block_bytes();
    let elements = actual.chunks(size).zip(expected.chunks(size));
    for (i, (actual, expected)) in elements.enumerate() {
        let of = &of[8 * i..8 * i + 8];
        assert!(
            same(dtype, actual, expected),
            "{dtype} of element {i}, {of:x?}: {actual:x?} instead of {expected:x?}"
        );
    }
}

#[test]
fn floats_are_cast_as_in_exact_arithmetic() {
    let n = FLOATS.len() / 8;
    assert!(n > 500, "{n}");
    for (dtype, expected) in OF_FLOATS {
        let mut actual = vec![0xa5; n * dtype.block_bytes()];
        cast(DType::F64, FLOATS, dtype, &mut actual).unwrap();
        assert_elements(dtype, &actual, expected, FLOATS);
        actual.fill(0xa5);
        encode_f64(dtype, &f64s(FLOATS), &mut actual).unwrap();
        assert_elements(dtype, &actual, expected, FLOATS);
    }
}

#[test]
fn long_integers_are_cast_as_in_exact_arithmetic() {
    let n = INTEGERS.len() / 8;
    assert!(n > 300, "{n}");
    let numbers: Vec<i64> = INTEGERS
        .as_chunks()
        .0
        .iter()
        .map(|bytes| i64::from_le_bytes(*bytes))
        .collect();
    for (dtype, expected) in OF_INTEGERS {
        let mut actual = vec![0xa5; n * dtype.block_bytes()];
        cast(DType::I64, INTEGERS, dtype, &mut actual).unwrap();
        assert_elements(dtype, &actual, expected, INTEGERS);
        actual.fill(0xa5);
        encode_i64(dtype, &numbers, &mut actual).unwrap();
        assert_elements(dtype, &actual, expected, INTEGERS);
    }
}

#[test]
fn every_byte_of_the_8_bit_floats_decodes_as_in_ml_dtypes_and_encodes_back() {
    type Codec = (DType, &'static [u8], fn(u8) -> f32, fn(f32) -> u8);
    let goldens: [Codec; 2] = [
        (
            DType::F8E4M3,
            include_bytes!("data/plain/F8_E4M3.decoded.bin"),
            |bits| F8E4M3(bits).to_f32(),
            |x| F8E4M3::from_f32(x).0,
        ),
        (
            DType::F8E5M2,
            include_bytes!("data/plain/F8_E5M2.decoded.bin"),
            |bits| F8E5M2(bits).to_f32(),
            |x| F8E5M2::from_f32(x).0,
        ),
    ];
    let bytes: Vec<u8> = (0..=255).collect();
    for (dtype, golden, decode, encode) in goldens {
        let (mut singles, mut doubles) = (vec![0.0; 256], vec![0.0; 256]);
        quant::decode(dtype, &bytes, &mut singles).unwrap();
        decode_f64(dtype, &bytes, &mut doubles).unwrap();
        for (bits, expected) in (0..=255).zip(golden.as_chunks().0) {
            let expected = f32::from_le_bytes(*expected);
            let at = usize::from(bits);
            for actual in [decode(bits), singles[at], doubles[at] as f32] {
                let nan = actual.is_nan() && expected.is_nan();
                assert!(
                    nan || actual.to_bits() == expected.to_bits(),
                    "{dtype} {bits:02x}: {actual} instead of {expected}"
                );
            }
            if expected.is_nan() {
                assert!(decode(encode(expected)).is_nan());
            } else {
                assert_eq!(encode(expected), bits, "{dtype} {expected}");
            }
        }
        let mut again = vec![0; 256];
        quant::encode(dtype, &singles, &mut again).unwrap();
        assert!(
            again
                .iter()
                .zip(&bytes)
                .all(|(a, b)| same(dtype, &[*a], &[*b]))
        );
    }
    assert_eq!(F8E4M3(0x7e).to_f32(), 448.0);
    assert!(F8E4M3(0x7f).to_f32().is_nan() && F8E4M3(0xff).to_f32().is_nan());
    assert_eq!(F8E5M2(0xfc).to_f32(), f32::NEG_INFINITY);
}

#[test]
fn what_is_beyond_an_8_bit_float_is_nan_or_infinite() {
    for (value, bits) in [(448.0, 0x7e), (464.0, 0x7e), (-464.0, 0xfe)] {
        assert_eq!(F8E4M3::from_f32(value).0, bits, "{value}");
    }
    for value in [
        464.1,
        480.0,
        1e30,
        f32::INFINITY,
        -480.0,
        f32::NEG_INFINITY,
        f32::NAN,
    ] {
        assert!(F8E4M3::from_f32(value).to_f32().is_nan(), "{value}");
    }
    assert_eq!(F8E5M2::from_f32(61439.0).to_f32(), 57344.0);
    assert_eq!(F8E5M2::from_f32(61440.0).to_f32(), f32::INFINITY);
    assert_eq!(F8E5M2::from_f32(-1e30).to_f32(), f32::NEG_INFINITY);
}

#[test]
fn every_byte_of_the_8_bit_integers_and_of_bool_is_read_and_written() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut numbers = vec![0; 256];
    for dtype in [DType::U8, DType::I8, DType::Bool] {
        decode_i64(dtype, &bytes, &mut numbers).unwrap();
        for (&byte, &number) in bytes.iter().zip(&numbers) {
            let expected = match dtype {
                DType::I8 => i64::from(byte as i8),
                DType::U8 => i64::from(byte),
                _ => i64::from(byte != 0),
            };
            assert_eq!(number, expected, "{dtype} {byte}");
        }
        let mut written = vec![0xa5; 256];
        encode_i64(dtype, &numbers, &mut written).unwrap();
        let expected: Vec<u8> = match dtype {
            DType::Bool => bytes.iter().map(|&byte| u8::from(byte != 0)).collect(),
            _ => bytes.clone(),
        };
        assert_eq!(written, expected, "{dtype}");
        let mut floats = vec![f32::NAN; 256];
        quant::decode(dtype, &bytes, &mut floats).unwrap();
        assert!(
            floats
                .iter()
                .zip(&numbers)
                .all(|(f, n)| f64::from(*f) == *n as f64)
        );
    }
}

#[test]
fn a_cast_by_way_of_f32_is_the_cast_itself_where_f32_is_exact() {
    let n = 1 << 16;
    let bits: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for from in [DType::F16, DType::BF16, DType::I16] {
        let mut singles = vec![0.0; n];
        quant::decode(from, &bits, &mut singles).unwrap();
        for to in PLAIN {
            let size = to.block_bytes();
            let (mut direct, mut by_f32) = (vec![0; n * size], vec![0; n * size]);
            cast(from, &bits, *to, &mut direct).unwrap();
            quant::encode(*to, &singles, &mut by_f32).unwrap();
            let pairs = direct.chunks(size).zip(by_f32.chunks(size));
            for (i, (direct, by_f32)) in pairs.enumerate() {
                assert!(same(*to, direct, by_f32), "{from} {i:04x} to {to}");
            }
        }
    }
}

#[test]
fn blocks_and_wrong_sizes_are_errors() {
    let block = Err(CodecError::NotPlain { dtype: DType::Q8_0 });
    assert_eq!(
        cast(DType::Q8_0, &[0; 34], DType::F32, &mut [0; 128]),
        block
    );
    assert_eq!(
        cast(DType::F32, &[0; 128], DType::Q8_0, &mut [0; 34]),
        block
    );
    assert_eq!(decode_f64(DType::Q8_0, &[0; 34], &mut [0.0; 32]), block);
    assert_eq!(encode_i64(DType::Q8_0, &[0; 32], &mut [0; 34]), block);
    let wrong = |dtype, elements, expected, actual| {
        Err(CodecError::WrongSize {
            dtype,
            elements,
            expected,
            actual,
        })
    };
    let odd = cast(DType::F64, &[0; 17], DType::U8, &mut [0; 2]);
    assert_eq!(odd, wrong(DType::F64, 2, 16, 17));
    let short = cast(DType::F64, &[0; 16], DType::U8, &mut [0; 1]);
    assert_eq!(short, wrong(DType::U8, 2, 2, 1));
    let long = encode_f64(DType::I64, &[1.0], &mut [0; 9]);
    assert_eq!(long, wrong(DType::I64, 1, 8, 9));
}
