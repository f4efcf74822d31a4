//! safetensors files, whole and damaged.

use std::sync::Arc;

use kovar_core::ops::dtypes::PLAIN;
use kovar_core::{DType, HostBytes};
use kovar_formats::FileWriteError;
use kovar_formats::safetensors::{
    ReadError, SafeTensors, SafeTensorsError, SafeTensorsWriter, TensorDType,
};

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
            "not a safetensors file: it has 3 bytes, but the header length takes 8",
        ),
        (
            [u64::MAX.to_le_bytes().as_slice(), b"{}"].concat(),
            "the header length at byte 0 is 18446744073709551615, but at most 2 bytes can follow \
             (not a safetensors file, or a truncated one)",
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
            "tensor \"t\" has data offsets 0 to 8, but the data has 7 bytes",
        ),
        (
            one("F32", "[2]", 8, 0, 8),
            "tensor \"t\" has data offsets 8 to 0, but the data has 8 bytes",
        ),
        (
            one("F32", "[2]", u64::MAX - 7, u64::MAX, 8),
            "tensor \"t\" has data offsets 18446744073709551608 to 18446744073709551615, \
             but the data has 8 bytes",
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

/// One byte pattern for each element size.
fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 37 + 1) as u8).collect()
}

#[test]
fn tensors_of_every_plain_dtype_come_back() {
    let mut writer = SafeTensorsWriter::new();
    writer
        .metadata("format", "pt")
        .metadata("note", "a \"b\"\n");
    let shapes: [&[usize]; 4] = [&[], &[0, 7], &[3], &[2, 1, 5]];
    let mut expected = Vec::new();
    for dtype in PLAIN {
        for (i, dims) in shapes.into_iter().enumerate() {
            let name = format!("{}.{i}", dtype.name());
            let bytes = data(dtype.bytes_for(dims.iter().product()).unwrap());
            writer.tensor(&name, *dtype, dims, bytes.clone()).unwrap();
            expected.push((name, *dtype, dims, bytes));
        }
    }
    let written = writer.to_bytes().unwrap();
    let header = u64::from_le_bytes(*written.first_chunk().unwrap());
    assert_eq!(header % 8, 0);
    let file = read(written).unwrap();
    assert_eq!(file.metadata()["note"], "a \"b\"\n");
    assert_eq!(file.tensors().len(), expected.len());
    for (name, dtype, dims, bytes) in expected {
        let tensor = file.tensor(&name).unwrap();
        assert_eq!(tensor.to_dtype(), Ok(dtype), "{name}");
        assert_eq!(tensor.dims(), dims, "{name}");
        assert_eq!(tensor.bytes().as_slice(), bytes, "{name}");
        let size = dtype.block_bytes();
        assert!(tensor.range().start.is_multiple_of(size), "{name}");
    }
}

#[test]
fn files_are_laid_out_as_the_reference_does() {
    let mut writer = SafeTensorsWriter::new();
    for (name, dtype) in [
        ("a", DType::U8),
        ("b", DType::F32),
        ("c", DType::F32),
        ("d", DType::I64),
    ] {
        let bytes = vec![name.as_bytes()[0]; dtype.block_bytes()];
        writer.tensor(name, dtype, &[1], bytes).unwrap();
    }
    let bytes = writer.to_bytes().unwrap();
    let header = "{\"d\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},\
                  \"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},\
                  \"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]},\
                  \"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[16,17]}}";
    let padded = header.len().next_multiple_of(8);
    assert_eq!(bytes[..8], (padded as u64).to_le_bytes());
    assert_eq!(&bytes[8..8 + header.len()], header.as_bytes());
    assert_eq!(&bytes[8 + padded..], b"ddddddddbbbbcccca");
}

#[test]
fn a_written_file_replaces_its_own_source() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let mut writer = SafeTensorsWriter::new();
    writer.tensor("w", DType::I16, &[2], data(4)).unwrap();
    writer.write_file(&path).unwrap();
    let first = SafeTensors::open(&path).unwrap();
    let tensor = first.tensor("w").unwrap();
    let mut again = SafeTensorsWriter::new();
    again
        .tensor_bytes("v", TensorDType::U16, &[2, 1], tensor.bytes())
        .unwrap();
    again.write_file(&path).unwrap();
    let second = SafeTensors::open(&path).unwrap();
    assert_eq!(second.tensor("v").unwrap().bytes().as_slice(), data(4));
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 1, "the partial file is still there");
    let nowhere = dir.path().join("no/such/folder");
    assert!(matches!(
        writer.write_file(nowhere),
        Err(FileWriteError::Create { .. })
    ));
}

#[test]
fn what_cannot_be_written_or_computed_with_is_named() {
    let mut writer = SafeTensorsWriter::new();
    let mut refused = |name: &str, dtype, dims: &[usize], bytes| {
        let error = writer.tensor(name, dtype, dims, vec![0; bytes]);
        error.unwrap_err().to_string()
    };
    assert_eq!(
        refused("t", DType::Q8_0, &[32], 34),
        "tensor \"t\" has dtype Q8_0, which safetensors lacks"
    );
    assert_eq!(
        refused("t", DType::F64, &[2], 15),
        "tensor \"t\" takes 16 bytes, 15 were given"
    );
    assert_eq!(
        refused("t", DType::F64, &[0, usize::MAX], 0),
        "tensor \"t\" of F64 cannot have dims [0, 18446744073709551615]"
    );
    assert_eq!(
        refused("t", DType::U8, &[1; 7], 1),
        "tensor \"t\" of U8 cannot have dims [1, 1, 1, 1, 1, 1, 1]"
    );
    assert_eq!(
        refused("__metadata__", DType::U8, &[1], 1),
        "a tensor cannot be called \"__metadata__\""
    );
    writer.tensor("t", DType::U8, &[1], vec![0]).unwrap();
    writer.tensor("t", DType::F32, &[1], vec![0; 4]).unwrap();
    assert_eq!(
        writer.to_bytes().unwrap_err().to_string(),
        "tensor \"t\" added twice"
    );
    for (dtype, size) in [
        ("U16", 2),
        ("U32", 4),
        ("U64", 8),
        ("C64", 8),
        ("F8_E8M0", 1),
    ] {
        let header =
            format!(r#"{{"t":{{"dtype":"{dtype}","shape":[1],"data_offsets":[0,{size}]}}}}"#);
        let file = read(file(&header, size)).unwrap();
        let tensor = file.tensor("t").unwrap();
        assert_eq!(
            tensor.to_dtype().unwrap_err().to_string(),
            format!(
                "tensor \"t\" is {dtype}, which kovar does not compute with; it takes F32, F16, \
                 BF16, I32, I8, F64, F8_E4M3, F8_E5M2, U8, I16, I64, BOOL"
            )
        );
    }
}
