use crate::{demo_file, kovar, text};

#[test]
fn inspect_shows_metadata_tensors_and_sizes() {
    let file = demo_file();
    let text = kovar(&["inspect", text(&file)]).ok();
    assert!(text.contains("general.architecture"), "{text}");
    assert!(text.contains("\"llama\""), "{text}");
    assert!(text.contains("token_embd.weight"), "{text}");
    assert!(text.contains("[2048, 256]"), "{text}");
    assert!(text.contains("Q8_0"), "{text}");
    assert!(text.contains("6.03 M parameters"), "{text}");
    assert!(text.lines().all(|line| line.len() < 400), "{text}");
}

#[test]
fn inspect_full_takes_values_of_any_length() {
    let text = kovar(&["inspect", "llama-stories", "--full"]).ok();
    assert!(text.contains("general.architecture"), "{text}");
    assert!(text.contains("token_embd.weight"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.gguf");
    let mut writer = kovar::GgufWriter::new();
    let long = "x".repeat(100_000);
    writer.metadata("general.name", long.clone()).unwrap();
    writer.metadata("general.short", "y".to_owned()).unwrap();
    writer.write_file(&path).unwrap();
    let file = path.to_str().unwrap();
    let text = kovar(&["inspect", file, "--full"]).ok();
    assert!(text.contains(&long));
    assert!(text.contains("general.short"));
}

#[test]
fn inspect_json_adds_up() {
    let file = demo_file();
    let report = kovar(&["inspect", text(&file), "--json"]).json();
    let size = std::fs::metadata(&file).unwrap().len();
    assert_eq!(report["file_bytes"], size);
    assert_eq!(report["metadata"]["llama.block_count"], 8);
    assert_eq!(report["metadata"]["tokenizer.ggml.tokens"]["len"], 2048);
    let bytes = |list: &str| -> u64 {
        let items = report[list].as_array().unwrap().iter();
        items.map(|item| item["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(bytes("tensors"), bytes("dtypes"));
    assert_eq!(report["tensor_bytes"], bytes("tensors"));
    assert!(bytes("tensors") < size);
}

#[test]
fn inspect_full_shows_every_token() {
    let report = kovar(&["inspect", "llama-stories", "--json", "--full"]).json();
    let tokens = report["metadata"]["tokenizer.ggml.tokens"]
        .as_array()
        .unwrap();
    assert_eq!(tokens.len(), 2048);
}
