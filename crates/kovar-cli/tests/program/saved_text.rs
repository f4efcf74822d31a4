use std::fs;

use crate::{ids, kovar, kovar_with_stdin, text};

const PROMPT: &str = "Once upon a time, there was a little fox named Ruby.";

#[test]
fn a_text_in_two_runs_is_the_text_of_one() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["llama-stories", "rwkv7-stories"] {
        let path = folder.path().join(model);
        let base = ["generate", "-m", model, "--temp", "0", "--json", "-q"];
        let whole = kovar(&[&base[..], &["-n", "40", PROMPT]].concat()).json();
        let saved = ["--saved", text(&path), "-n"];
        let first = kovar(&[&base[..], &saved, &["15", PROMPT]].concat()).json();
        let second = kovar(&[&base[..], &saved, &["25"]].concat()).json();
        assert_eq!(second["timings"]["prompt_tokens"], 1);
        let both = [ids(&first["tokens"]), ids(&second["tokens"])].concat();
        assert_eq!(both, ids(&whole["tokens"]), "{model}");

        let third = kovar(&[&base[..], &saved, &["4", " One day, Tom"]].concat()).json();
        assert!(third["timings"]["prompt_tokens"].as_u64().unwrap() > 1);
    }
}

#[test]
fn a_conversation_continues_in_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |output: &str| -> Vec<serde_json::Value> {
        let lines = output.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    };
    for model in ["llama-stories", "rwkv7-stories"] {
        let path = folder.path().join(model);
        let base = [
            "chat", "-m", model, "--temp", "0", "-n", "8", "--json", "-q",
        ];
        let whole = kovar_with_stdin(&base, b"One day\nIn a village\n").ok();
        let args = [&base[..], &["--saved", text(&path)]].concat();
        let first = kovar_with_stdin(&args, b"One day\n").ok();
        let second = kovar_with_stdin(&args, b"In a village\n").ok();
        let (whole, parts) = (lines(&whole), lines(&(first + &second)));
        assert_eq!(parts.len(), 2);
        for (part, whole) in parts.iter().zip(&whole) {
            assert_eq!(part["tokens"], whole["tokens"], "{model}");
            let evaluated = &part["timings"]["prompt_tokens"];
            assert_eq!(evaluated, &whole["timings"]["prompt_tokens"], "{model}");
        }

        let generate = ["generate", "-m", model, "--saved", text(&path), "-q"];
        let error = kovar(&generate).failed(1);
        assert!(error.contains("`kovar chat` continues it"), "{error}");
    }
}

#[test]
fn a_saved_text_that_does_not_fit_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("story");
    let base = ["generate", "--temp", "0", "-n", "4", "-q", "--saved"];
    let run = |more: &[&str]| kovar(&[&base[..], &[text(&path)], more].concat());
    run(&[PROMPT]).ok();
    let saved = fs::read(&path).unwrap();
    for (more, expected) in [
        (&["-m", "rwkv7-stories"][..], "was saved with another model"),
        (&["--cache-type", "f32"], "has a cache of F16"),
        (&["--ctx", "8"], "the context holds 8"),
    ] {
        let error = run(more).failed(1);
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read(&path).unwrap(), saved);
    }
    fs::write(&path, &saved[..saved.len() / 2]).unwrap();
    let error = run(&[]).failed(1);
    assert!(error.contains("not a saved text, or is damaged"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), &saved[..saved.len() / 2]);
}

#[test]
fn a_saved_text_that_cannot_be_written_is_reported_before_the_model_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no folder").unwrap();
    for path in [
        folder.path().to_owned(),
        folder.path().join("missing/text"),
        file.join("text"),
    ] {
        for command in ["generate", "chat"] {
            let args = [command, "-m", "missing.gguf", "--saved", text(&path), "x"];
            let error = kovar(&args).failed(1);
            assert!(error.contains("cannot write the saved text"), "{error}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_empty_saved_text_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    fs::write(&path, "").unwrap();
    let error = kovar(&["generate", "-q", "--saved", text(&path)]).failed(1);
    assert!(error.contains("is damaged: the file is empty"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"");
}

/// Runs the program with files limited to a few kilobytes.
#[cfg(unix)]
fn with_small_files(args: &[&str], input: &[u8]) -> crate::Run {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_kovar"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().into()
}

#[cfg(unix)]
#[test]
fn a_text_that_cannot_be_saved_is_still_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let options = [
        "--temp",
        "0",
        "-n",
        "3",
        "--json",
        "-q",
        "--saved",
        text(&path),
    ];
    for (start, input, answers) in [
        (&["generate", PROMPT][..], "", 1),
        (&["chat", "Hello"], "", 1),
        (&["chat"], "Hello\nAgain\n", 2),
    ] {
        let run = with_small_files(&[start, &options].concat(), input.as_bytes());
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(
            run.stderr.contains("error: cannot write the saved text"),
            "{}",
            run.stderr
        );
        let lines: Vec<serde_json::Value> = run
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), answers, "{start:?}");
        for line in lines {
            assert_eq!(line["finish_reason"], "max_tokens");
            assert!(!ids(&line["tokens"]).is_empty());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
