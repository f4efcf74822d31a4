use std::fs;

use crate::{kovar, text};

#[test]
fn a_synthetic_file_runs_and_its_logits_are_finite() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("smol.gguf");
    let args = [
        "synth",
        "--arch",
        "llama",
        "--shape",
        "smollm2-135m",
        "--type",
        "Q4_K_M",
        "-o",
        text(&out),
    ];
    kovar(&args).ok();
    let report = kovar(&["inspect", text(&out), "--json"]).json();
    assert_eq!(report["parameters"], 134_515_008);
    assert_eq!(report["metadata"]["tokenizer.ggml.model"], "gpt2");
    assert_eq!(report["metadata"]["general.file_type"], 15);
    let args = [
        "logits",
        "-m",
        text(&out),
        "--ids",
        "1,2,3",
        "--last",
        "--top",
        "3",
        "--json",
    ];
    let logits = kovar(&args).json();
    for top in logits["positions"][0]["top"].as_array().unwrap() {
        let logit = top["logit"].as_f64().unwrap();
        assert!(logit.abs() < 100.0, "{logit}");
    }
    let ids = kovar(&["tokenize", "-m", text(&out), "a b a\n"]).ok();
    assert_eq!(ids, "65 95 66 97 96\n");
}

#[test]
fn one_seed_gives_one_file_that_is_only_replaced_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let args = [
            "synth",
            "--shape",
            "SmolLM2-135M",
            "-t",
            "Q4_0",
            "-o",
            text(&out),
        ];
        kovar(&[&args[..], more].concat())
    };
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    make("a", &[]).ok();
    make("b", &["--seed", "0"]).ok();
    assert!(read("a") == read("b"));
    let message = make("b", &["--seed", "1"]).failed(1);
    assert!(message.contains("--force"), "{message}");
    make("b", &["--seed", "1", "--force"]).ok();
    assert!(read("a") != read("b"));
    let message = make("c", &["--arch", "qwen3"]).failed(2);
    assert!(message.contains("SmolLM2-135M is llama"), "{message}");
    let message = kovar(&["synth", "--shape", "x", "-t", "F16", "-o", "y"]).failed(2);
    assert!(message.contains("Qwen3-0.6B"), "{message}");
}
