use crate::{goldens, ids, kovar, kovar_with_stdin, repository_file, text};

#[test]
fn the_ids_are_those_of_the_reference() {
    for golden in goldens() {
        let expected: Vec<String> = golden.prompt_ids.iter().map(u32::to_string).collect();
        let line = kovar(&["tokenize", &golden.prompt]).ok();
        assert_eq!(line, expected.join(" ") + "\n");
        let report = kovar(&["tokenize", "--json", &golden.prompt]).json();
        assert_eq!(ids(&report["ids"]), golden.prompt_ids);
    }
}

#[test]
fn the_pieces_make_up_the_text() {
    let report = kovar(&["tokenize", "--json", "--pieces", "Once upon a time"]).json();
    let pieces = report["pieces"].as_array().unwrap();
    let pieces: String = pieces.iter().map(|piece| piece.as_str().unwrap()).collect();
    assert_eq!(pieces, "Once upon a time");
    let lines = kovar(&["tokenize", "--pieces", "Once upon a time"]).ok();
    assert!(
        lines.contains("\"Once\"") || lines.contains("\"On\""),
        "{lines}"
    );
}

#[test]
fn text_on_stdin_is_taken_as_it_is() {
    let argument = kovar(&["tokenize", "a fox\n"]).ok();
    assert_eq!(kovar_with_stdin(&["tokenize"], b"a fox\n").ok(), argument);
    assert_eq!(
        kovar_with_stdin(&["tokenize", "-"], b"a fox\n").ok(),
        argument
    );
}

#[test]
fn a_file_without_tensors_is_enough() {
    let file = repository_file("crates/kovar-text/tests/data/tok-bpe.gguf");
    let report = kovar(&["inspect", text(&file), "--json"]).json();
    assert_eq!(report["tensors"].as_array().map(Vec::len), Some(0));
    let report = kovar(&["tokenize", "-m", text(&file), "--json", "hello world"]).json();
    assert!(!ids(&report["ids"]).is_empty());
}

#[test]
fn control_tokens_are_text_unless_asked_for() {
    let plain = kovar(&["tokenize", "--json", "<|endoftext|>"]).json();
    assert!(ids(&plain["ids"]).len() > 1);
    let special = kovar(&["tokenize", "--json", "--special", "<|endoftext|>"]).json();
    assert_eq!(ids(&special["ids"]), [0]);
}
