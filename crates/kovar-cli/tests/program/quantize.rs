use std::fs;

use kovar::quantize::Mix;

use crate::{demo_file, kovar, text};

#[test]
fn every_type_makes_a_file_that_generates_text() {
    let dir = tempfile::tempdir().unwrap();
    let demo = demo_file();
    for name in Mix::all().map(Mix::name) {
        let out = dir.path().join(name);
        let report = kovar(&["quantize", text(&demo), text(&out), "-t", name, "--json"]).json();
        assert_eq!(report["type"], name);
        let inspected = kovar(&["inspect", text(&out), "--json"]).json();
        assert_eq!(inspected["tensor_bytes"], report["bytes_after"], "{name}");
        let args = [
            "generate",
            "-m",
            text(&out),
            "--temp",
            "0",
            "-n",
            "12",
            "-q",
            "Once upon a time",
        ];
        let story = kovar(&args).ok();
        assert!(story.starts_with("Once upon a time"), "{name}: {story}");
    }
}

#[test]
fn rules_choose_types_and_a_dry_run_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.gguf");
    let args = [
        "quantize",
        "llama-stories",
        text(&out),
        "--type",
        "q4_k_m",
        "--tensor",
        "blk.0.ffn_*=Q5_0",
        "--dry-run",
        "--json",
    ];
    let report = kovar(&args).json();
    let tensors = report["tensors"].as_array().unwrap();
    let to = |name: &str| &tensors.iter().find(|t| t["name"] == name).unwrap()["to"];
    assert_eq!(to("blk.0.ffn_up.weight"), "Q5_0");
    assert_eq!(to("blk.1.ffn_up.weight"), "Q4_K");
    assert_eq!(to("blk.0.attn_norm.weight"), "F32");
    assert_eq!(to("token_embd.weight"), "Q6_K");
    assert!(!out.exists());
}

#[test]
fn a_file_is_only_replaced_when_asked_and_never_the_source() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("in.gguf");
    let out = dir.path().join("out.gguf");
    fs::copy(demo_file(), &source).unwrap();
    fs::write(&out, b"precious").unwrap();
    let args = ["quantize", text(&source), text(&out), "--type", "Q4_0"];
    let message = kovar(&args).failed(1);
    assert!(message.contains("--force"), "{message}");
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    let run = kovar(&[&args[..], &["--force"]].concat());
    assert!(
        run.stderr.contains("lose precision twice"),
        "{}",
        run.stderr
    );
    run.ok();
    assert!(fs::read(&out).unwrap().starts_with(b"GGUF"));

    let also = dir.path().join(".").join("in.gguf");
    let args = [
        "quantize",
        text(&source),
        text(&also),
        "--type",
        "Q4_0",
        "-f",
    ];
    let message = kovar(&args).failed(2);
    assert!(message.contains("both IN and OUT"), "{message}");
    let nowhere = dir.path().join("no/out.gguf");
    let message = kovar(&["quantize", text(&source), text(&nowhere), "-q", "-t", "F16"]).failed(1);
    assert!(message.contains("cannot write"), "{message}");
}

#[test]
fn wrong_types_and_rules_are_wrong_usage() {
    for (args, named) in [
        (&["--type", "Q9"][..], "Q4_K_M"),
        (&["--type", "F16", "--tensor", "x"], "PATTERN=TYPE"),
        (&["--type", "F16", "--tensor", "nothing=F16"], "\"nothing\""),
        (
            &["--type", "F16", "--tensor", "*=Q4_K_M"],
            "not a type for weights",
        ),
        (&[], "--type"),
        (
            &["--type", "F16", "--split-max-tensors", "-1"],
            "must be at least 1",
        ),
        (
            &["--type", "F16", "--split-max-size", "-1"],
            "expected a number of bytes",
        ),
        (&["--type", "F16", "--threads", "-1"], "must be at least 1"),
    ] {
        let message = kovar(&[&["quantize", "llama-stories", "o"], args].concat()).failed(2);
        assert!(message.contains(named), "{args:?}: {message}");
    }
}

#[test]
fn a_model_cannot_be_written_to_stdout() {
    let error = kovar(&["quantize", "llama-stories", "-", "--type", "Q4_0"]).failed(2);
    assert!(error.contains("cannot be stdout"), "{error}");
}
