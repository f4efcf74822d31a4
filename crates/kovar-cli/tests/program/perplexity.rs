use crate::{kovar, kovar_with_stdin, repository_file, text};

#[test]
fn the_perplexity_of_a_file_is_reported_with_the_scored_tokens() {
    let stories = repository_file("crates/kovar-text/tests/data/stories.txt");
    let args = ["perplexity", "-f", text(&stories), "--ctx", "128", "--json"];
    let report = kovar(&args).json();
    let perplexity = report["perplexity"].as_f64().unwrap();
    assert!((1.0..3.0).contains(&perplexity), "{report}");
    assert!(report["standard_error"].as_f64().unwrap() > 0.0);
    let count = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(
        (count("chunk"), count("chunks")),
        (128, count("tokens") / 128)
    );
    assert_eq!(count("scored"), count("chunks") * 63);

    let shown = kovar(&args[..5]);
    assert!(
        shown.stderr.contains("scored in 10 chunks of 128"),
        "{}",
        shown.stderr
    );
    let value = format!("perplexity {perplexity:.4} +/- ");
    assert!(shown.stdout.starts_with(&value), "{}", shown.stdout);
}

#[test]
fn a_short_text_on_stdin_is_scored_as_one_chunk() {
    let run = kovar_with_stdin(&["perplexity", "-f", "-"], b"Once upon a time, there was");
    assert!(run.stderr.contains("scored as one"), "{}", run.stderr);
    assert!(run.ok().starts_with("perplexity "));
    let message = kovar_with_stdin(&["perplexity", "-f", "-"], b"a").failed(1);
    assert!(message.contains("too few tokens"), "{message}");
}

#[test]
fn a_text_that_cannot_be_read_is_named() {
    let message = kovar(&["perplexity", "-f", "missing.txt"]).failed(1);
    assert!(message.contains("missing.txt"), "{message}");
}

#[test]
fn the_chunk_of_an_unlimited_context_can_be_set() {
    let input = "Once upon a time there was a dog. ".repeat(8);
    let args = [
        "perplexity",
        "-m",
        "rwkv7-stories",
        "-f",
        "-",
        "--ctx",
        "16",
    ];
    let run = kovar_with_stdin(&args, input.as_bytes());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(!run.stderr.contains("no difference"), "{}", run.stderr);
}
