//! Split GGUF files: written, read and damaged.

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use common::message;
use kovar_core::DType;
use kovar_formats::gguf::{Gguf, GgufWriter, Value};
use kovar_formats::quantize::{Mix, QuantizeError, SplitLimit, plan};
use kovar_formats::{ModelFile, ModelFormat};

const TENSORS: usize = 7;

/// A model of seven tensors of 4 KiB, split into shards within `limit`.
fn write(path: &Path, limit: SplitLimit) -> Vec<PathBuf> {
    let file = model();
    let plan = plan(&file, Mix::from_name("F32").unwrap(), &[]).unwrap();
    plan.write_shards(path, limit, 1, &mut |_| ControlFlow::Continue(()))
        .unwrap()
}

fn model() -> ModelFile {
    let mut writer = GgufWriter::new();
    writer.metadata("general.architecture", "llama").unwrap();
    writer.metadata("llama.block_count", 7u32).unwrap();
    for i in 0..TENSORS {
        let data = vec![i as u8; 4096];
        let name = format!("blk.{i}.attn_q.weight");
        writer.tensor(name, DType::F32, &[32, 32], data).unwrap();
    }
    let bytes = writer.to_bytes().unwrap();
    Gguf::from_bytes(kovar_core::HostBytes::new(std::sync::Arc::new(bytes)))
        .unwrap()
        .into()
}

fn by_tensors(most: usize) -> SplitLimit {
    SplitLimit {
        max_tensors: Some(most),
        max_bytes: None,
    }
}

fn names(paths: &[PathBuf]) -> Vec<&str> {
    paths
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect()
}

#[test]
fn a_split_model_is_read_from_any_shard_as_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let shards = write(&folder.path().join("m.gguf"), by_tensors(3));
    assert_eq!(
        names(&shards),
        [
            "m-00001-of-00003.gguf",
            "m-00002-of-00003.gguf",
            "m-00003-of-00003.gguf"
        ]
    );
    let whole = model();
    for shard in &shards {
        let read = ModelFile::open(shard).unwrap();
        assert_eq!(
            read.format(),
            ModelFormat::Gguf {
                version: 3,
                alignment: 32,
                shards: 3
            }
        );
        let keys: Vec<&str> = read.metadata().iter().map(|(key, _)| key).collect();
        assert!(keys.contains(&"llama.block_count"));
        assert!(!keys.iter().any(|key| key.starts_with("split.")));
        let lens = shards
            .iter()
            .map(|shard| fs::metadata(shard).unwrap().len());
        assert_eq!(read.file_len(), lens.sum::<u64>());
        assert_eq!(read.tensors().len(), TENSORS);
        for (a, b) in read.tensors().zip(whole.tensors()) {
            assert_eq!((a.name(), a.dims()), (b.name(), b.dims()));
            let (a, b) = (a.bytes().unwrap(), b.bytes().unwrap());
            assert_eq!(a.as_slice(), b.as_slice());
        }
    }
    // The keys of `gguf-split`.
    let second = Gguf::open(&shards[1]).unwrap();
    let metadata: Vec<(&str, &Value)> = second.metadata().iter().collect();
    assert_eq!(
        metadata,
        [
            ("split.no", &Value::U16(1)),
            ("split.count", &Value::U16(3)),
            ("split.tensors.count", &Value::I32(7))
        ]
    );
}

#[test]
fn shards_hold_what_the_limits_allow_and_at_least_one_tensor() {
    let counts = |max_tensors: Option<usize>, max_bytes: Option<u64>| {
        let folder = tempfile::tempdir().unwrap();
        let limit = SplitLimit {
            max_tensors,
            max_bytes,
        };
        let shards = write(&folder.path().join("m"), limit);
        let count = |path: &PathBuf| Gguf::open(path).unwrap().tensors().len();
        shards.iter().map(count).collect::<Vec<_>>()
    };
    assert_eq!(counts(Some(4), None), [4, 3]);
    assert_eq!(counts(None, Some(2 * 4096)), [2, 2, 2, 1]);
    assert_eq!(counts(None, Some(2 * 4096 - 1)), [1; 7]);
    assert_eq!(counts(None, Some(1)), [1; 7]);
    assert_eq!(counts(Some(3), Some(2 * 4096)), [2, 2, 2, 1]);
    assert_eq!(counts(None, Some(1 << 40)), [7]);
}

#[test]
fn a_stopped_split_leaves_no_shard() {
    let folder = tempfile::tempdir().unwrap();
    let file = model();
    let plan = plan(&file, Mix::from_name("F32").unwrap(), &[]).unwrap();
    let mut pieces = 0;
    let stopped = plan.write_shards(folder.path().join("m.gguf"), by_tensors(2), 1, &mut |_| {
        pieces += 1;
        match pieces {
            5 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert!(matches!(stopped, Err(QuantizeError::Stopped)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Writes a shard with these keys and the tensors of these names.
fn shard(path: &Path, keys: &[(&str, Value)], tensors: &[&str]) {
    let mut writer = GgufWriter::new();
    for (key, value) in keys {
        writer.metadata(*key, value.clone()).unwrap();
    }
    for name in tensors {
        let data = vec![0; 4];
        writer.tensor(*name, DType::F32, &[1], data).unwrap();
    }
    writer.write_file(path).unwrap();
}

fn split_keys(no: u32, count: u32, tensors: u32) -> Vec<(&'static str, Value)> {
    vec![
        ("general.architecture", "llama".into()),
        ("split.no", no.into()),
        ("split.count", count.into()),
        ("split.tensors.count", tensors.into()),
    ]
}

/// The error of opening `m-00001-of-00002.gguf` and the given second shard.
fn error(second: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("m-00001-of-00002.gguf");
    shard(&first, &split_keys(0, 2, 2), &["a"]);
    second(&folder.path().join("m-00002-of-00002.gguf"));
    match ModelFile::open(&first) {
        Ok(_) => "no error".to_owned(),
        Err(error) => message(&error, folder.path()),
    }
}

#[test]
fn every_split_that_is_not_one_model_gives_an_error_that_names_the_shard() {
    let second = "m-00002-of-00002.gguf";
    let with = |keys: Vec<(&'static str, Value)>, tensors: &'static [&'static str]| {
        error(move |path| shard(path, &keys, tensors))
    };
    assert_eq!(with(split_keys(1, 2, 2), &["b"]), "no error");
    let found = error(|_| {});
    assert!(
        found.starts_with(&format!("shard 2 of 2, {second}: cannot open {second}: ")),
        "{found}"
    );
    let found = error(|path| fs::write(path, b"GGUF\x03\0\0\0").unwrap());
    assert!(
        found.starts_with(&format!(
            "shard 2 of 2, {second}: the tensor count at byte 8"
        )),
        "{found}"
    );
    // A shard with the number of another one.
    assert_eq!(
        with(split_keys(0, 2, 2), &["b"]),
        format!("{second}: `split.no` is 0, expected 1")
    );
    assert_eq!(
        with(split_keys(7, 2, 2), &["b"]),
        format!("{second}: `split.no` is 7, expected 1")
    );
    assert_eq!(
        with(split_keys(1, 3, 2), &["b"]),
        format!("{second}: `split.count` is 3, expected 2")
    );
    assert_eq!(
        with(split_keys(1, 2, 9), &["b"]),
        format!("{second}: `split.tensors.count` is 9, expected 2")
    );
    assert_eq!(
        with(Vec::new(), &["b"]),
        format!("{second}: `split.count` is 1, expected 2")
    );
    assert_eq!(
        with(vec![("split.count", 2u32.into())], &["b"]),
        format!("{second}: metadata `split.no` is missing")
    );
    assert_eq!(
        with(
            vec![("split.count", 2u32.into()), ("split.no", "1".into())],
            &["b"]
        ),
        format!("{second}: metadata `split.no` is string, expected u32")
    );
    let mut other = split_keys(1, 2, 2);
    other[0].1 = "qwen2".into();
    assert_eq!(
        with(other, &["b"]),
        format!("{second}: `general.architecture` is \"qwen2\", but \"llama\" in the first shard")
    );
    assert_eq!(
        with(split_keys(1, 2, 2), &["a"]),
        format!("tensor \"a\" is in m-00001-of-00002.gguf and in {second}")
    );
    assert_eq!(
        with(split_keys(1, 2, 2), &["b", "c"]),
        "the 2 shards of m-00001-of-00002.gguf have 3 tensors, expected 2"
    );
    assert_eq!(
        with(split_keys(1, 2, 2), &[]),
        "the 2 shards of m-00001-of-00002.gguf have 1 tensors, expected 2"
    );
}

#[test]
fn a_shard_under_another_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("renamed.gguf");
    shard(&path, &split_keys(0, 2, 2), &["a"]);
    let error = ModelFile::open(&path).unwrap_err();
    assert_eq!(
        message(&error, folder.path()),
        "renamed.gguf says that it is shard 1 of 2, \
         but its name does not end in \"-00001-of-00002.gguf\""
    );
    let absurd = folder.path().join("m-4294967296-of-4294967295.gguf");
    shard(&absurd, &split_keys(u32::MAX, u32::MAX, u32::MAX), &["a"]);
    let error = ModelFile::open(&absurd).unwrap_err();
    let found = message(&error, folder.path());
    assert!(found.contains("its name does not end in"), "{found}");
}

#[cfg(unix)]
#[test]
fn names_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(OsStr::from_bytes(b"m\xff.gguf"));
    let shards = write(&path, by_tensors(5));
    let name = shards[1].file_name().unwrap().as_bytes();
    assert_eq!(name, b"m\xff-00002-of-00002.gguf");
    assert_eq!(
        ModelFile::open(&shards[0]).unwrap().tensors().len(),
        TENSORS
    );
}
