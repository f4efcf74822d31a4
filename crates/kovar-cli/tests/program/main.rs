//! The program as a user runs it.

mod chat;
mod devices;
mod errors;
mod folder;
mod generate;
mod gpu;
mod inspect;
mod logits;
mod measure;
mod perplexity;
mod placement;
mod quantize;
mod saved_text;
mod synth;
mod tokenize;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The result of a run of the program.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    /// Stdout of a successful run.
    fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "stderr: {}", self.stderr);
        self.stdout
    }

    /// Stdout of a successful run, as JSON.
    fn json(self) -> serde_json::Value {
        let text = self.ok();
        assert_eq!(text.trim_end().lines().count(), 1, "one line: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Stderr of a run that failed with `code` and wrote nothing to stdout.
    fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "stderr: {}", self.stderr);
        assert_eq!(self.stdout, "");
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self.stderr
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kovar"));
    command
        .args(args)
        .env_remove("KOVAR_LOG")
        // The tests must not use the user's cache.
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null());
    command
}

/// Runs the program with these arguments and an empty stdin.
fn kovar(args: &[&str]) -> Run {
    command(args).output().expect("the program starts").into()
}

/// Runs the program with `input` on its stdin.
fn kovar_with_stdin(args: &[&str], input: &[u8]) -> Run {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    // The program need not read all of it.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("the program ends").into()
}

fn repository_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn demo_file() -> PathBuf {
    repository_file("models/llama-story-6m/llama-story-6m-q8_0.gguf")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// A prompt of the golden file, and the ids of the tokens that follow it.
struct Golden {
    prompt: String,
    prompt_ids: Vec<u32>,
    greedy_ids: Vec<u32>,
    /// By position, the greatest logits and their ids.
    top_logits: Vec<(usize, Vec<(usize, f64)>)>,
}

fn list(ids: &[u32]) -> String {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    ids.join(",")
}

fn ids(value: &serde_json::Value) -> Vec<u32> {
    let ids = value.as_array().expect("an array of ids").iter();
    ids.map(|id| id.as_u64().expect("an id") as u32).collect()
}

/// The cases of the demo model's `golden.json`, made in f32 from the f16 weights.
fn goldens() -> Vec<Golden> {
    goldens_of("llama-story-6m")
}

/// The cases of the `golden.json` in a folder of `models`.
fn goldens_of(folder: &str) -> Vec<Golden> {
    let path = repository_file("models").join(folder).join("golden.json");
    let text = std::fs::read_to_string(path).expect("golden.json can be read");
    let golden: serde_json::Value = serde_json::from_str(&text).expect("golden.json is JSON");
    let cases = golden["cases"].as_array().expect("golden.json has cases");
    let cases = cases.iter().map(|case| Golden {
        prompt: case["prompt"].as_str().expect("a prompt").to_owned(),
        prompt_ids: ids(&case["prompt_ids"]),
        greedy_ids: ids(&case["greedy_ids"]),
        top_logits: top_logits(&case["logits_top20"]),
    });
    cases.collect()
}

fn top_logits(value: &serde_json::Value) -> Vec<(usize, Vec<(usize, f64)>)> {
    let positions = value.as_array().expect("an array of positions").iter();
    let positions = positions.map(|position| {
        let at = position["position"].as_u64().expect("a position") as usize;
        let logits = position["logits"].as_array().expect("logits").iter();
        let logits = logits.map(|logit| logit.as_f64().expect("a logit"));
        let ids = ids(&position["ids"]).into_iter().map(|id| id as usize);
        (at, ids.zip(logits).collect())
    });
    positions.collect()
}
