use std::io::Read;
use std::process::{Child, ChildStdout, Stdio};

use crate::{Golden, command, goldens_of, ids, kovar, kovar_with_stdin};

/// The maximum difference of two logits whose order 8-bit rounding of weights and activations may
/// swap.
const NEAR_TIE: f64 = 0.05;

#[test]
fn greedy_texts_of_the_demo_models_follow_the_reference_up_to_near_ties() {
    for (model, folder) in [
        ("llama-stories", "llama-story-6m"),
        ("rwkv7-stories", "rwkv7-story-6m"),
    ] {
        let goldens = goldens_of(folder);
        let whole = goldens.iter().filter(|golden| follows(model, golden));
        let whole = whole.count();
        assert!(whole >= 2, "{whole} of the texts agree to the end");
    }
}

/// Whether the greedy text of `model` equals the golden text. If not, the first different token
/// must be a near tie.
fn follows(model: &str, golden: &Golden) -> bool {
    let base = ["generate", "-m", model, "--temp", "0", "-n", "64", "--json"];
    let report = kovar(&[&base[..], &[&golden.prompt]].concat()).json();
    assert_eq!(report["finish_reason"], "max_tokens");
    assert_eq!(report["timings"]["prompt_tokens"], golden.prompt_ids.len());
    let found = ids(&report["tokens"]);
    assert_eq!(found.len(), 64);
    let both = found.iter().zip(&golden.greedy_ids);
    let shared = both.take_while(|(a, b)| a == b).count();
    if shared == golden.greedy_ids.len() {
        return true;
    }
    let before = [&golden.prompt_ids[..], &golden.greedy_ids[..shared]].concat();
    let before = crate::list(&before);
    let args = [
        "logits", "-m", model, "--ids", &before, "--last", "--top", "2", "--json",
    ];
    let logits = kovar(&args).json();
    let top = &logits["positions"][0]["top"];
    assert_eq!(top[1]["id"], golden.greedy_ids[shared], "{}", golden.prompt);
    let gap = top[0]["logit"].as_f64().unwrap() - top[1]["logit"].as_f64().unwrap();
    assert!(
        gap < NEAR_TIE,
        "{}: {gap} after {shared} ids",
        golden.prompt
    );
    false
}

#[test]
fn the_demo_model_tells_a_story_to_its_end() {
    let run = kovar(&["generate", "--temp", "0"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stdout.starts_with("Once upon a time, there was a"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.ends_with('\n'));
    assert!(!run.stdout.contains("endoftext"));
    assert!(run.stdout.len() > 200, "{}", run.stdout);
    assert!(run.stderr.contains("tokens/s"), "{}", run.stderr);
    assert!(
        run.stderr.contains("the model ended the text"),
        "{}",
        run.stderr
    );
}

#[test]
fn quiet_says_nothing_on_stderr() {
    let run = kovar(&["generate", "--temp", "0", "-n", "3", "--quiet"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_prompt_may_come_over_stdin() {
    let args = ["generate", "--temp", "0", "-n", "8", "-q"];
    let argument = kovar(&[&args[..], &["In a small village,"]].concat()).ok();
    assert_eq!(
        kovar_with_stdin(&args, b"In a small village,\n").ok(),
        argument
    );
    let dash = [&args[..], &["-"]].concat();
    assert_eq!(
        kovar_with_stdin(&dash, b"In a small village,").ok(),
        argument
    );
    assert!(argument.starts_with("In a small village,"));
    let bare = [&args[..], &["--no-echo", "In a small village,"]].concat();
    assert_eq!(
        format!("In a small village,{}", kovar(&bare).ok()),
        argument
    );
}

#[test]
fn a_stop_string_ends_the_text_and_is_no_part_of_it() {
    let whole = kovar(&["generate", "--temp", "0", "--json"]).json();
    let whole = whole["text"].as_str().unwrap().to_owned();
    let args = [
        "generate", "--temp", "0", "--json", "--stop", "QQ", "--stop", ".",
    ];
    let report = kovar(&args).json();
    assert_eq!(report["finish_reason"], "stop");
    assert_eq!(report["stop"], ".");
    assert_eq!(report["text"].as_str(), whole.split('.').next());
}

#[test]
fn escapes_in_a_stop_string_are_characters() {
    let args = ["generate", "--temp", "0", "--json", "--stop", r"\n"];
    let report = kovar(&args).json();
    let text = report["text"].as_str().unwrap();
    assert!(!text.contains('\n'), "{text}");
    let ended_by_stop = report["finish_reason"] == "stop";
    assert_eq!(ended_by_stop, report["stop"] == "\n");
}

#[test]
fn the_seed_is_reported_if_it_has_an_effect() {
    let report = kovar(&["generate", "-n", "1", "--temp", "0", "--json"]).json();
    assert_eq!(report["seed"], serde_json::Value::Null);
    let report = kovar(&["generate", "-n", "1", "-s", "-1", "--json"]).json();
    assert!(report["seed"].is_u64(), "{report}");
}

#[test]
fn a_context_beyond_the_trained_one_is_noted() {
    let run = kovar(&["generate", "-n", "1", "--ctx", "1000"]);
    assert!(run.stderr.contains("trained for 512"), "{}", run.stderr);
    let run = kovar(&["generate", "-n", "1", "--ctx", "512"]);
    assert!(!run.stderr.contains("trained"), "{}", run.stderr);
}

#[test]
fn verbose_shows_device_load_time_and_context() {
    let run = kovar(&["-v", "generate", "-n", "1"]);
    for expected in ["INFO device", "INFO loaded", "INFO context"] {
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

#[test]
fn no_tokens_give_no_text() {
    let report = kovar(&["generate", "-n", "0", "--json"]).json();
    assert_eq!(report["text"], "");
    assert!(ids(&report["tokens"]).is_empty());
    assert_eq!(report["finish_reason"], "max_tokens");
    assert_eq!(
        kovar(&["generate", "-n", "0", "-q", "a fox"]).ok(),
        "a fox\n"
    );
}

#[test]
fn a_full_context_ends_the_text() {
    let args = [
        "generate",
        "--ctx",
        "16",
        "--temp",
        "0",
        "--ignore-eos",
        "--json",
    ];
    let report = kovar(&args).json();
    assert_eq!(report["finish_reason"], "context_full");
    let prompt = report["timings"]["prompt_tokens"].as_u64().unwrap();
    assert_eq!(ids(&report["tokens"]).len() as u64, 16 - prompt + 1);
}

#[test]
fn one_seed_gives_one_text() {
    let text = |seed: &str| {
        let args = [
            "generate", "-n", "40", "--temp", "1.5", "--seed", seed, "--json",
        ];
        let report = kovar(&args).json();
        assert_eq!(report["seed"].to_string(), seed);
        report["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text("7"), text("7"));
    assert_ne!(text("7"), text("8"));
}

/// A program that generates a long text, its stdout, and the first `len` bytes that it wrote.
fn started(more: &[&str], len: usize) -> (Child, ChildStdout, Vec<u8>) {
    let args = [&["generate", "--temp", "0", "--ignore-eos"], more].concat();
    let mut child = command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = vec![0; len];
    stdout.read_exact(&mut first).unwrap();
    (child, stdout, first)
}

#[cfg(unix)]
fn signal(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args([signal, &id]).status().unwrap().success());
}

#[test]
fn a_closed_stdout_ends_the_program_quietly() {
    let (child, _, first) = started(&["-n", "400"], 4);
    let output = child.wait_with_output().unwrap();
    assert_eq!(first, b"Once");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = command(&["generate", "-n", "4"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("error: "), "{stderr}");
}

#[cfg(unix)]
#[test]
fn sigterm_has_its_default_effect() {
    use std::os::unix::process::ExitStatusExt;
    let (mut child, _stdout, _) = started(&["--ctx", "100000"], 20);
    signal(&child, "-TERM");
    // A shell reports this as exit code 128 + 15.
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_the_text_so_far() {
    let (child, mut stdout, mut text) = started(&["--ctx", "100000"], 60);
    signal(&child, "-INT");
    stdout.read_to_end(&mut text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.starts_with("Once upon a time") && text.ends_with('\n'),
        "{text}"
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("interrupted"), "{stderr}");
}

#[test]
fn every_sampling_option_has_an_effect() {
    let text = |args: &[&str]| {
        let fixed = ["generate", "-q", "-n", "24", "--seed", "5"];
        kovar(&[&fixed[..], args].concat()).ok()
    };
    let plain = text(&[]);
    for args in [
        &["--typical", "0.2", "--temp", "2"][..],
        &["--top-n-sigma", "0.5", "--temp", "9", "--top-k", "0"],
        &[
            "--xtc-probability",
            "1",
            "--xtc-threshold",
            "0.02",
            "--temp",
            "2",
        ],
        &["--mirostat", "1", "--mirostat-ent", "9", "--temp", "2"],
        &[
            "--mirostat",
            "2",
            "--mirostat-ent",
            "9",
            "--mirostat-lr",
            "0.5",
            "--temp",
            "2",
        ],
        &[
            "--dry-multiplier",
            "9",
            "--dry-allowed-length",
            "0",
            "--dry-sequence-breaker",
            "none",
        ],
    ] {
        assert_ne!(text(args), plain, "{args:?}");
        assert_eq!(text(args), text(args), "{args:?}");
    }
    let banned = text(&["-l", "\" was\"-inf", "-l", "\",\"-inf"]);
    assert!(
        !banned.contains(" was") && !banned.contains(','),
        "{banned}"
    );
}

#[test]
fn the_text_satisfies_its_constraint() {
    let dir = tempfile::tempdir().unwrap();
    let schema = dir.path().join("schema.json");
    let object = r#"{"type": "object", "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"], "additionalProperties": false}"#;
    std::fs::write(&schema, object).unwrap();
    let file = format!("@{}", schema.display());
    for schema in [object, file.as_str()] {
        let report = kovar(&["generate", "--json", "-j", schema, "-s", "1"]).json();
        let text = report["text"].as_str().unwrap();
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert!(value["ok"].is_boolean(), "{text}");
        assert_eq!(report["finish_reason"], "grammar_end");
    }
    let text = kovar(&["chat", "-q", "--regex", "(yes|no), [0-9]{3}", "Is it?"]).ok();
    let (answer, number) = text.trim_end().split_once(", ").unwrap();
    assert!(
        ["yes", "no"].contains(&answer) && number.len() == 3,
        "{text}"
    );
}

#[test]
fn a_text_that_ends_before_its_grammar_is_warned_about() {
    let args = [
        "generate",
        "-q",
        "--temp",
        "0",
        "--regex",
        "[a-z]{40}",
        "a",
        "-n",
    ];
    let cut = kovar(&[&args[..], &["2"]].concat());
    assert_eq!(cut.code, Some(0));
    assert!(
        cut.stderr.contains("may violate its constraint"),
        "{}",
        cut.stderr
    );
    assert!(cut.stderr.contains("token limit"), "{}", cut.stderr);
    let whole = kovar(&[&args[..], &["-1"]].concat());
    assert_eq!((whole.code, whole.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_model_whose_end_is_ignored_never_writes_its_end_token() {
    let args = ["generate", "--temp", "0", "-n", "400", "--json"];
    let ended = kovar(&args).json();
    assert_eq!(ended["finish_reason"], "end");
    let report = kovar(&[&args[..], &["--ignore-eos"]].concat()).json();
    assert_ne!(report["finish_reason"], "end");
    let made = ids(&report["tokens"]);
    assert!(made.len() > ids(&ended["tokens"]).len());
    // Token 0 is the only end token of the story model.
    assert!(!made.contains(&0), "{made:?}");
}
