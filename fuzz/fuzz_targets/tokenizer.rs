//! Any vocabulary is a tokenizer or an error; any text has ids and an end, and comes back where
//! every byte has a token.
#![no_main]

use arbitrary::Arbitrary;
use kovar_text::{DecodeOptions, EncodeOptions, Tokenizer, TokenizerSpec};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Case {
    kind: Kind,
    /// Whether every byte gets a token, before the others.
    all_bytes: bool,
    tokens: Vec<Token>,
    merges: Vec<(u8, u8)>,
    pre: Option<Pre>,
    unknown: Option<u8>,
    add_space_prefix: Option<bool>,
    remove_extra_whitespaces: Option<bool>,
    charsmap: Option<Vec<u8>>,
    add_special: bool,
    parse_special: bool,
    text: String,
    ids: Vec<u16>,
}

#[derive(Arbitrary, Debug, Clone, Copy, PartialEq)]
enum Kind {
    Bpe,
    Spm,
    Unigram,
    World,
}

#[derive(Arbitrary, Debug)]
enum Pre {
    Default,
    Gpt2,
    Llama,
    Qwen2,
    Other(String),
}

#[derive(Arbitrary, Debug)]
struct Token {
    text: String,
    score: f32,
    kind: u8,
}

/// The character that byte-level BPE writes a byte as.
fn byte_level(byte: u8) -> char {
    let is_shown = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_shown(byte) {
        return char::from(byte);
    }
    let hidden_before = (0..byte).filter(|&byte| !is_shown(byte)).count() as u32;
    char::from_u32(256 + hidden_before).unwrap()
}

fn spec(case: &Case) -> TokenizerSpec {
    let mut spec = TokenizerSpec::default();
    let (mut scores, mut types) = (Vec::new(), Vec::new());
    let mut add = |text: String, score, kind| {
        spec.tokens.push(text);
        scores.push(score);
        types.push(kind);
    };
    if case.all_bytes {
        for byte in 0..=255u8 {
            match case.kind {
                Kind::Bpe => add(byte_level(byte).to_string(), 0.0, 1),
                Kind::World => add(format!("\\x{byte:02x}"), 0.0, 1),
                _ => add(format!("<0x{byte:02X}>"), 0.0, 6),
            }
        }
    }
    for token in &case.tokens {
        add(token.text.clone(), token.score, i32::from(token.kind % 8));
    }
    let token = |index: u8| {
        let index = usize::from(index) % spec.tokens.len().max(1);
        spec.tokens.get(index).cloned().unwrap_or_default()
    };
    let merges = case.merges.iter();
    spec.merges = Some(
        merges
            .map(|&(a, b)| format!("{} {}", token(a), token(b)))
            .collect(),
    );
    spec.model = match case.kind {
        Kind::Bpe => "gpt2",
        Kind::Spm => "llama",
        Kind::Unigram => "t5",
        Kind::World => "rwkv",
    }
    .to_owned();
    spec.pre = case.pre.as_ref().map(|pre| match pre {
        Pre::Default => "default".to_owned(),
        Pre::Gpt2 => "gpt-2".to_owned(),
        Pre::Llama => "llama-bpe".to_owned(),
        Pre::Qwen2 => "qwen2".to_owned(),
        Pre::Other(name) => name.clone(),
    });
    spec.scores = Some(scores);
    spec.token_types = Some(types);
    spec.unknown = case.unknown.map(u32::from);
    spec.add_bos = Some(false);
    spec.add_eos = Some(false);
    spec.add_space_prefix = case.add_space_prefix;
    spec.remove_extra_whitespaces = case.remove_extra_whitespaces;
    spec.precompiled_charsmap = case.charsmap.clone();
    spec
}

fuzz_target!(|case: Case| {
    let tokenizer = match Tokenizer::from_spec(spec(&case)) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let options = DecodeOptions {
        render_special: true,
    };
    let given: Vec<u32> = case.ids.iter().map(|&id| u32::from(id)).collect();
    let known = given
        .iter()
        .all(|&id| (id as usize) < tokenizer.vocab_len());
    assert_eq!(tokenizer.decode(&given, options).is_ok(), known);
    let encode = EncodeOptions {
        add_special: case.add_special,
        parse_special: case.parse_special,
        ..EncodeOptions::default()
    };
    let ids = match tokenizer.encode(&case.text, encode) {
        Ok(ids) => ids,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_len()));
    let decoded = tokenizer.decode(&ids, options).unwrap();
    let changes_text = match case.kind {
        Kind::Bpe | Kind::World => false,
        // A space is added after each special token.
        Kind::Spm => case.add_space_prefix != Some(false),
        Kind::Unigram => {
            case.add_space_prefix == Some(true)
                || case.remove_extra_whitespaces == Some(true)
                || case.charsmap.is_some()
        }
    };
    if case.all_bytes && !changes_text {
        let text = match case.kind {
            Kind::Bpe | Kind::World => case.text.clone(),
            _ => case.text.replace('\u{2581}', " "),
        };
        let decoded = match case.kind {
            Kind::Bpe | Kind::World => decoded,
            // User-defined tokens keep their own.
            _ => String::from_utf8_lossy(&decoded)
                .replace('\u{2581}', " ")
                .into_bytes(),
        };
        assert_eq!(String::from_utf8_lossy(&decoded), text);
    }
});
