//! What the writer writes, the reader reads.

use std::sync::Arc;

use kovar_core::{DType, HostBytes};
use kovar_formats::FileWriteError;
use kovar_formats::gguf::{Array, Gguf, GgufWriter, StringArray, Value};
use proptest::prelude::*;

fn read(bytes: Vec<u8>) -> Gguf {
    Gguf::from_bytes(HostBytes::new(Arc::new(bytes))).unwrap()
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<u16>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e30f32..1e30).prop_map(Value::from),
        (-1e300f64..1e300).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ]
}

fn flat_array() -> impl Strategy<Value = Array> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(Array::from),
        proptest::collection::vec(any::<i16>(), 0..9).prop_map(Array::from),
        proptest::collection::vec(any::<u32>(), 0..9).prop_map(Array::from),
        proptest::collection::vec(any::<i64>(), 0..9).prop_map(Array::from),
        proptest::collection::vec(-1e30f32..1e30, 0..9).prop_map(Array::from),
        proptest::collection::vec(any::<bool>(), 0..9).prop_map(Array::from),
        proptest::collection::vec(".{0,6}", 0..9)
            .prop_map(|texts| Array::String(texts.into_iter().collect())),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => scalar(),
        2 => flat_array().prop_map(Value::from),
        1 => proptest::collection::vec(flat_array(), 0..4)
            .prop_map(|inner| Value::Array(Array::Array(inner))),
    ]
}

/// The dtypes that GGUF has.
fn in_gguf() -> Vec<DType> {
    let all = DType::ALL.into_iter();
    all.filter(|dtype| dtype.gguf_id().is_some()).collect()
}

#[test]
fn a_dtype_that_gguf_lacks_is_refused_by_name() {
    let mut writer = GgufWriter::new();
    let error = writer.tensor("t", DType::F8E4M3, &[2], vec![0; 2]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "tensor \"t\" has dtype F8_E4M3, which GGUF lacks"
    );
}

proptest! {
    #[test]
    fn any_metadata_comes_back_in_order(values in proptest::collection::vec(value(), 0..12)) {
        let mut writer = GgufWriter::new();
        for (i, value) in values.iter().enumerate() {
            writer.metadata(format!("key.{i}"), value.clone()).unwrap();
        }
        let file = read(writer.to_bytes().unwrap());
        prop_assert!(file.metadata().iter().map(|(_, v)| v).eq(&values));
        for (i, value) in values.iter().enumerate() {
            prop_assert_eq!(file.metadata().get(&format!("key.{i}")), Some(value));
        }
    }

    #[test]
    fn any_tensors_come_back(
        shapes in proptest::collection::vec((0..in_gguf().len(), proptest::collection::vec(1usize..4, 0..6)), 0..8),
        log_alignment in 0u32..8,
    ) {
        let mut writer = GgufWriter::with_alignment(1 << log_alignment).unwrap();
        let mut expected = Vec::new();
        for (i, (dtype, mut dims)) in shapes.into_iter().enumerate() {
            let dtype = in_gguf()[dtype];
            dims.push(2 * dtype.block_len());
            let size = dtype.bytes_for(dims.iter().product()).unwrap();
            let data: Vec<u8> = (0..size).map(|b| (b * 7 + i) as u8).collect();
            writer.tensor(format!("t{i}"), dtype, &dims, data.clone()).unwrap();
            expected.push((format!("t{i}"), dtype, dims, data));
        }
        let file = read(writer.to_bytes().unwrap());
        prop_assert_eq!(file.alignment(), 1 << log_alignment);
        prop_assert_eq!(file.tensors().len(), expected.len());
        for (name, dtype, dims, data) in expected {
            let tensor = file.tensor(&name).unwrap();
            prop_assert_eq!(tensor.dtype(), dtype);
            prop_assert_eq!(tensor.dims(), &dims[..]);
            prop_assert_eq!(tensor.range().start % (1 << log_alignment), 0);
            let bytes = file.bytes(tensor);
            prop_assert_eq!(bytes.as_slice(), &data[..]);
        }
    }
}

#[test]
fn a_written_file_opens_mapped_and_replaces_its_own_source() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    let mut writer = GgufWriter::new();
    writer.metadata("general.name", "first").unwrap();
    writer
        .tensor("w", DType::F32, &[2, 2], vec![7; 16])
        .unwrap();
    writer.write_file(&path).unwrap();

    let first = Gguf::open(&path).unwrap();
    assert_eq!(first.version(), 3);
    assert_eq!(first.alignment(), 32);
    assert_eq!(
        first.file_len() as u64,
        std::fs::metadata(&path).unwrap().len()
    );
    let mut second = GgufWriter::new();
    second.metadata("general.name", "second").unwrap();
    let w = first.tensor("w").unwrap();
    second
        .tensor_bytes("w", w.dtype(), w.dims(), first.bytes(w))
        .unwrap();
    second.write_file(&path).unwrap();

    let second = Gguf::open(&path).unwrap();
    assert_eq!(
        second.metadata().get_str("general.name"),
        Ok(Some("second"))
    );
    let w = second.tensor("w").unwrap();
    second.bytes(w).release();
    assert_eq!(second.bytes(w).as_slice(), [7; 16]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_file_without_tensors_is_valid() {
    let mut writer = GgufWriter::new();
    let tokens: StringArray = ["<s>", "a"].into_iter().collect();
    writer.metadata("tokenizer.ggml.tokens", tokens).unwrap();
    let file = read(writer.to_bytes().unwrap());
    assert_eq!(file.tensors().len(), 0);
    let tokens = file
        .metadata()
        .require_str_array("tokenizer.ggml.tokens")
        .unwrap();
    assert!(tokens.iter().eq(["<s>", "a"]));
}

#[test]
fn version_2_reads_like_version_3() {
    let mut writer = GgufWriter::new();
    writer.metadata("k", 5u32).unwrap();
    let mut bytes = writer.to_bytes().unwrap();
    bytes[4..8].copy_from_slice(&2u32.to_le_bytes());
    let file = read(bytes);
    assert_eq!(file.version(), 2);
    assert_eq!(file.metadata().get_u32("k"), Ok(Some(5)));
}

#[test]
fn the_writer_refuses_what_the_reader_would_refuse() {
    assert!(matches!(
        GgufWriter::with_alignment(24),
        Err(FileWriteError::InvalidAlignment { alignment: 24 })
    ));
    let mut writer = GgufWriter::new();
    let long = "k".repeat(65_536);
    assert!(matches!(
        writer.metadata(long.clone(), 1u8),
        Err(FileWriteError::NameTooLong { name }) if name == long
    ));
    assert!(matches!(
        writer.metadata("general.alignment", 64u32),
        Err(FileWriteError::AlignmentKey)
    ));
    let deep = (0..4).fold(Array::U8(vec![1]), |inner, _| Array::Array(vec![inner]));
    assert!(matches!(
        writer.metadata("deep", deep),
        Err(FileWriteError::NestedTooDeep { key }) if key == "deep"
    ));
    for dims in [
        &[3, 33][..],
        &[0, 32],
        &[1, 1, 1, 1, 1, 1, 32],
        &[usize::MAX, 32],
    ] {
        assert!(matches!(
            writer.tensor("t", DType::Q4_0, dims, Vec::new()),
            Err(FileWriteError::InvalidDims { tensor, dtype: "Q4_0", .. }) if tensor == "t"
        ));
    }
    assert!(matches!(
        writer.tensor("t", DType::F32, &[2, 2], vec![0; 15]),
        Err(FileWriteError::WrongSize {
            expected: 16,
            actual: 15,
            ..
        })
    ));

    let mut twice = GgufWriter::new();
    twice
        .metadata("a", 1u8)
        .unwrap()
        .metadata("a", 2u8)
        .unwrap();
    assert!(matches!(
        twice.to_bytes(),
        Err(FileWriteError::DuplicateKey { key }) if key == "a"
    ));
    let mut twice = GgufWriter::new();
    twice.tensor("t", DType::F32, &[1], vec![0; 4]).unwrap();
    twice.tensor("t", DType::F32, &[1], vec![0; 4]).unwrap();
    assert!(matches!(
        twice.to_bytes(),
        Err(FileWriteError::DuplicateTensor { tensor }) if tensor == "t"
    ));
}
