//! The form of `tokenizer.json`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The contents of a `tokenizer.json` that determine how text becomes ids.
#[derive(Debug, Deserialize)]
pub(super) struct TokenizerJson {
    #[serde(default)]
    pub(super) added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) post_processor: Value,
    pub(super) model: Model,
}

#[derive(Debug, Deserialize)]
pub(super) struct AddedToken {
    pub(super) id: u64,
    pub(super) content: String,
    #[serde(default)]
    pub(super) special: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

impl AddedToken {
    pub(super) fn lstrip(&self) -> bool {
        self.lstrip
    }

    pub(super) fn rstrip(&self) -> bool {
        self.rstrip
    }

    pub(super) fn single_word(&self) -> bool {
        self.single_word
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Model {
    /// Absent in old files of BPE models.
    #[serde(rename = "type")]
    kind: Option<String>,
    pub(super) vocab: Vocabulary,
    #[serde(default)]
    pub(super) merges: Vec<Merge>,
    #[serde(default)]
    pub(super) byte_fallback: bool,
    #[serde(default)]
    pub(super) ignore_merges: bool,
    pub(super) dropout: Option<f64>,
    pub(super) unk_token: Option<String>,
    /// For Unigram models only.
    pub(super) unk_id: Option<u64>,
    pub(super) continuing_subword_prefix: Option<String>,
    pub(super) end_of_word_suffix: Option<String>,
}

impl Model {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("BPE")
    }
}

/// Tokens with their ids, or a list of tokens with their scores.
#[derive(Debug)]
pub(super) enum Vocabulary {
    Map(Vec<(String, u64)>),
    /// For Unigram models only.
    Pieces(Vec<(String, f64)>),
}

impl Vocabulary {
    /// Every token and its id.
    pub(super) fn ids(&self) -> Box<dyn Iterator<Item = (&str, u64)> + '_> {
        match self {
            Self::Map(tokens) => Box::new(tokens.iter().map(|(text, id)| (text.as_str(), *id))),
            Self::Pieces(pieces) => Box::new(pieces.iter().map(|(text, _)| text.as_str()).zip(0..)),
        }
    }
}

/// A merge rule. Old files store both tokens as one text.
#[derive(Debug)]
pub(super) enum Merge {
    Text(String),
    Pair(String, String),
}

impl Merge {
    /// Both tokens.
    pub(super) fn pair(&self) -> Option<(&str, &str)> {
        match self {
            Self::Text(text) => text.split_once(' '),
            Self::Pair(left, right) => Some((left, right)),
        }
    }
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VocabularyVisitor;

        impl<'de> Visitor<'de> for VocabularyVisitor {
            type Value = Vocabulary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from tokens to ids or a list of pieces")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocabulary, A::Error> {
                let mut tokens = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    tokens.push(entry);
                }
                Ok(Vocabulary::Map(tokens))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vocabulary, A::Error> {
                let mut pieces = Vec::new();
                while let Some(piece) = seq.next_element()? {
                    pieces.push(piece);
                }
                Ok(Vocabulary::Pieces(pieces))
            }
        }

        deserializer.deserialize_any(VocabularyVisitor)
    }
}

impl<'de> Deserialize<'de> for Merge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MergeVisitor;

        impl<'de> Visitor<'de> for MergeVisitor {
            type Value = Merge;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two tokens, in a list or with a space between them")
            }

            fn visit_str<E>(self, text: &str) -> Result<Merge, E> {
                Ok(Merge::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Merge, A::Error> {
                let missing = || serde::de::Error::invalid_length(0, &self);
                let left = seq.next_element()?.ok_or_else(missing)?;
                let right = seq.next_element()?.ok_or_else(missing)?;
                match seq.next_element::<String>()? {
                    None => Ok(Merge::Pair(left, right)),
                    Some(_) => Err(serde::de::Error::invalid_length(3, &self)),
                }
            }
        }

        deserializer.deserialize_any(MergeVisitor)
    }
}
