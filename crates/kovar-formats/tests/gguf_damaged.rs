//! Damaged GGUF files, one for each possible fault, and the error that each gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use kovar_core::{DType, HostBytes};
use kovar_formats::gguf::{Array, Gguf, GgufWriter};

/// A file that is built field by field.
#[derive(Default)]
struct Raw(Vec<u8>);

impl Raw {
    fn header(tensors: u64, entries: u64) -> Self {
        Raw(b"GGUF".to_vec()).u32(3).u64(tensors).u64(entries)
    }

    fn u8(mut self, v: u8) -> Self {
        self.0.push(v);
        self
    }

    fn u32(mut self, v: u32) -> Self {
        self.0.extend(v.to_le_bytes());
        self
    }

    fn u64(mut self, v: u64) -> Self {
        self.0.extend(v.to_le_bytes());
        self
    }

    fn bytes(mut self, v: &[u8]) -> Self {
        self.0.extend(v);
        self
    }

    fn str(self, v: &[u8]) -> Self {
        self.u64(v.len() as u64).bytes(v)
    }

    fn tensor(self, name: &str, dims: &[u64], dtype: u32, offset: u64) -> Self {
        let mut raw = self.str(name.as_bytes()).u32(dims.len() as u32);
        for &dim in dims {
            raw = raw.u64(dim);
        }
        raw.u32(dtype).u64(offset)
    }

    /// Pads to 32 bytes and adds `len` bytes of data.
    fn data(mut self, len: usize) -> Self {
        let start = self.0.len().next_multiple_of(32);
        self.0.resize(start + len, 0);
        self
    }
}

fn error(raw: Raw) -> String {
    match Gguf::from_bytes(HostBytes::new(Arc::new(raw.0))) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_damaged_header_gives_an_error_that_names_the_field() {
    let cases = [
        (
            Raw(b"GG".to_vec()),
            "the magic at byte 0 takes 4 bytes, but the file ends after 2",
        ),
        (
            Raw(b"GGML\x03\0\0\0".to_vec()),
            "not a GGUF file: it starts with \"GGML\", not \"GGUF\"",
        ),
        (
            Raw(b"GGUF".to_vec())
                .bytes(&3u32.to_be_bytes())
                .u64(0)
                .u64(0),
            "a big-endian GGUF file (version 3); kovar reads little-endian files",
        ),
        (
            Raw(b"GGUF".to_vec()).u32(1).u64(0).u64(0),
            "GGUF version 1; kovar reads versions 2 and 3",
        ),
        (
            Raw(b"GGUF".to_vec()).u32(4).u64(0).u64(0),
            "GGUF version 4; kovar reads versions 2 and 3",
        ),
        (
            Raw::header(u64::MAX, 0),
            "the tensor count at byte 8 is 18446744073709551615, \
             but the 8 bytes that follow hold at most 0",
        ),
        (
            Raw::header(0, 1000).data(0),
            "the metadata count at byte 16 is 1000, but the 8 bytes that follow hold at most 0",
        ),
        (
            Raw::header(0, 1).u64(1 << 60).u32(4).u32(0),
            "the key of metadata entry 0 at byte 32 takes 1152921504606846976 bytes, \
             but the file ends after 8",
        ),
        (
            Raw::header(0, 1).str(b"k\xff").u32(4).u32(0),
            "the key of metadata entry 0 at byte 32 is not UTF-8 (the first 1 bytes are)",
        ),
        (
            Raw::header(0, 1).str(&[b'k'; 65_536]).u32(4).u32(0),
            "the key of metadata entry 0 at byte 24 is 65536 bytes long, the most is 65535",
        ),
        (
            Raw::header(0, 1).str(b"k\x1b[2J").u32(13).u32(0),
            "the value kind of metadata \"k\\u{1b}[2J\" at byte 37 is 13, kinds are 0 to 12",
        ),
        (
            Raw::header(0, 1).str(b"k").u32(10).u32(0),
            "the value of metadata \"k\" at byte 37 takes 8 bytes, but the file ends after 4",
        ),
        (
            Raw::header(0, 1).str(b"k").u32(7).u8(2),
            "the value of metadata \"k\" at byte 37 is a boolean of value 2, not 0 or 1",
        ),
        (
            Raw::header(0, 1).str(b"k").u32(8).str(b"ab\xc3"),
            "the value of metadata \"k\" at byte 45 is not UTF-8 (the first 2 bytes are)",
        ),
        (
            Raw::header(0, 1).str(b"k").u32(8).u64(4).bytes(b"abc"),
            "the value of metadata \"k\" at byte 45 takes 4 bytes, but the file ends after 3",
        ),
        (
            Raw::header(0, 1).str(b"k").u32(9).u32(77).u64(0),
            "the element kind of metadata \"k\" at byte 37 is 77, kinds are 0 to 12",
        ),
        (
            Raw::header(0, 1).str(b"k").u32(9).u32(4).u64(3).u64(0),
            "the array length of metadata \"k\" at byte 41 is 3, \
             but the 8 bytes that follow hold at most 2",
        ),
        (
            Raw::header(0, 1)
                .str(b"k")
                .u32(9)
                .u32(8)
                .u64(2)
                .str(b"a")
                .str(b"\xff"),
            "element 1 of metadata \"k\" at byte 66 is not UTF-8 (the first 0 bytes are)",
        ),
        (
            // Two halves of a character, each of which alone is not UTF-8.
            Raw::header(0, 1)
                .str(b"k")
                .u32(9)
                .u32(8)
                .u64(2)
                .str(b"\xc3")
                .str(b"\xa9"),
            "element 0 of metadata \"k\" at byte 57 is not UTF-8 (the first 0 bytes are)",
        ),
        (
            Raw::header(0, 1)
                .str(b"k")
                .u32(9)
                .u32(8)
                .u64(2)
                .str(b"a")
                .u64(9),
            "element 1 of metadata \"k\" at byte 66 takes 9 bytes, but the file ends after 0",
        ),
        (
            Raw::header(0, 1)
                .str(b"k")
                .u32(9)
                .u32(7)
                .u64(3)
                .bytes(&[0, 1, 9]),
            "element 2 of metadata \"k\" at byte 51 is a boolean of value 9, not 0 or 1",
        ),
        (
            (0..5)
                .fold(Raw::header(0, 1).str(b"k").u32(9), |raw, _| {
                    raw.u32(9).u64(1)
                })
                .u64(0),
            "metadata \"k\" nests arrays deeper than 4 (at byte 85)",
        ),
        (
            Raw::header(0, 3)
                .str(b"a")
                .u32(4)
                .u32(1)
                .str(b"b")
                .u32(4)
                .u32(1)
                .str(b"a")
                .u32(0)
                .u8(1),
            "metadata \"a\" occurs twice",
        ),
        (
            Raw::header(0, 1).str(b"general.alignment").u32(4).u32(0),
            "metadata \"general.alignment\" is 0, not a power of two",
        ),
        (
            Raw::header(0, 1).str(b"general.alignment").u32(4).u32(48),
            "metadata \"general.alignment\" is 48, not a power of two",
        ),
        (
            Raw::header(0, 1)
                .str(b"general.alignment")
                .u32(8)
                .str(b"32"),
            "metadata `general.alignment` is string, expected u32",
        ),
    ];
    for (raw, expected) in cases {
        assert_eq!(error(raw), expected);
    }
}

#[test]
fn every_block_type_is_read_or_named() {
    for (id, name) in [
        (4, "Q4_2"),
        (5, "Q4_3"),
        (9, "Q8_1"),
        (15, "Q8_K"),
        (16, "IQ2_XXS"),
        (17, "IQ2_XS"),
        (18, "IQ3_XXS"),
        (19, "IQ1_S"),
        (21, "IQ3_S"),
        (22, "IQ2_S"),
        (29, "IQ1_M"),
        (31, "Q4_0_4_4"),
        (32, "Q4_0_4_8"),
        (33, "Q4_0_8_8"),
        (34, "TQ1_0"),
        (36, "IQ4_NL_4_4"),
        (37, "IQ4_NL_4_8"),
        (38, "IQ4_NL_8_8"),
        (40, "NVFP4"),
        (41, "Q1_0"),
    ] {
        if let Some(dtype) = DType::ALL.iter().find(|dtype| dtype.gguf_id() == Some(id)) {
            assert_eq!(dtype.name(), name);
            continue;
        }
        let raw = Raw::header(1, 0).tensor("t", &[256], id, 0).data(1024);
        let message = error(raw);
        let named = format!("tensor \"t\" has type {name} (at byte 45), which kovar cannot read");
        assert!(message.starts_with(&named), "{message}");
    }
}

#[test]
fn every_damaged_tensor_gives_an_error_that_names_the_tensor() {
    let one = || Raw::header(1, 0);
    let readable = DType::ALL
        .iter()
        .filter_map(|dtype| Some((dtype.gguf_id()?, dtype.name())));
    let readable = Vec::from_iter(BTreeMap::from_iter(readable).into_values()).join(", ");
    let unsupported = |name: &str| {
        format!(
            "tensor \"t\" has type {name} (at byte 45), which kovar cannot read; \
             it reads {readable}"
        )
    };
    let cases = [
        (
            one().str(b"t\xff").u32(0).u32(0).u64(0).data(64),
            "the name of tensor 0 at byte 32 is not UTF-8 (the first 1 bytes are)".to_owned(),
        ),
        (
            one().tensor("t", &[1; 7], 0, 0).data(64),
            "tensor \"t\" has 7 dims (at byte 33), the most is 6".to_owned(),
        ),
        (
            one().tensor("t", &[4, 0], 0, 0).data(64),
            "dim 1 of tensor \"t\" (at byte 45) is 0".to_owned(),
        ),
        (
            one().tensor("t", &[1 << 40, 1 << 40], 0, 0).data(64),
            "tensor \"t\" with dims [1099511627776, 1099511627776] (at byte 37) \
             is too large to address"
                .to_owned(),
        ),
        (
            one().tensor("t", &[1 << 62], 0, 0).data(64),
            "tensor \"t\" with dims [4611686018427387904] (at byte 37) is too large to address"
                .to_owned(),
        ),
        (
            // The 64 elements are whole blocks, but the rows of 16 are not.
            one().tensor("t", &[16, 4], 8, 0).data(68),
            "tensor \"t\" (at byte 37) has rows of 16 elements, not whole Q8_0 blocks of 32"
                .to_owned(),
        ),
        (
            one().tensor("t", &[256], 16, 0).data(66),
            unsupported("IQ2_XXS"),
        ),
        (
            one().tensor("t", &[256], 34, 0).data(54),
            unsupported("TQ1_0"),
        ),
        (
            one().tensor("t", &[64], 40, 0).data(36),
            unsupported("NVFP4"),
        ),
        (
            one().tensor("t", &[32], 99, 0).data(32),
            "tensor \"t\" has the unknown type 99 (at byte 45)".to_owned(),
        ),
        (
            one().tensor("t", &[4], 0, 8).data(64),
            "the data of tensor \"t\" starts at 8 of the data section, \
             not a multiple of 32 (at byte 49)"
                .to_owned(),
        ),
        (
            one().tensor("t", &[4], 0, 32).data(32),
            "tensor \"t\" takes 16 bytes at 32 of the data section, \
             which begins at byte 64, but the file has 96 bytes"
                .to_owned(),
        ),
        (
            one().tensor("t", &[4], 0, u64::MAX - 31).data(32),
            "tensor \"t\" takes 16 bytes at 18446744073709551584 of the data section, \
             which begins at byte 64, but the file has 96 bytes"
                .to_owned(),
        ),
        (
            Raw::header(2, 0)
                .tensor("a", &[16], 0, 0)
                .tensor("b", &[16], 0, 32)
                .data(96),
            "tensors \"a\" and \"b\" overlap at byte 128".to_owned(),
        ),
        (
            Raw::header(2, 0)
                .tensor("a", &[4], 0, 0)
                .tensor("a", &[4], 0, 32)
                .data(64),
            "tensor \"a\" occurs twice".to_owned(),
        ),
        (
            Raw::header(1, 0).str(b"tensor").u32(1).u32(7).u32(0),
            "the type of tensor \"tensor\" at byte 50 takes 4 bytes, but the file ends after 0"
                .to_owned(),
        ),
    ];
    for (raw, expected) in cases {
        assert_eq!(error(raw), expected);
    }
}

#[test]
fn the_deepest_nesting_that_is_allowed_reads() {
    let nested = (0..3).fold(Array::U8(vec![1, 2]), |inner, _| Array::Array(vec![inner]));
    let mut writer = GgufWriter::new();
    writer.metadata("k", nested.clone()).unwrap();
    let bytes = writer.to_bytes().unwrap();
    let file = Gguf::from_bytes(HostBytes::new(Arc::new(bytes))).unwrap();
    assert_eq!(file.metadata().get("k"), Some(&nested.into()));
}

#[test]
fn six_dims_and_a_scalar_read() {
    let raw = Raw::header(2, 0)
        .tensor("six", &[6, 1, 1, 1, 1, 2], 0, 0)
        .tensor("scalar", &[], 0, 64)
        .data(68);
    let file = Gguf::from_bytes(HostBytes::new(Arc::new(raw.0))).unwrap();
    assert_eq!(file.tensor("six").unwrap().dims(), [2, 1, 1, 1, 1, 6]);
    let scalar = file.tensor("scalar").unwrap();
    assert_eq!((scalar.dims(), scalar.elements()), (&[][..], 1));
    assert_eq!(scalar.dtype(), DType::F32);
    assert_eq!(file.bytes(scalar).len(), 4);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Gguf::open("no/such/model.gguf").unwrap_err();
    assert_eq!(error.to_string(), "cannot open no/such/model.gguf");
}
