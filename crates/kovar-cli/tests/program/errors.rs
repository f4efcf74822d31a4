use std::fs;

use crate::{command, demo_file, kovar, kovar_with_stdin, repository_file, text};

const STORIES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../kovar-text/tests/data/stories.txt"
);

/// Every command that opens a model, with `file` as its model.
fn commands(file: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["inspect", file],
        vec!["tokenize", "-m", file, "a"],
        vec!["logits", "-m", file, "--ids", "1"],
        vec!["generate", "-m", file, "a"],
        vec!["chat", "-m", file, "a"],
        vec!["bench", "-m", file],
        vec!["perplexity", "-m", file, "-f", STORIES],
        vec!["quantize", file, "out.gguf", "--type", "F16"],
    ]
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let demo = fs::read(demo_file()).unwrap();
    fs::write(at("empty"), b"").unwrap();
    fs::write(at("text"), b"this is not a model file, it is text").unwrap();
    fs::write(at("cut"), &demo[..1000]).unwrap();
    fs::write(at("shortened"), &demo[..demo.len() - 1]).unwrap();
    fs::create_dir(at("directory")).unwrap();
    for (name, reason) in [
        ("missing", "No such file"),
        ("empty", "is empty"),
        ("text", "not a GGUF file"),
        ("cut", "truncated?"),
        ("shortened", "truncated?"),
        ("directory", "has no config.json"),
    ] {
        let path = at(name);
        for command in commands(text(&path)) {
            let message = kovar(&command).failed(1);
            assert!(message.contains(text(&path)), "{command:?}: {message}");
            assert!(message.contains(reason), "{command:?}: {message}");
        }
    }
}

#[test]
fn a_file_without_a_model_or_a_tokenizer_says_so() {
    let vocabulary = repository_file("crates/kovar-text/tests/data/tok-bpe.gguf");
    let message = kovar(&["generate", "-m", text(&vocabulary), "a"]).failed(1);
    assert!(message.contains("cannot load"), "{message}");
    let headless = repository_file("crates/kovar-text/tests/data/llama-tiny");
    let message = kovar(&["generate", "-m", text(&headless), "a"]).failed(1);
    assert!(message.contains("tokenizer.ggml."), "{message}");
    let message = kovar(&["tokenize", "-m", text(&headless), "a"]).failed(1);
    assert!(message.contains("tokenizer.ggml."), "{message}");
}

#[test]
fn wrong_usage_ends_with_code_2_and_names_the_option() {
    for (args, named) in [
        (&["generate", "--temp", "-1", "a"][..], "--temp"),
        (&["generate", "--temp", "nan", "a"], "--temp"),
        (&["generate", "--temp", "warm", "a"], "--temp"),
        (&["generate", "--top-p", "1.5", "a"], "--top-p"),
        (&["generate", "--min-p", "-0.1", "a"], "--min-p"),
        (
            &["generate", "--repeat-penalty", "0", "a"],
            "--repeat-penalty",
        ),
        (
            &["generate", "--frequency-penalty", "inf", "a"],
            "--frequency-penalty",
        ),
        (&["generate", "--stop", "", "a"], "--stop"),
        (&["generate", "-n", "-2", "a"], "--max-tokens"),
        (&["generate", "--ctx", "0", "a"], "--ctx"),
        (&["generate", "--cache-type", "q4_k", "a"], "BF16, Q8_0"),
        (
            &["generate", "--min-elements", "-1", "a"],
            "must be at least 0",
        ),
        (
            &["generate", "--min-matmul-ops", "-1", "a"],
            "must be at least 0",
        ),
        (
            &["generate", "--budget", "cpu=-1", "a"],
            "expected a number of bytes",
        ),
        (&["generate", "--threads", "0", "a"], "--threads"),
        (&["generate", "--simd", "sse9", "a"], "--simd"),
        (&["generate", "--device", "tpu", "a"], "known: cpu"),
        (&["generate", "--no-such-flag"], "--no-such-flag"),
        (&["logits", "--ids", "1,x"], "--ids"),
        (&["logits", "--ids", ""], "--ids"),
        (&["logits"], "--ids"),
        (&["bench", "-p", "0", "-n", "0"], "nothing to measure"),
        (&["bench", "-r", "0"], "--repeats"),
        (&["test-ops", "--op", "frobnicate"], "known: "),
        (&["test-ops", "--mode", "guess"], "--mode"),
        (&["frobnicate"], "frobnicate"),
        (&["generate", "--threads", "-1", "a"], "must be at least 1"),
        (&["generate", "-t", "100000", "a"], "100000 threads"),
        (&["devices", "-t", "100000"], "100000 threads"),
        (&["generate", "-n", "-5", "a"], "must be at least -1"),
        (&["generate", "--top-k", "-3", "a"], "must be at least 0"),
        (
            &["generate", "--repeat-last-n", "-1", "a"],
            "--repeat-last-n",
        ),
        (&["generate", "-s", "-2", "a"], "-1 for a new seed"),
        (&["generate", "--stop", r"\d", "a"], "--stop"),
        (&["logits", "--ids", "-1"], "`-1` is not a token id"),
        (&["logits", "--ids", "1", "--top", "0"], "--top"),
        (&["bench", "-p", "-1"], "--n-prompt"),
        (&["generate", "--typical", "0", "a"], "--typical"),
        (&["generate", "--top-n-sigma", "nan", "a"], "--top-n-sigma"),
        (
            &["generate", "--xtc-threshold", "2", "a"],
            "--xtc-threshold",
        ),
        (&["generate", "--dry-base", "0.5", "a"], "--dry-base"),
        (&["generate", "--mirostat", "3", "a"], "--mirostat"),
        (&["generate", "--mirostat-ent", "0", "a"], "--mirostat-ent"),
        (&["generate", "--logit-bias", "x", "a"], "--logit-bias"),
        (&["generate", "-l", "99999+1", "a"], "no token 99999"),
        (&["generate", "-l", "\"\"+1", "a"], "the text is empty"),
        (&["generate", "--json-schema", "{", "a"], "--json-schema"),
        (&["generate", "--grammar", "", "a"], "the grammar is empty"),
        (
            &["generate", "--regex", "a", "--grammar", "b", "a"],
            "--grammar",
        ),
        (&["perplexity"], "--file"),
        (&["perplexity", "-f", STORIES, "--ctx", "2"], "--ctx"),
    ] {
        let message = kovar(args).failed(2);
        assert!(message.contains(named), "{args:?}: {message}");
    }
    #[cfg(target_arch = "x86_64")]
    {
        let message = kovar(&["generate", "--simd", "neon", "a"]).failed(2);
        assert!(message.contains("neon"), "{message}");
    }
}

#[test]
fn an_unsatisfiable_constraint_is_an_error_before_any_text() {
    for (args, named) in [
        (["generate", "--regex", "(", "a"], "regular expression"),
        (
            ["generate", "--json-schema", r#"{"type": "x"}"#, "a"],
            "JSON schema",
        ),
        (
            ["generate", "--json-schema", "@missing.json", "a"],
            "missing.json",
        ),
        (["generate", "--grammar", "start: x", "a"], "grammar"),
    ] {
        let message = kovar(&args).failed(1);
        assert!(message.contains(named), "{args:?}: {message}");
    }
}

#[test]
fn a_text_that_fails_midway_ends_its_line() {
    let fails = ["generate", "--regex", "ab", "-l", "\"b\"-inf", "Once"];
    let run = kovar(&fails);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "Oncea\n"));
    assert!(
        run.stderr.contains("no token can be sampled"),
        "{}",
        run.stderr
    );
}

#[test]
fn names_in_a_file_cannot_control_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("escape.gguf");
    let mut writer = kovar::GgufWriter::new();
    writer
        .metadata("general.architecture", "x\x1b]0;owned\x07")
        .unwrap();
    writer.write_file(&path).unwrap();
    let message = kovar(&["generate", "-m", text(&path), "a"]).failed(1);
    assert!(message.contains("u{1b}]0;owned"), "{message}");
    assert!(!message.contains(['\x1b', '\x07']), "{message:?}");
}

#[test]
fn an_empty_text_is_bad_data_and_not_wrong_usage() {
    for (args, named) in [
        (["chat", " "], "the message is empty"),
        (["generate", ""], "the prompt is empty"),
    ] {
        let message = kovar(&args).failed(1);
        assert!(message.contains(named), "{args:?}: {message}");
    }
}

#[test]
fn the_error_of_an_option_before_its_command_says_where_it_belongs() {
    let message = kovar(&["-m", "model.gguf", "generate"]).failed(2);
    assert!(message.contains("follow the command"), "{message}");
    let message = kovar(&["-Z", "generate"]).failed(2);
    assert!(!message.contains("follow the command"), "{message}");
}

#[test]
fn an_invalid_log_variable_is_warned_about() {
    let output = command(&["generate", "-n", "1"])
        .env("KOVAR_LOG", "!!!")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("warning: KOVAR_LOG"), "{stderr}");
}

#[test]
fn more_threads_than_cores_are_warned_about() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let warns = |threads: usize| {
        let run = kovar(&["devices", "--rates", "fixed", "-t", &threads.to_string()]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stderr.contains("warning: ")
    };
    assert!(warns(cores + 1));
    assert!(!warns(cores));
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    for args in [&["generate", "-"], &["tokenize", "-"], &["chat", "-"]] {
        let message = kovar_with_stdin(args, b"ab\xff").failed(1);
        assert!(message.contains("UTF-8 (at byte 2)"), "{message}");
    }
}

#[test]
fn a_prompt_beyond_the_context_is_an_error_before_anything_is_written() {
    let prompt = "Once upon a time. ".repeat(200);
    let message = kovar(&["generate", &prompt]).failed(1);
    assert!(message.contains("512"), "{message}");
    let message = kovar(&["generate", "--ctx", "3", "Once upon a time"]).failed(1);
    assert!(message.contains("holds 3 tokens"), "{message}");
    assert!(message.contains("--ctx N"), "{message}");
    assert!(message.contains("trained for 512 tokens"), "{message}");
    assert!(!message.contains("/reset"), "{message}");
}

#[test]
fn help_offers_only_what_the_command_takes() {
    let help = |command: &str| kovar(&[command, "--help"]).ok();
    let generate = help("generate");
    assert!(generate.contains("--place") && generate.contains("--device"));
    let test_ops = help("test-ops");
    assert!(test_ops.contains("--device <NAME>"), "{test_ops}");
    assert!(!test_ops.contains("--place"), "{test_ops}");
    assert!(!test_ops.contains("--budget"), "{test_ops}");
    let diff = help("diff");
    assert!(!diff.contains("--device <NAME>"), "{diff}");
    let message = kovar(&["diff", "--a", "cpu", "--b", "cpu", "--device", "cpu"]).failed(2);
    assert!(message.contains("--a and --b select"), "{message}");
}

#[test]
fn help_and_version_go_to_stdout() {
    let help = kovar(&["--help"]).ok();
    for command in [
        "generate",
        "chat",
        "tokenize",
        "logits",
        "perplexity",
        "inspect",
        "quantize",
        "synth",
        "bench",
        "devices",
        "test-ops",
    ] {
        assert!(help.contains(command), "{help}");
        let help = kovar(&[command, "--help"]).ok();
        assert!(help.contains("Examples:"), "{help}");
    }
    assert!(
        kovar(&["--version"])
            .ok()
            .contains(env!("CARGO_PKG_VERSION"))
    );
}
