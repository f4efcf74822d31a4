use crate::{command, kovar, kovar_with_stdin, text};

#[test]
fn one_message_gets_one_answer_and_the_fallback_is_named() {
    let run = kovar(&["chat", "--temp", "0", "-n", "8", "Tell me a story."]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.trim().len() > 4, "{}", run.stdout);
    assert!(run.stderr.contains("no chat template"), "{}", run.stderr);
    assert!(run.stderr.contains("User: / Assistant:"), "{}", run.stderr);
    assert!(run.stderr.contains("llama-stories"), "{}", run.stderr);
}

#[test]
fn a_conversation_over_a_pipe_answers_line_by_line() {
    let args = ["chat", "--temp", "0", "-n", "4", "--json", "-q"];
    let output = kovar_with_stdin(&args, b"One day\n\n/reset\nOne day\n/what\n/exit\nnever\n");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let answers: Vec<serde_json::Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["text"], answers[1]["text"]);
    assert_eq!(answers[0]["message"], "One day");
    assert!(
        output.stderr.contains("unknown command /what"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_message_that_does_not_fit_does_not_end_the_conversation() {
    let long = "Once upon a time. ".repeat(200);
    let input = format!("{long}\nOne day\n");
    let args = ["chat", "--temp", "0", "-n", "4", "--json"];
    let output = kovar_with_stdin(&args, input.as_bytes());
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("error: "), "{}", output.stderr);
    let lines = json_lines(&output.stdout);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["message"], long.trim());
    let error = lines[0]["error"].as_str().unwrap();
    assert!(error.contains("--ctx N"), "{error}");
    assert_eq!(lines[1]["error"], serde_json::Value::Null);
    assert!(lines[1]["text"].is_string());
}

#[test]
fn a_conversation_that_fills_the_context_can_be_reset() {
    let args = ["chat", "--temp", "0", "-n", "20", "--ctx", "40", "--json"];
    let input = b"One day a fox ran.\nOne day a fox ran.\n/reset\nOne day a fox ran.\n";
    let output = kovar_with_stdin(&args, input);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let lines = json_lines(&output.stdout);
    assert_eq!(lines.len(), 3, "{}", output.stdout);
    let error = lines[1]["error"].as_str().unwrap();
    assert!(error.contains("/reset clears the conversation"), "{error}");
    assert_eq!(lines[0]["text"], lines[2]["text"]);
    assert!(output.stderr.contains("cleared"), "{}", output.stderr);
}

#[test]
fn a_line_that_is_not_utf_8_fails_and_the_next_is_answered() {
    let args = ["chat", "--temp", "0", "-n", "4", "--json", "-q"];
    let output = kovar_with_stdin(&args, b"One day\nab\xff\nOne day\n");
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let lines = json_lines(&output.stdout);
    assert_eq!(lines.len(), 3, "{}", output.stdout);
    let error = lines[1]["error"].as_str().unwrap();
    assert!(error.contains("UTF-8 (at byte 10)"), "{error}");
    assert!(lines[2]["text"].is_string());
}

#[test]
fn help_lists_the_commands() {
    let output = kovar_with_stdin(&["chat", "-q"], b"/help\n");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    for command in ["/reset", "/help", "/exit"] {
        assert!(output.stderr.contains(command), "{}", output.stderr);
    }
}

fn json_lines(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_system_text_comes_first() {
    let args = ["chat", "--temp", "0", "-n", "6", "-q", "--json", "Hello"];
    let plain = kovar(&args).json();
    let system = kovar(&[&args[..], &["--system", "A fox named Ruby."]].concat()).json();
    let tokens = |report: &serde_json::Value| report["timings"]["prompt_tokens"].as_u64();
    assert!(tokens(&system) > tokens(&plain));
}

/// Needs the chat model in `KOVAR_SMOLLM2`, which `scripts/test` downloads.
#[test]
#[ignore = "needs SmolLM2-135M-Instruct.Q4_1.gguf, named by KOVAR_SMOLLM2"]
fn smollm2_knows_the_capital_of_france() {
    let file = std::env::var("KOVAR_SMOLLM2").expect("KOVAR_SMOLLM2 names the model file");
    // With the template's default system message, "The" and "L" are about equally likely, so a
    // quantised run may begin with either; llama.cpp's begins with "L".
    let system = "Answer in one sentence.";
    let question = "What is the capital of France?";
    let args = [
        "chat", "-m", &file, "--temp", "0", "-n", "32", "--system", system, question,
    ];
    let run = kovar(&args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("Paris"), "{}", run.stdout);
    assert!(!run.stderr.contains("no chat template"), "{}", run.stderr);
}

/// The embedded model with another chat template.
fn with_template(path: &std::path::Path, template: &str) {
    let file = kovar::Gguf::open(crate::demo_file()).unwrap();
    let mut writer = kovar::GgufWriter::with_alignment(file.alignment()).unwrap();
    for (key, value) in file.metadata().iter() {
        if key != kovar::gguf::ALIGNMENT_KEY && key != "tokenizer.chat_template" {
            writer.metadata(key, value.clone()).unwrap();
        }
    }
    writer
        .metadata("tokenizer.chat_template", template)
        .unwrap();
    for tensor in file.tensors() {
        let bytes = file.bytes(tensor);
        writer
            .tensor_bytes(tensor.name(), tensor.dtype(), tensor.dims(), bytes)
            .unwrap();
    }
    writer.write_file(path).unwrap();
}

#[cfg(unix)]
#[test]
fn ctrl_c_does_not_wait_for_a_template() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow.gguf");
    let slow = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
    with_template(&path, slow);
    let mut child = command(&["chat", "-v", "-m", text(&path), "Hi"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The model is loaded, so the handler of Ctrl-C is installed and the template comes next.
    let loaded = lines.any(|line| line.unwrap().contains("context"));
    assert!(loaded);
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    // Code 1 would be the template's time limit.
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
}

#[test]
fn the_seed_of_an_answer_is_reported() {
    let run = kovar(&["chat", "-n", "2", "--seed", "77", "Hello"]);
    assert!(
        run.stderr.trim_end().ends_with(" seed 77"),
        "{}",
        run.stderr
    );
}
