//! Text constrained by a JSON schema, a regular expression or a grammar.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use common::{data, repository};
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_formats::Gguf;
use kovar_text::grammar::Allowed;
use kovar_text::{
    Constraint, FinishReason, GenerateError, GenerateOptions, Generation, Grammar, GrammarError,
    GrammarKind, LanguageModel, LanguageModelError, ModelOptions, Progress, SamplerParams,
    Tokenizer, TokenizerSpec,
};
use serde_json::Value;

const FOX: &str = r##"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "kind": {"enum": ["fox", "owl", "bear"]},
        "friends": {
            "type": "array", "items": {"type": "string", "maxLength": 8},
            "minItems": 1, "maxItems": 3
        },
        "home": {"$ref": "#/$defs/place"}
    },
    "required": ["name", "age", "kind", "friends", "home"],
    "additionalProperties": false,
    "$defs": {"place": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}
}"##;

fn is_fox(value: &Value) -> bool {
    let chars = |value: &Value| value.as_str().map(|text| text.chars().count());
    let object = value.as_object().unwrap();
    let friends = value["friends"].as_array().unwrap();
    object.len() == 5
        && chars(&value["name"]).is_some_and(|len| (1..=12).contains(&len))
        && value["age"].as_u64().is_some_and(|age| age < 100)
        && ["fox", "owl", "bear"].contains(&value["kind"].as_str().unwrap())
        && (1..=3).contains(&friends.len())
        && (friends.iter()).all(|friend| chars(friend).is_some_and(|len| len <= 8))
        && (value["home"].is_boolean() || value["home"].is_null())
}

fn story_model() -> LanguageModel {
    let path = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let file = Gguf::open(path).unwrap();
    // One thread: tests run in parallel, and the model is small.
    let cpu = CpuBackend::new(CpuOptions::new().threads(1)).unwrap();
    LanguageModel::load(file, vec![Arc::new(cpu)], &ModelOptions::default()).unwrap()
}

fn tokenizer(path: std::path::PathBuf) -> Tokenizer {
    let spec = TokenizerSpec::from_gguf(&Gguf::open(path).unwrap()).unwrap();
    Tokenizer::from_spec(spec).unwrap()
}

fn grammar(kind: GrammarKind, text: &str) -> Grammar {
    Grammar::new(kind, text).unwrap()
}

fn hot(seed: u64) -> SamplerParams {
    SamplerParams {
        temperature: 1.5,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        seed: Some(seed),
        ..SamplerParams::default()
    }
}

/// A text that begins like a story, and what was streamed of it.
fn write(
    model: &mut LanguageModel,
    sampling: &SamplerParams,
    options: &GenerateOptions,
) -> Result<Generation, LanguageModelError> {
    let mut streamed = String::new();
    let generation = model.complete("Once upon a time", sampling, options, &mut |progress| {
        if let Progress::Text(text) = progress {
            streamed.push_str(text);
        }
        ControlFlow::Continue(())
    })?;
    assert_eq!(streamed, generation.text);
    Ok(generation)
}

fn held_to(grammar: Grammar) -> GenerateOptions {
    GenerateOptions {
        max_tokens: Some(400),
        grammar: Some(grammar),
        ..GenerateOptions::default()
    }
}

#[test]
fn whatever_the_seed_the_text_satisfies_the_schema() {
    let mut model = story_model();
    let options = held_to(grammar(GrammarKind::JsonSchema, FOX));
    let mut texts = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let generation = write(&mut model, &hot(seed), &options).unwrap();
        let text = &generation.text;
        assert_eq!(generation.finish, FinishReason::GrammarEnd, "{text}");
        let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(is_fox(&value), "{text}");
        texts.insert(generation.text);
    }
    assert!(texts.len() > 40, "{texts:?}");
}

#[test]
fn expressions_and_grammars_constrain_the_text_too() {
    let mut model = story_model();
    let regex = held_to(grammar(
        GrammarKind::Regex,
        r"(red|blue) [a-z]{3,5}! [0-9]{2}",
    ));
    let lark = held_to(grammar(
        GrammarKind::Lark,
        "start: sum\nsum: NUMBER | \"(\" sum OP sum \")\"\nNUMBER: /[0-9]{1,3}/\nOP: /[-+]/",
    ));
    for seed in 0..10 {
        let text = write(&mut model, &hot(seed), &regex).unwrap().text;
        let (colour, rest) = text.split_once(' ').unwrap();
        let (word, number) = rest.split_once("! ").unwrap();
        assert!(["red", "blue"].contains(&colour), "{text}");
        assert!((3..=5).contains(&word.len()) && number.len() == 2, "{text}");
        assert!(number.bytes().all(|byte| byte.is_ascii_digit()), "{text}");

        let sum = write(
            &mut model,
            &SamplerParams {
                temperature: 0.5,
                ..hot(seed)
            },
            &lark,
        );
        let sum = sum.unwrap();
        let (mut depth, mut deepest) = (0, 0);
        for byte in sum.text.bytes() {
            depth += i32::from(byte == b'(') - i32::from(byte == b')');
            deepest = depth.max(deepest);
            assert!(
                depth >= 0 && b"0123456789+-()".contains(&byte),
                "{}",
                sum.text
            );
        }
        assert!(
            sum.finish == FinishReason::MaxTokens || depth == 0,
            "{}",
            sum.text
        );
    }
}

#[test]
fn limits_and_stop_strings_end_a_text_before_its_grammar() {
    let mut model = story_model();
    let mut options = held_to(grammar(GrammarKind::Regex, "[ab]*cat[ab]{4}"));
    options.stop = vec!["ca".to_owned()];
    let stopped = write(&mut model, &hot(3), &options).unwrap();
    assert_eq!(stopped.finish, FinishReason::Stop("ca".to_owned()));
    assert!(stopped.text.bytes().all(|byte| b"ab".contains(&byte)));
    options.max_tokens = Some(2);
    options.grammar = Some(grammar(GrammarKind::Regex, "a{40}"));
    let cut = write(&mut model, &hot(3), &options).unwrap();
    assert_eq!(cut.finish, FinishReason::MaxTokens);
    assert_eq!(cut.tokens.len(), 2);
}

#[test]
fn the_model_may_end_where_the_grammar_may() {
    let tokenizer = tokenizer(repository("models/llama-story-6m/llama-story-6m-q8_0.gguf"));
    let ends = tokenizer.end_ids();
    let a = tokenizer.id_of("a").unwrap();
    let mut constraint =
        Constraint::compile(&grammar(GrammarKind::Regex, "a{1,3}"), &tokenizer).unwrap();
    for tokens in 0..4 {
        let mut logits = vec![0.0; tokenizer.vocab_len()];
        let allowed = constraint.mask(&mut logits, ends).unwrap();
        if tokens == 3 {
            assert!(constraint.is_complete());
            assert_eq!(allowed, Allowed::Nothing);
            continue;
        }
        assert!(!constraint.is_complete());
        assert_eq!(allowed, Allowed::More { end: tokens > 0 });
        for (id, &logit) in (0u32..).zip(&logits) {
            let bytes = tokenizer.token_bytes(id).unwrap();
            let is_end = ends.contains(&id);
            let fits = !is_end && bytes.len() <= 3 - tokens && bytes.iter().all(|&b| b == b'a');
            assert_eq!(
                logit == 0.0,
                fits || (is_end && tokens > 0),
                "{tokens} {id}"
            );
        }
        constraint.accept(a).unwrap();
    }
    let mut other = Constraint::compile(&grammar(GrammarKind::Regex, "ab"), &tokenizer).unwrap();
    let b = tokenizer.id_of("b").unwrap();
    assert!(matches!(other.accept(b), Err(GrammarError::Stuck { .. })));
}

#[test]
fn control_tokens_are_not_text_but_can_be_named() {
    let tokenizer = tokenizer(data("tok-bpe.gguf"));
    let end = tokenizer.id_of("<|im_end|>").unwrap();
    let allowed = |kind, text: &str| {
        let mut constraint = Constraint::compile(&grammar(kind, text), &tokenizer).unwrap();
        let mut logits = vec![0.0; tokenizer.vocab_len()];
        constraint.mask(&mut logits, &[]).unwrap();
        logits[end as usize] == 0.0
    };
    assert!(!allowed(GrammarKind::Regex, "(?s:.*)"));
    assert!(!allowed(GrammarKind::Lark, "start: \"<|im_end|>\""));
    assert!(allowed(GrammarKind::Lark, "start: <|im_end|>"));
}

#[test]
fn a_grammar_that_no_text_satisfies_is_an_error_before_any_text() {
    use GrammarKind::{JsonSchema, Lark, Regex};
    let mut model = story_model();
    for (kind, text, named) in [
        (JsonSchema, r#"{"type": "nonsense"}"#, "nonsense"),
        (
            JsonSchema,
            r#"{"type": "string", "minLength": 3, "maxLength": 1}"#,
            "minLength",
        ),
        (
            JsonSchema,
            r#"{"type": "integer", "minimum": 5, "maximum": 4}"#,
            "5",
        ),
        (
            JsonSchema,
            r#"{"allOf": [{"type": "string"}, {"type": "null"}]}"#,
            "nsatisfiable",
        ),
        (
            JsonSchema,
            r#"{"$ref": "http://example.org/x"}"#,
            "example.org",
        ),
        (JsonSchema, r##"{"$ref": "#/missing"}"##, "missing"),
        (JsonSchema, r##"{"$ref": "#"}"##, "no text satisfies"),
        (JsonSchema, "[1, 2]", ""),
        (Regex, "a(b", ""),
        (Lark, "start: missing", "missing"),
        (Lark, "rule \"a\"", ""),
    ] {
        let options = held_to(grammar(kind, text));
        let mut heard = 0;
        let result = model.complete("Once", &hot(0), &options, &mut |_| {
            heard += 1;
            ControlFlow::Continue(())
        });
        let error = match result {
            Err(LanguageModelError::Generate(GenerateError::Grammar(error))) => error,
            other => panic!("{text}: {other:?}"),
        };
        assert!(
            matches!(
                error,
                GrammarError::Invalid { .. } | GrammarError::Unsatisfiable { .. }
            ),
            "{text}: {error}"
        );
        let message = error.to_string();
        assert!(message.contains(named), "{text}: {message}");
        assert!(
            message.contains(kind.name()) && message.len() < 600,
            "{text}: {message}"
        );
        assert!(!message.contains("backtrace"), "{text}: {message}");
        assert_eq!(heard, 0, "{text}");
    }
}

#[test]
fn huge_bounds_of_numbers_are_obeyed_or_refused_with_a_message() {
    let tokenizer = tokenizer(repository("models/llama-story-6m/llama-story-6m-q8_0.gguf"));
    let extremes = [
        "-1e308",
        "-9223372036854775808",
        "-9223372036854775807",
        "9223372036854775807",
        "18446744073709551615",
        "1e308",
    ];
    let mut kept = 0;
    for kind in ["integer", "number"] {
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            for value in extremes {
                let text = format!(r#"{{"type": "{kind}", "{keyword}": {value}}}"#);
                let schema = grammar(GrammarKind::JsonSchema, &text);
                match Constraint::compile(&schema, &tokenizer) {
                    Ok(_) => kept += 1,
                    Err(error) => {
                        let message = error.to_string();
                        assert!(!message.contains("panic"), "{text}: {message}");
                        assert!(!message.contains("overflow"), "{text}: {message}");
                    }
                }
            }
        }
    }
    assert!(kept >= 24, "only {kept} are kept");
    let both = r#"{"type": "integer", "minimum": -1e308, "maximum": 1e308}"#;
    Constraint::compile(&grammar(GrammarKind::JsonSchema, both), &tokenizer).unwrap();
}

#[test]
fn grammars_that_are_too_large_are_refused() {
    use GrammarKind::{JsonSchema, Lark, Regex};
    let refused = |kind, text: &str| Grammar::new(kind, text).unwrap_err();
    for kind in [JsonSchema, Lark, Regex] {
        assert!(matches!(refused(kind, " \n"), GrammarError::Empty { .. }));
        let long = " ".repeat(kind.max_len()) + "1";
        assert!(matches!(refused(kind, &long), GrammarError::TooLong { .. }));
    }
    assert!(matches!(
        refused(JsonSchema, "{"),
        GrammarError::NotJson { .. }
    ));
    let nested = "[".repeat(100_000);
    assert!(matches!(
        refused(JsonSchema, &nested),
        GrammarError::NotJson { .. }
    ));
}

#[test]
fn excessive_work_is_an_error_and_not_a_crash() {
    use GrammarKind::{JsonSchema, Lark, Regex};
    let tokenizer = tokenizer(repository("models/llama-story-6m/llama-story-6m-q8_0.gguf"));
    let words = |count| Vec::from_iter((0..count).map(|i| format!("\"w{i}x{i}\"")));
    let chain = |rule: &str, count: usize| {
        let rules = (0..count).map(|i| format!("{rule}{i}: {rule}{} \"a\"\n", i + 1));
        format!(
            "start: {rule}0\n{}{rule}{count}: \"b\"",
            rules.collect::<String>()
        )
    };
    let defs = (0..9_000).map(|i| {
        format!(
            "\"d{i}\": {{\"items\": {{\"$ref\": \"#/$defs/d{}\"}}}}",
            i + 1
        )
    });
    let defs = defs.collect::<Vec<_>>().join(",");
    for (kind, text) in [
        (Regex, "(".repeat(16_000)),
        (Regex, "a".repeat(16_000)),
        (Regex, "((a|b|c){1,900}){1,900}".to_owned()),
        (Regex, "(a*)*".repeat(1_000)),
        (
            JsonSchema,
            format!("{{\"enum\": [{}]}}", words(5_000).join(",")),
        ),
        (JsonSchema, r##"{"$ref": "#"}"##.to_owned()),
        (
            JsonSchema,
            r#"{"type":"array","minItems":1000000000}"#.to_owned(),
        ),
        (
            JsonSchema,
            r#"{"type":"string","minLength":4000000000}"#.to_owned(),
        ),
        (
            JsonSchema,
            format!("{{\"$ref\": \"#/$defs/d0\", \"$defs\": {{{defs}, \"d9000\": true}}}}"),
        ),
        (Lark, format!("start: {}", words(3_000).join(" | "))),
        (Lark, chain("r", 3_500)),
        (Lark, chain("R", 3_500)),
        (
            Lark,
            format!("start: {}\"a\"{}", "(".repeat(128), ")?".repeat(128)),
        ),
        (Lark, "start: start start | \"a\"".to_owned()),
        (Lark, "start: \"a\"{1000000000}".to_owned()),
    ] {
        let compiled = Constraint::compile(&grammar(kind, &text), &tokenizer);
        if let Ok(mut constraint) = compiled {
            let mut logits = vec![0.0; tokenizer.vocab_len()];
            constraint.mask(&mut logits, tokenizer.end_ids()).unwrap();
        }
    }
}
