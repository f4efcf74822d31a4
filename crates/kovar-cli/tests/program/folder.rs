//! Models from Hugging Face folders and split files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{kovar, repository_file, text};

/// A small model with random weights and a tokenizer of printable ASCII, in the folder `name` of a
/// new folder.
fn model_folder(name: impl AsRef<Path>) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(name);
    fs::create_dir(&folder).unwrap();
    let source = repository_file("crates/kovar-text/tests/data/llama-tiny");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(source.join(file), folder.join(file)).unwrap();
    }
    // A space is written as U+0120.
    let characters = ('!'..='~').chain(['\u{120}']);
    let vocab: Map<String, Value> = characters
        .zip(0..)
        .map(|(character, id)| (character.to_string(), id.into()))
        .collect();
    let tokenizer = json!({
        "added_tokens": [],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    (dir, folder)
}

fn story(model: &Path) -> String {
    let options = ["-n", "8", "--temp", "0", "-q", "ab c"];
    kovar(&[&["generate", "-m", text(model)], &options[..]].concat()).ok()
}

#[test]
fn every_command_takes_a_folder() {
    let (_dir, folder) = model_folder("model");
    let path = text(&folder);
    assert!(story(&folder).starts_with("ab c"));
    let report = kovar(&["tokenize", "-m", path, "ab c", "--json"]).json();
    assert_eq!(report["ids"], json!([64, 65, 94, 66]));
    let report = kovar(&["inspect", path, "--json"]).json();
    assert_eq!(report["format"], "Hugging Face folder");
    assert_eq!(report["metadata"]["general.name"], "model");
    assert_eq!(report["tensors"][0]["name"], "token_embd.weight");
    let report = kovar(&["logits", "-m", path, "--ids", "1,2", "--json"]).json();
    assert_eq!(report["vocab"], 256);
    let bench = ["-p", "2", "-n", "1", "-r", "1", "--json"];
    kovar(&[&["bench", "-m", path], &bench[..]].concat()).json();
    let chat = ["chat", "-m", path, "-n", "2", "--temp", "0", "ab"];
    kovar(&chat).ok();
}

#[test]
fn no_file_of_the_source_is_overwritten_by_its_conversion() {
    let (dir, folder) = model_folder("model");
    let whole = dir.path().join("whole.gguf");
    let quantize = ["quantize", "-q", "-t", "F16", "--force"];
    let run = |from: &Path, to: &Path, more: &[&str]| {
        kovar(&[&quantize[..], &[text(from), text(to)], more].concat())
    };
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        let out = folder.join(".").join(file);
        let before = fs::read(&out).unwrap();
        let message = run(&folder, &out, &[]).failed(2);
        assert!(message.contains("is a file of IN"), "{file}: {message}");
        assert_eq!(fs::read(&out).unwrap(), before);
    }
    run(&folder, &folder.join("model.gguf"), &[]).ok();
    run(&folder, &folder.join("model.gguf"), &[]).ok();

    let split = ["--split-max-tensors", "8"];
    run(&folder, &whole, &split).ok();
    let parts = |name: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir.path()).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| text(path.file_name().unwrap().as_ref()).starts_with(name));
        paths.sort();
        paths
    };
    let parts = parts("whole-");
    assert!(parts.len() > 1);
    let message = run(&parts[0], &parts[1], &[]).failed(2);
    assert!(message.contains("is a file of IN"), "{message}");
    let message = run(&parts[0], &whole, &split).failed(2);
    assert!(message.contains("both IN and OUT"), "{message}");
}

#[test]
fn a_folder_without_a_tokenizer_says_so() {
    let (_dir, folder) = model_folder("model");
    fs::remove_file(folder.join("tokenizer.json")).unwrap();
    for command in [&["generate", "-m"][..], &["tokenize", "-m"]] {
        let message = kovar(&[command, &[text(&folder), "ab"]].concat()).failed(1);
        assert!(message.contains("there is no tokenizer"), "{message}");
        assert!(message.contains("tokenizer.json"), "{message}");
    }
}

#[test]
fn a_folder_becomes_a_file_and_a_split_file_that_write_the_same() {
    let (dir, folder) = model_folder("model");
    let expected = story(&folder);
    let out = dir.path().join("out.gguf");
    let quantize = |more: &[&str]| {
        let args = ["quantize", text(&folder), text(&out), "-t", "F32"];
        kovar(&[&args[..], more].concat())
    };
    quantize(&[]).ok();
    assert_eq!(story(&out), expected);

    let split = ["--split-max-tensors", "8", "--json"];
    let report = quantize(&split).json();
    let parts: Vec<PathBuf> = (1..=3)
        .map(|no| dir.path().join(format!("out-{no:05}-of-00003.gguf")))
        .collect();
    let outputs: Vec<&str> = parts.iter().map(|part| text(part)).collect();
    assert_eq!(report["outputs"], json!(outputs));
    assert_eq!(story(&parts[0]), expected);
    let message = quantize(&split).failed(1);
    assert!(message.contains("out-00001-of-00003.gguf"), "{message}");
    assert!(message.contains("--force"), "{message}");
    let sizes = ["--split-max-size", "200k", "--force", "-q"];
    quantize(&sizes).ok();
    // Split files are read as one model, so they can be joined.
    let whole = dir.path().join("whole.gguf");
    kovar(&["quantize", text(&parts[0]), text(&whole), "-t", "F32"]).ok();
    assert_eq!(fs::read(&whole).unwrap(), fs::read(&out).unwrap());

    fs::remove_file(&parts[1]).unwrap();
    let message = kovar(&["inspect", text(&parts[0])]).failed(1);
    assert!(message.contains("shard 2 of 3"), "{message}");
    assert!(message.contains("No such file"), "{message}");
}

#[test]
fn a_folder_without_a_valid_model_is_not_converted() {
    let (dir, folder) = model_folder("model");
    let config = folder.join("config.json");
    let mut changed: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    changed["num_hidden_layers"] = json!(3);
    fs::write(&config, changed.to_string()).unwrap();
    let out = dir.path().join("out.gguf");
    let message = kovar(&["quantize", text(&folder), text(&out), "-t", "F16"]).failed(1);
    assert!(
        message.contains("`blk.2.attn_norm.weight` is missing"),
        "{message}"
    );
    assert!(!out.exists());
    changed["hidden_act"] = json!("gelu");
    fs::write(&config, changed.to_string()).unwrap();
    let message = kovar(&["generate", "-m", text(&folder), "a"]).failed(1);
    assert!(message.contains("`hidden_act` is \"gelu\""), "{message}");
}

#[cfg(unix)]
#[test]
fn paths_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let name = OsStr::from_bytes(b"m\xffdel");
    let (dir, folder) = model_folder(name);
    let out = dir.path().join(OsStr::from_bytes(b"\xfe.gguf"));
    let run = |args: &[&OsStr]| -> crate::Run {
        let mut command = crate::command(&[]);
        command.args(args).output().unwrap().into()
    };
    let arg = OsStr::new;
    run(&[
        arg("quantize"),
        folder.as_os_str(),
        out.as_os_str(),
        arg("-tF16"),
    ])
    .ok();
    for model in [&folder, &out] {
        let options = ["-n", "2", "-q", "ab"].map(arg);
        let story = run(&[
            &[arg("generate"), arg("-m"), model.as_os_str()],
            &options[..],
        ]
        .concat());
        assert!(story.ok().starts_with("ab"));
        run(&[arg("inspect"), model.as_os_str()]).ok();
    }
    let missing = dir.path().join(OsStr::from_bytes(b"\xff.gguf"));
    run(&[arg("inspect"), missing.as_os_str()]).failed(1);
}
