//! safetensors files, whole and damaged.

use std::sync::Arc;

use kovar_core::HostBytes;
use kovar_formats::safetensors::{ReadError, SafeTensors, SafeTensorsError, TensorDType};

fn file(header: &str, data_len: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend((0..data_len).map(|i| i as u8));
    bytes
}

fn read(bytes: Vec<u8>) -> Result<SafeTensors, SafeTensorsError> {
    SafeTensors::from_bytes(HostBytes::new(Arc::new(bytes)))
}

/// The error and its source, on one line.
fn error(bytes: Vec<u8>) -> String {
    match read(bytes) {
        Ok(_) => "no error".to_owned(),
        Err(error) => match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

#[test]
fn tensors_metadata_and_numbers_read() {
    let header = r#"{"__metadata__":{"format":"pt"},
        "ids":{"dtype":"I64","shape":[1,2],"data_offsets":[8,24]},
        "h":{"dtype":"F16","shape":[2],"data_offsets":[4,8]},
        "b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},
        "f":{"dtype":"F32","shape":[],"data_offsets":[24,28]},
        "empty":{"dtype":"F32","shape":[0,7],"data_offsets":[24,24]}}   "#;
    let mut bytes = file(header, 0);
    for v in [1.5f32, -2.0] {
        bytes.extend(&v.to_le_bytes()[2..]);
    }
    bytes.extend([0x00, 0x3c, 0x00, 0xc0]);
    bytes.extend(7i64.to_le_bytes());
    bytes.extend((-1i64).to_le_bytes());
    bytes.extend(0.25f32.to_le_bytes());
    let file = read(bytes).unwrap();

    let names: Vec<&str> = file.tensors().map(|t| t.name()).collect();
    assert_eq!(names, ["ids", "h", "b", "f", "empty"]);
    assert_eq!(
        file.metadata().get("format").map(String::as_str),
        Some("pt")
    );
    let ids = file.tensor("ids").unwrap();
    assert_eq!((ids.dtype(), ids.dims()), (TensorDType::I64, &[1, 2][..]));
    assert_eq!(file.bytes(ids).len(), 16);
    assert_eq!(file.read_i64("ids"), Ok(vec![7, -1]));
    assert_eq!(file.read_f32("b"), Ok(vec![1.5, -2.0]));
    assert_eq!(file.read_f32("h"), Ok(vec![1.0, -2.0]));
    assert_eq!(file.read_f32("f"), Ok(vec![0.25]));
    assert_eq!(file.read_f32("empty"), Ok(vec![]));
    assert_eq!(
        file.read_f32("ids"),
        Err(ReadError::WrongDType {
            tensor: "ids".into(),
            expected: "F32, F16 or BF16",
            found: TensorDType::I64
        })
    );
    assert_eq!(
        file.read_i64("nothing"),
        Err(ReadError::Missing {
            tensor: "nothing".into()
        })
    );
}

#[test]
fn a_file_opens_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let header = r#"{"t":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#;
    std::fs::write(&path, file(header, 3)).unwrap();
    let opened = SafeTensors::open(&path).unwrap();
    let tensor = opened.tensor("t").unwrap();
    assert_eq!(opened.bytes(tensor).as_slice(), [0, 1, 2]);
    let missing = SafeTensors::open("no/such.safetensors").unwrap_err();
    assert_eq!(missing.to_string(), "cannot open no/such.safetensors");
}

#[test]
fn every_damaged_file_gives_an_error_that_names_the_tensor() {
    let one = |dtype: &str, shape: &str, start: u64, end: u64, data: usize| {
        let header = format!(
            r#"{{"t":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}}}"#
        );
        file(&header, data)
    };
    let cases = [
        (
            vec![1, 2, 3],
            "not a safetensors file: it has 3 bytes, the header length takes 8",
        ),
        (
            [u64::MAX.to_le_bytes().as_slice(), b"{}"].concat(),
            "the header length at byte 0 is 18446744073709551615, but at most 2 bytes can follow \
             (not a safetensors file, or one cut short)",
        ),
        (
            file(r#"{"t":"#, 0),
            "the header (from byte 8) is not valid: \
             EOF while parsing a value at line 1 column 5",
        ),
        (
            file("[]", 0),
            "the header (from byte 8) is not valid: invalid type: sequence, \
             expected an object from tensor names to descriptions at line 1 column 0",
        ),
        (
            file(r#"{"__metadata__":{"a":"x","a":"y"}}"#, 0),
            "the header (from byte 8) is not valid: \
             __metadata__ has the key \"a\" twice at line 1 column 33",
        ),
        (
            file(
                r#"{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}"#,
                1,
            ),
            "the header (from byte 8) is not valid: unknown field `x`, \
             expected one of `dtype`, `shape`, `data_offsets` at line 1 column 55",
        ),
        (
            one("F7", "[1]", 0, 1, 1),
            "tensor \"t\" has the unknown dtype \"F7\"",
        ),
        (
            one("U8", "[1,1,1,1,1,1,1]", 0, 1, 1),
            "tensor \"t\" has 7 dims, the most is 6",
        ),
        (
            one("F32", "[0,4611686018427387904]", 0, 0, 0),
            "tensor \"t\" with dims [0, 4611686018427387904] is too large to address",
        ),
        (
            one("F32", "[2]", 0, 8, 7),
            "tensor \"t\" has data offsets 0 to 8, the data has 7 bytes",
        ),
        (
            one("F32", "[2]", 8, 0, 8),
            "tensor \"t\" has data offsets 8 to 0, the data has 8 bytes",
        ),
        (
            one("F32", "[2]", u64::MAX - 7, u64::MAX, 8),
            "tensor \"t\" has data offsets 18446744073709551608 to 18446744073709551615, \
             the data has 8 bytes",
        ),
        (
            one("F32", "[3]", 0, 8, 8),
            "tensor \"t\" of F32 with dims [3] takes 12 bytes, its data offsets span 8",
        ),
        (
            one("U8", "[4]", 2, 6, 6),
            "tensor \"t\" starts at 2 of the data, the one before it ends at 0",
        ),
        (
            file(
                r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}"#,
                7,
            ),
            "tensor \"b\" starts at 3 of the data, the one before it ends at 4",
        ),
        (
            file(
                r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}"#,
                8,
            ),
            "tensor \"a\" occurs twice",
        ),
        (
            one("U8", "[4]", 0, 4, 6),
            "the tensors end at 4 of the data, which has 6 bytes",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(error(bytes), expected);
    }
}
