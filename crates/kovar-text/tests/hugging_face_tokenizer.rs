//! Ids of `tokenizer.json` files against those of the `tokenizers` package; made by
//! `scripts/goldens/hugging_face_tokenizer.py`.

use std::path::{Path, PathBuf};

use kovar_formats::{Gguf, ModelFile};
use kovar_text::{EncodeOptions, Tokenizer, TokenizerSpec};
use serde_json::{Value, json};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn read_json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(data(name)).unwrap()).unwrap()
}

/// The tokenizer spec of a folder with these files.
fn spec(tokenizer: &Value, files: &[(&str, Value)]) -> TokenizerSpec {
    let folder = tempfile::tempdir().unwrap();
    let vocab = &tokenizer["model"]["vocab"];
    let pieces = vocab.as_array().map(Vec::len);
    let vocab_len = pieces.unwrap_or_else(|| vocab.as_object().unwrap().len());
    let config = json!({
        "model_type": "llama", "vocab_size": vocab_len + 2, "hidden_size": 8,
        "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "max_position_embeddings": 64, "eos_token_id": [2, 1],
    });
    let write = |name: &str, value: &Value| {
        std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    };
    write("config.json", &config);
    write("tokenizer.json", tokenizer);
    for (name, value) in files {
        write(name, value);
    }
    let model = ModelFile::open(folder.path()).unwrap();
    TokenizerSpec::from_metadata(model.metadata()).unwrap()
}

fn assert_ids(tokenizer: &Tokenizer, golden: &Value, is_comparable: impl Fn(&str) -> bool) {
    let strings = read_json("tok-strings.json");
    let strings = strings.as_array().unwrap();
    let rows = golden["ids"].as_array().unwrap();
    assert_eq!(rows.len(), strings.len());
    let mut wrong = Vec::new();
    for (text, rows) in strings.iter().zip(rows) {
        let text = text.as_str().unwrap();
        for (add_special, expected) in [false, true].into_iter().zip(rows.as_array().unwrap()) {
            let options = EncodeOptions {
                add_special,
                parse_special: true,
                continues: false,
            };
            let expected: Vec<u32> = serde_json::from_value(expected.clone()).unwrap();
            let found = tokenizer.encode(text, options).unwrap();
            if found != expected && is_comparable(text) {
                wrong.push(format!(
                    "{text:?}\n  found    {found:?}\n  expected {expected:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The byte-level tokenizer with the values of `family`, and the family's ids.
fn bpe(family: &str) -> (Value, Value) {
    let mut tokenizer = read_json("hf-bpe.json");
    let golden = read_json("hf-ids.json")[family].clone();
    for key in ["normalizer", "pre_tokenizer", "post_processor"] {
        tokenizer[key] = golden[key].clone();
    }
    tokenizer["model"]["ignore_merges"] = golden["ignore_merges"].clone();
    (tokenizer, golden)
}

fn bpe_ids_are_those_of_tokenizers(family: &str, is_comparable: impl Fn(&str) -> bool) {
    let (tokenizer, golden) = bpe(family);
    let spec = spec(&tokenizer, &[]);
    assert_eq!(spec.pre.as_deref(), Some(family));
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    assert!(tokenizer.warnings().is_empty());
    assert_ids(&tokenizer, &golden, is_comparable);
}

#[test]
fn gpt2_ids_are_those_of_tokenizers() {
    bpe_ids_are_those_of_tokenizers("gpt-2", |_| true);
}

#[test]
fn smollm_ids_are_those_of_tokenizers() {
    bpe_ids_are_those_of_tokenizers("smollm", |_| true);
}

#[test]
fn llama_bpe_ids_are_those_of_tokenizers() {
    bpe_ids_are_those_of_tokenizers("llama-bpe", |_| true);
}

/// Qwen's tokenizer composes characters first; GGUF and llama.cpp do not.
#[test]
fn qwen2_ids_of_composed_text_are_those_of_tokenizers() {
    let is_combining = |c: char| matches!(c, '\u{300}'..='\u{36f}' | '\u{1112}'..='\u{11ab}');
    bpe_ids_are_those_of_tokenizers("qwen2", |text| !text.contains(is_combining));
}

#[test]
fn sentencepiece_ids_are_those_of_tokenizers() {
    let spec = spec(&read_json("hf-spm.json"), &[]);
    assert_eq!((&*spec.model, spec.add_space_prefix), ("llama", Some(true)));
    assert_eq!((spec.bos, spec.eos), (Some(1), Some(2)));
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    assert_ids(&tokenizer, &read_json("hf-ids.json")["spm"], |_| true);
}

#[test]
fn a_metaspace_pre_tokenizer_is_the_same_as_the_normalizer() {
    let mut tokenizer = read_json("hf-spm.json");
    tokenizer["normalizer"] = Value::Null;
    for (scheme, prefix) in [("always", true), ("first", true), ("never", false)] {
        tokenizer["pre_tokenizer"] = json!({
            "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme,
            "split": false,
        });
        assert_eq!(spec(&tokenizer, &[]).add_space_prefix, Some(prefix));
    }
}

#[test]
fn a_folder_describes_the_vocabulary_as_gguf_does() {
    let (tokenizer, _) = bpe("gpt-2");
    let found = spec(&tokenizer, &[]);
    let file = Gguf::open(data("tok-bpe.gguf")).unwrap();
    let expected = TokenizerSpec::from_metadata(file.metadata()).unwrap();
    let len = expected.tokens.len();
    assert_eq!(found.tokens[..len], expected.tokens);
    let types = found.token_types.unwrap();
    assert_eq!(types[..len], expected.token_types.unwrap());
    assert_eq!(found.merges, expected.merges);
    // Embeddings beyond the vocabulary get unused tokens.
    assert_eq!(
        found.tokens[len..],
        [format!("[PAD{len}]"), format!("[PAD{}]", len + 1)]
    );
    assert_eq!(types[len..], [5, 5]);
}

#[test]
fn special_tokens_and_templates_come_from_the_settings() {
    let (tokenizer, _) = bpe("gpt-2");
    let settings = json!({
        "bos_token": {"content": "<|im_start|>", "special": true},
        "eos_token": "<|im_end|>",
        "unk_token": "no such token",
        "pad_token": null,
        "add_bos_token": true,
        "chat_template": [
            {"name": "tool_use", "template": "tools"},
            {"name": "default", "template": "plain"},
        ],
    });
    let generation = json!({"eos_token_id": [0, 2]});
    let files = [
        ("tokenizer_config.json", settings),
        ("generation_config.json", generation),
    ];
    let found = spec(&tokenizer, &files);
    assert_eq!(
        (found.bos, found.eos, found.unknown),
        (Some(1), Some(2), None)
    );
    assert_eq!((found.add_bos, found.add_eos), (Some(true), Some(false)));
    assert_eq!(found.eos_ids, [0, 1, 2]);
    assert_eq!(found.chat_template.as_deref(), Some("plain"));
    let tokenizer = Tokenizer::from_spec(found).unwrap();
    for id in 0..3 {
        assert!(tokenizer.is_end_of_generation(id));
    }
}

#[test]
fn a_template_file_goes_before_the_settings() {
    let (tokenizer, _) = bpe("gpt-2");
    let settings = json!({"chat_template": "old"});
    // Any text, even JSON, is a valid template.
    let files = [
        ("tokenizer_config.json", settings),
        ("chat_template.jinja", json!("new")),
    ];
    let found = spec(&tokenizer, &files);
    assert_eq!(found.chat_template.as_deref(), Some("\"new\""));
}

fn unigram_ids_are_those_of_tokenizers(name: &str, is_comparable: impl Fn(&str) -> bool) {
    let settings = [("tokenizer_config.json", json!({"eos_token": "</s>"}))];
    let found = spec(&read_json(&format!("hf-{name}.json")), &settings);
    let file = Gguf::open(data(&format!("tok-{name}.gguf"))).unwrap();
    let expected = TokenizerSpec::from_metadata(file.metadata()).unwrap();
    let len = expected.tokens.len();
    assert_eq!(found.tokens[..len], expected.tokens);
    assert_eq!(
        found.token_types.as_ref().unwrap()[..len],
        expected.token_types.unwrap()
    );
    assert_eq!(
        found.scores.as_ref().unwrap()[..len],
        expected.scores.unwrap()
    );
    assert_eq!(found.precompiled_charsmap, expected.precompiled_charsmap);
    assert_eq!(found.add_space_prefix, expected.add_space_prefix);
    assert_eq!(
        found.remove_extra_whitespaces,
        expected.remove_extra_whitespaces
    );
    assert_eq!(found.unknown, Some(2));
    let tokenizer = Tokenizer::from_spec(found).unwrap();
    assert_ids(&tokenizer, &read_json("hf-ids.json")[name], is_comparable);
}

/// kovar follows SentencePiece: the space before a text is also added before user-defined tokens
/// ("ab", "<user>"), and U+2581 in a text is a space. `tokenizers` splits at added tokens first,
/// and keeps the character.
#[test]
fn unigram_ids_are_those_of_tokenizers_where_it_agrees_with_sentencepiece() {
    unigram_ids_are_those_of_tokenizers("unigram", |text| {
        !["ab", "<user>", "\u{2581}"]
            .iter()
            .any(|part| text.contains(part))
    });
}

/// `tokenizers` encodes the text of a byte token as that byte.
#[test]
fn unigram_ids_with_byte_tokens_are_those_of_tokenizers() {
    unigram_ids_are_those_of_tokenizers("unigram-bytes", |text| !text.contains("<0x"));
}
