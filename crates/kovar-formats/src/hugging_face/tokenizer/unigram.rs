//! SentencePiece's unigram model: GGUF's tokenizer `t5`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value as Json, json};

use super::super::HuggingFaceError;
use super::super::json::shown;
use super::spm::SPACE;
use super::{Source, Tokens, Vocabulary, kind};
use crate::gguf::Value;

pub(super) fn metadata(
    source: &Source<'_>,
    tokens: &Tokens,
) -> Result<Vec<(&'static str, Value)>, HuggingFaceError> {
    let Vocabulary::Pieces(pieces) = &source.json.model.vocab else {
        return Err(source.unsupported("model.vocab", "an object"));
    };
    let normalizer = Normalizer::read(source)?;
    let words = Words::read(source)?;
    // `WhitespaceSplit` also cuts at tabs, line ends and so on. This is the same as cutting at
    // spaces only if the map replaces them by spaces.
    if words.splits_at_spaces && normalizer.charsmap.is_none() {
        let pre = &source.json.pre_tokenizer;
        return Err(source.unsupported("pre_tokenizer", shown(Some(pre))));
    }
    let mut scores = vec![0.0; tokens.texts.len()];
    for (score, (_, given)) in scores.iter_mut().zip(pieces) {
        *score = *given as f32;
    }
    let removes = normalizer.removes_spaces || words.splits_at_spaces;
    let mut metadata: Vec<(&'static str, Value)> = vec![
        ("model", "t5".into()),
        ("pre", "default".into()),
        ("scores", scores.into()),
        ("add_space_prefix", words.adds_prefix.into()),
        ("remove_extra_whitespaces", removes.into()),
    ];
    if let Some(charsmap) = normalizer.charsmap {
        metadata.push(("precompiled_charsmap", charsmap.into()));
    }
    if let Some(id) = source.json.model.unk_id {
        let unknown = source.unknown_piece().and_then(|text| tokens.id_of(text));
        let id = unknown.ok_or_else(|| source.unsupported("model.unk_id", id))?;
        metadata.push(("unknown_token_id", id.into()));
    }
    Ok(metadata)
}

/// How the characters of a text are changed.
#[derive(Default)]
struct Normalizer {
    charsmap: Option<Vec<u8>>,
    removes_spaces: bool,
}

impl Normalizer {
    /// Reads a precompiled map, the removal of surplus spaces (two stages in the files of
    /// transformers), both, or nothing.
    fn read(source: &Source<'_>) -> Result<Self, HuggingFaceError> {
        let normalizer = &source.json.normalizer;
        let unsupported = || source.unsupported("normalizer", shown(Some(normalizer)));
        let mut stages = stages(normalizer, "normalizers").ok_or_else(unsupported)?;
        let mut read = Self::default();
        if let [first, rest @ ..] = stages
            && kind(first) == Some("Precompiled")
        {
            let map = first.get("precompiled_charsmap").and_then(Json::as_str);
            let map = map.and_then(|map| BASE64_STANDARD.decode(map).ok());
            read.charsmap = Some(map.ok_or_else(unsupported)?);
            stages = rest;
        }
        let strip = json!({"type": "Strip", "strip_left": false, "strip_right": true});
        let join = json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE});
        match stages {
            [] => Ok(read),
            [first, second] if *first == strip && *second == join => {
                read.removes_spaces = true;
                Ok(read)
            }
            _ => Err(unsupported()),
        }
    }
}

/// How a text is cut into words.
struct Words {
    splits_at_spaces: bool,
    adds_prefix: bool,
}

impl Words {
    fn read(source: &Source<'_>) -> Result<Self, HuggingFaceError> {
        let pre = &source.json.pre_tokenizer;
        let read = || {
            let (splits_at_spaces, last) = match stages(pre, "pretokenizers")? {
                [only] => (false, only),
                [first, last] if kind(first) == Some("WhitespaceSplit") => (true, last),
                _ => return None,
            };
            let is_metaspace = kind(last) == Some("Metaspace")
                && last.get("replacement").and_then(Json::as_str) == Some(SPACE);
            let scheme = last.get("prepend_scheme").and_then(Json::as_str);
            let adds_prefix = match (scheme, last.get("add_prefix_space")) {
                (Some("always" | "first"), _) => true,
                (Some("never"), _) => false,
                (None, Some(Json::Bool(adds))) => *adds,
                _ => return None,
            };
            is_metaspace.then_some(Self {
                splits_at_spaces,
                adds_prefix,
            })
        };
        read().ok_or_else(|| source.unsupported("pre_tokenizer", shown(Some(pre))))
    }
}

/// The stages of a sequence under `key`, a single stage, or none.
fn stages<'a>(value: &'a Json, key: &str) -> Option<&'a [Json]> {
    match kind(value) {
        None if value.is_null() => Some(&[]),
        Some("Sequence") => value.get(key)?.as_array().map(Vec::as_slice),
        _ => Some(std::slice::from_ref(value)),
    }
}
