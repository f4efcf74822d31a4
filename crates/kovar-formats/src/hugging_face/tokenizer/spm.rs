//! SentencePiece's BPE in the form of `tokenizers` (merges and byte tokens): GGUF's tokenizer
//! `llama`.

use std::collections::{HashMap, HashSet};

use serde_json::{Value as Json, json};

use super::super::HuggingFaceError;
use super::super::json::shown;
use super::bpe::check_model;
use super::{Source, Tokens, kind, token_type};
use crate::gguf::Value;

/// The character for a space in SentencePiece's tokens.
pub(super) const SPACE: &str = "\u{2581}";

/// The score of tokens that no merge rule makes. It is below all others.
const UNMERGED: f32 = -1e9;

/// The most bytes of a token that a rule makes. The time to check a token grows with its length. By
/// default SentencePiece trains tokens of at most 16 characters.
const MAX_MERGED: usize = 512;

/// Whether `text` is the token of a byte, such as `<0x0A>`.
pub(super) fn is_byte_token(text: &str) -> bool {
    let digits = text
        .strip_prefix("<0x")
        .and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|d| d.len() == 2 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

pub(super) fn metadata(
    source: &Source<'_>,
    tokens: &Tokens,
) -> Result<Vec<(&'static str, Value)>, HuggingFaceError> {
    check_model(source)?;
    let prefix = adds_space_prefix(source)?;
    Ok(vec![
        ("model", "llama".into()),
        ("pre", "default".into()),
        ("scores", scores(source, tokens)?.into()),
        ("add_space_prefix", prefix.into()),
    ])
}

/// Whether a space is added before a text. The normaliser or the pre-tokenizer must replace spaces
/// by U+2581 and must not change the text otherwise.
///
/// The scheme `first` adds no space after special tokens. GGUF has no key for this, and llama.cpp
/// adds the space there as well.
fn adds_space_prefix(source: &Source<'_>) -> Result<bool, HuggingFaceError> {
    let prepend = json!({"type": "Prepend", "prepend": SPACE});
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
    let (normalizer, pre) = (&source.json.normalizer, &source.json.pre_tokenizer);
    let stages = match kind(normalizer) {
        Some("Sequence") => normalizer.get("normalizers").and_then(Json::as_array),
        _ => None,
    };
    let alone = std::slice::from_ref(normalizer);
    let stages = stages.map_or(alone, Vec::as_slice);
    if pre.is_null() {
        match stages {
            [first, second] if *first == prepend && *second == replace => return Ok(true),
            [only] if *only == replace => return Ok(false),
            _ => {}
        }
    }
    let is = |key: &str, wanted: Json| pre.get(key) == Some(&wanted);
    if normalizer.is_null()
        && is("type", "Metaspace".into())
        && is("replacement", SPACE.into())
        && is("split", false.into())
    {
        match pre.get("prepend_scheme").and_then(Json::as_str) {
            Some("first" | "always") => return Ok(true),
            Some("never") => return Ok(false),
            _ => {}
        }
    }
    if pre.is_null() {
        Err(source.unsupported("normalizer", shown(Some(normalizer))))
    } else {
        Err(source.unsupported("pre_tokenizer", shown(Some(pre))))
    }
}

/// Scores with which SentencePiece's algorithm gives the same result as the merges in their order.
/// The algorithm joins the two neighbours whose token has the highest score.
///
/// Such scores exist if the rules that make the same token are consecutive, and if there is a rule
/// for any two tokens that form a third. A token that is neither a character nor made by a rule
/// never occurs.
fn scores(source: &Source<'_>, tokens: &Tokens) -> Result<Vec<f32>, HuggingFaceError> {
    let order = |left: &str, right: &str| HuggingFaceError::MergeOrder {
        path: source.path.to_owned(),
        left: left.to_owned(),
        right: right.to_owned(),
    };
    let ids: HashMap<&str, usize> = (0..).zip(&tokens.texts).map(|(i, t)| (&**t, i)).collect();
    let mut scores = vec![UNMERGED; tokens.texts.len()];
    let mut rules: HashSet<(usize, usize)> = HashSet::new();
    let mut made = 0usize;
    // The most bytes of a character and of a token that a rule makes.
    let mut longest = char::MAX.len_utf8();
    let mut last = None;
    for (rank, merge) in source.json.model.merges.iter().enumerate() {
        let bad = || HuggingFaceError::BadMerge {
            path: source.path.to_owned(),
            rank,
        };
        let (left, right) = merge.pair().ok_or_else(bad)?;
        let joined = format!("{left}{right}");
        if joined.len() > MAX_MERGED {
            return Err(HuggingFaceError::LongMerge {
                path: source.path.to_owned(),
                rank,
                len: joined.len(),
                most: MAX_MERGED,
            });
        }
        longest = longest.max(joined.len());
        let (Some(&l), Some(&r), Some(&id)) = (ids.get(left), ids.get(right), ids.get(&*joined))
        else {
            return Err(bad());
        };
        rules.insert((l, r));
        if last == Some(id) {
            continue;
        }
        match scores.get_mut(id) {
            Some(score) if *score == UNMERGED => *score = -(made as f32),
            _ => return Err(order(left, right)),
        }
        made += 1;
        last = Some(id);
    }
    for (text, &kind) in tokens.texts.iter().zip(&tokens.types) {
        if kind != token_type::NORMAL {
            continue;
        }
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            // The longer of the two never occurs.
            if left.len().max(right.len()) > longest {
                continue;
            }
            if let (Some(&l), Some(&r)) = (ids.get(left), ids.get(right))
                && !rules.contains(&(l, r))
            {
                return Err(order(left, right));
            }
        }
    }
    Ok(scores)
}
