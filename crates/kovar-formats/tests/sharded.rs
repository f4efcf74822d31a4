//! safetensors over several files, whole and damaged.

mod common;

use common::{Tensor, config, folder, message, safetensors, tensors};
use kovar_formats::ModelFile;
use serde_json::{Map, Value, json};

const INDEX: &str = "model.safetensors.index.json";
const FIRST: &str = "model-00001-of-00002.safetensors";
const SECOND: &str = "model-00002-of-00002.safetensors";

/// Opens a folder with this index and these shards, given by name and contents.
fn open(index: &Value, shards: &[(&str, Vec<u8>)]) -> Result<ModelFile, String> {
    let (config, index) = (config().to_string(), index.to_string());
    let mut files: Vec<(&str, &[u8])> = vec![
        ("config.json", config.as_bytes()),
        (INDEX, index.as_bytes()),
    ];
    files.extend(shards.iter().map(|(name, bytes)| (*name, &**bytes)));
    let folder = folder(&files);
    ModelFile::open(folder.path()).map_err(|error| message(&error, folder.path()))
}

fn halves() -> (Vec<Tensor>, Vec<Tensor>) {
    let mut first = tensors();
    let second = first.split_off(4);
    (first, second)
}

/// The index of both halves. The total size is wrong, and no reader uses it.
fn index() -> Value {
    let (first, second) = halves();
    let entries = |tensors: Vec<Tensor>, file: &'static str| {
        tensors
            .into_iter()
            .map(move |tensor| (tensor.name, Value::from(file)))
    };
    let map: Map<String, Value> = entries(first, FIRST)
        .chain(entries(second, SECOND))
        .collect();
    json!({"metadata": {"total_size": 1}, "weight_map": map})
}

fn shards() -> Vec<(&'static str, Vec<u8>)> {
    let (first, second) = halves();
    vec![(FIRST, safetensors(&first)), (SECOND, safetensors(&second))]
}

#[test]
fn a_sharded_model_equals_one_in_a_single_file() {
    let sharded = open(&index(), &shards()).unwrap();
    let (config, whole) = (config().to_string(), safetensors(&tensors()));
    let files: [(&str, &[u8]); 2] = [
        ("config.json", config.as_bytes()),
        ("model.safetensors", &whole),
    ];
    let folder = folder(&files);
    let single = ModelFile::open(folder.path()).unwrap();
    assert_eq!(sharded.tensors().len(), single.tensors().len());
    for (a, b) in sharded.tensors().zip(single.tensors()) {
        assert_eq!((a.name(), a.dims()), (b.name(), b.dims()));
        let (a, b) = (a.bytes().unwrap(), b.bytes().unwrap());
        assert_eq!(a.as_slice(), b.as_slice());
    }
}

#[test]
fn shards_outside_the_folder_are_refused() {
    let names = [
        "../x.safetensors",
        "/etc/passwd",
        "sub/x.safetensors",
        "./x.safetensors",
        "..",
        ".",
        "",
        "sub\\x.safetensors",
        "c:x.safetensors",
        "x\0.safetensors",
        INDEX,
    ];
    for name in names {
        let mut index = index();
        index["weight_map"]["model.norm.weight"] = json!(name);
        assert_eq!(
            open(&index, &shards()).unwrap_err(),
            format!(
                "{INDEX} puts tensor \"model.norm.weight\" into {name:?}, \
                 which is not another file in its folder"
            )
        );
    }
}

#[test]
fn shards_that_do_not_make_a_whole_are_named() {
    let (first, second) = halves();
    let moved = "lm_head.weight";
    let lent = first.iter().find(|tensor| tensor.name == moved).unwrap();
    let twice = [&second[..], std::slice::from_ref(lent)].concat();
    let without = |tensors: &[Tensor]| {
        let kept = tensors.iter().filter(|tensor| tensor.name != moved);
        safetensors(&kept.cloned().collect::<Vec<_>>())
    };
    let cases = [
        (
            vec![(FIRST, safetensors(&first))],
            format!("{SECOND}: cannot open {SECOND}"),
        ),
        (
            vec![(FIRST, without(&first)), (SECOND, safetensors(&second))],
            format!("{FIRST} lacks tensor {moved:?}, which the index puts there"),
        ),
        (
            vec![(FIRST, safetensors(&first)), (SECOND, safetensors(&twice))],
            format!("tensor {moved:?} is in {FIRST} and in {SECOND}"),
        ),
        (
            vec![
                (FIRST, safetensors(&first)),
                (SECOND, safetensors(&second)[..60].to_vec()),
            ],
            format!("{SECOND}: the header length at byte 0 is"),
        ),
        (
            vec![(FIRST, safetensors(&first)), (SECOND, Vec::new())],
            format!("{SECOND}: not a safetensors file"),
        ),
    ];
    for (shards, expected) in cases {
        let found = open(&index(), &shards).unwrap_err();
        assert!(found.starts_with(&expected), "{found}\nexpected {expected}");
    }
}

#[test]
fn damaged_indices_are_named() {
    let deep = (0..200).fold(json!(0), |inner, _| json!([inner]));
    for (index, expected) in [
        (
            json!({}),
            format!("{INDEX} is not valid: missing field `weight_map`"),
        ),
        (json!([]), format!("{INDEX} is not valid: ")),
        (
            json!({"weight_map": {}}),
            format!("{INDEX} names no tensors"),
        ),
        (
            json!({"weight_map": {"a": 1}}),
            format!("{INDEX} is not valid: invalid type: integer `1`"),
        ),
        (
            json!({"weight_map": {"a": deep}}),
            format!("{INDEX} is not valid: invalid type: sequence"),
        ),
    ] {
        let found = open(&index, &shards()).unwrap_err();
        assert!(found.starts_with(&expected), "{found}\nexpected {expected}");
    }
}
