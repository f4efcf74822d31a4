//! Unigram ids against SentencePiece's; made by `scripts/goldens/unigram.py`.

mod common;

use std::path::Path;

use common::data;
use kovar_formats::Gguf;
use kovar_text::{DecodeOptions, EncodeOptions, Tokenizer, TokenizerError, TokenizerSpec};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    ids: Vec<Vec<u32>>,
}

fn strings() -> Vec<String> {
    serde_json::from_slice(&std::fs::read(data("tok-strings.json")).unwrap()).unwrap()
}

fn spec(path: &Path) -> TokenizerSpec {
    TokenizerSpec::from_gguf(&Gguf::open(path).unwrap()).unwrap()
}

fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::from_spec(spec(&data(name))).unwrap()
}

fn assert_golden(path: &Path) {
    let tokenizer = Tokenizer::from_spec(spec(&path.with_extension("gguf"))).unwrap();
    let golden = std::fs::read(path.with_extension("json")).unwrap();
    let golden: Golden = serde_json::from_slice(&golden).unwrap();
    let strings = strings();
    assert_eq!(golden.ids.len(), strings.len());
    let mut wrong = Vec::new();
    for (text, expected) in strings.iter().zip(&golden.ids) {
        let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
        if ids != *expected {
            wrong.push(format!(
                "{text:?}\n  found    {ids:?}\n  expected {expected:?}"
            ));
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} differ:\n{}", wrong.join("\n"));
}

#[test]
fn normalised_ids_are_those_of_sentencepiece() {
    assert_golden(&data("tok-unigram"));
}

#[test]
fn ids_with_byte_fall_back_are_those_of_sentencepiece() {
    assert_golden(&data("tok-unigram-bytes"));
}

#[test]
fn begin_and_end_tokens_are_t5s() {
    let tokenizer = tokenizer("tok-unigram.gguf");
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (None, Some(1)));
    let options = EncodeOptions {
        add_special: true,
        parse_special: true,
        continues: false,
    };
    let ids = tokenizer.encode("<|im_end|>", options).unwrap();
    let end = tokenizer.id_of("<|im_end|>").unwrap();
    assert_eq!(ids, [end, 1]);
}

#[test]
fn text_is_recovered_except_for_the_space_before_it() {
    let whole = tokenizer("tok-unigram-bytes.gguf");
    let options = DecodeOptions {
        render_special: true,
    };
    for text in strings() {
        let ids = whole.encode(&text, EncodeOptions::default()).unwrap();
        let decoded = whole.decode_lossy(&ids, options).unwrap();
        assert_eq!(decoded, text.replace('\u{2581}', " "));
    }
    let prefixed = tokenizer("tok-unigram.gguf");
    let ids = prefixed
        .encode("  Once  upon ", EncodeOptions::default())
        .unwrap();
    assert_eq!(prefixed.decode_lossy(&ids, options).unwrap(), "Once upon");
}

#[test]
fn a_text_that_continues_another_keeps_its_space_and_gets_none() {
    let tokenizer = tokenizer("tok-unigram.gguf");
    let continues = EncodeOptions {
        continues: true,
        ..EncodeOptions::default()
    };
    for (more, expected) in [
        ("ly", "Oncely"),
        (" upon", "Once upon"),
        ("   upon  a", "Once upon a"),
        ("", "Once"),
    ] {
        let mut ids = tokenizer.encode("Once", EncodeOptions::default()).unwrap();
        ids.extend(tokenizer.encode(more, continues).unwrap());
        let whole = tokenizer.decode_lossy(&ids, DecodeOptions::default());
        assert_eq!(whole.unwrap(), expected);
    }
}

/// A vocabulary of these pieces after pad, end and unknown.
fn small(pieces: &[(&str, f32, i32)]) -> TokenizerSpec {
    let fixed = [("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2)];
    let all = || fixed.iter().chain(pieces);
    TokenizerSpec {
        model: "t5".to_owned(),
        tokens: all().map(|piece| piece.0.to_owned()).collect(),
        scores: Some(all().map(|piece| piece.1).collect()),
        token_types: Some(all().map(|piece| piece.2).collect()),
        ..TokenizerSpec::default()
    }
}

proptest! {
    #[test]
    fn the_pieces_have_the_greatest_sum_of_scores(
        scores in prop::collection::vec(-8.0f32..-0.5, 8),
        text in "[abc]{0,12}",
    ) {
        let pieces = ["a", "b", "ab", "ba", "abc", "aab", "bb", "cab"];
        let spec: Vec<_> = pieces.iter().zip(&scores).map(|(&piece, &score)| (piece, score, 1)).collect();
        let tokenizer = Tokenizer::from_spec(small(&spec)).unwrap();
        let unknown = scores.iter().copied().fold(f32::MAX, f32::min) - 10.0;
        // By position, the best sum, by trying all ways.
        let mut best = vec![f64::NEG_INFINITY; text.len() + 1];
        best[0] = 0.0;
        for at in 0..text.len() {
            let mut go = |len: usize, score: f32| {
                best[at + len] = best[at + len].max(best[at] + f64::from(score));
            };
            for (piece, &score) in pieces.iter().zip(&scores) {
                if text[at..].starts_with(piece) {
                    go(piece.len(), score);
                }
            }
            if text[at..].starts_with('c') {
                go(1, unknown);
            }
        }
        let ids = tokenizer.encode(&text, EncodeOptions::default()).unwrap();
        let decoded = tokenizer.decode_lossy(&ids, DecodeOptions::default()).unwrap();
        let pieces_of = |ids: &[u32]| ids.iter().filter(|&&id| id != 2).count();
        // An unknown token stands for several characters, so its score is computed from the rest.
        let known: f64 = ids.iter().filter(|&&id| id != 2).map(|&id| f64::from(scores[id as usize - 3])).sum();
        let lost = text.len() - decoded.len();
        let sum = known + f64::from(unknown) * lost as f64;
        prop_assert!((sum - best[text.len()]).abs() < 1e-3, "{} {} {:?}", sum, best[text.len()], ids);
        prop_assert!(pieces_of(&ids) <= text.len());
    }
}

#[test]
fn damaged_vocabularies_are_named() {
    let fault = |change: fn(&mut TokenizerSpec)| {
        let mut spec = small(&[("a", -1.0, 1)]);
        change(&mut spec);
        Tokenizer::from_spec(spec).unwrap_err()
    };
    let error = fault(|spec| spec.scores = None);
    assert!(matches!(error, TokenizerError::MissingKey { key } if key.ends_with("scores")));
    let error = fault(|spec| spec.scores = Some(vec![0.0]));
    assert!(matches!(
        error,
        TokenizerError::LengthMismatch { len: 1, .. }
    ));
    let error = fault(|spec| spec.scores = Some(vec![f32::NAN; 4]));
    assert!(matches!(error, TokenizerError::BadScore { id: 0, .. }));
    let error = fault(|spec| spec.precompiled_charsmap = Some(vec![9, 0, 0, 0]));
    assert!(
        error
            .to_string()
            .contains("precompiled_charsmap is damaged"),
        "{error}"
    );
    let without = TokenizerSpec {
        tokens: vec!["a".to_owned()],
        scores: Some(vec![-1.0]),
        token_types: None,
        add_eos: Some(false),
        ..small(&[])
    };
    let tokenizer = Tokenizer::from_spec(without).unwrap();
    let error = tokenizer
        .encode("ab", EncodeOptions::default())
        .unwrap_err();
    assert!(matches!(
        error,
        TokenizerError::NoTokenForByte { byte: b'b' }
    ));
}

#[test]
fn a_long_text_of_overlapping_pieces_takes_little_time() {
    let pieces: Vec<String> = (1..200).map(|len| "a".repeat(len)).collect();
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.as_str(), -1.0, 1))
        .collect();
    let tokenizer = Tokenizer::from_spec(small(&pieces)).unwrap();
    let ids = tokenizer
        .encode(&"a".repeat(19_900), EncodeOptions::default())
        .unwrap();
    assert_eq!(ids.len(), 100);
}
