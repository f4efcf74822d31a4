//! Tokenizers: from `tokenizer.json` and its companions to GGUF's keys.
//!
//! Source: the `tokenizers` library of Hugging Face for the form of the file; llama.cpp's
//! converters for the keys.

mod bpe;
mod file;
mod pre_tokenizer;
mod special;
mod spm;
mod unigram;

use std::path::Path;

use serde_json::Value as Json;

use super::json::Config;
use super::{HuggingFaceError, TOKENIZER};
use crate::gguf::{StringArray, Value};
use crate::small_file::{optional, read_json};

use file::{AddedToken, TokenizerJson, Vocabulary};

/// The most bytes of a `tokenizer.json`.
const MAX_TOKENIZER_BYTES: usize = 256 << 20;

/// Values of `tokenizer.ggml.token_type`.
mod token_type {
    pub(super) const NORMAL: i32 = 1;
    pub(super) const UNKNOWN: i32 = 2;
    pub(super) const CONTROL: i32 = 3;
    pub(super) const USER_DEFINED: i32 = 4;
    pub(super) const UNUSED: i32 = 5;
    pub(super) const BYTE: i32 = 6;
}

type Metadata = Vec<(String, Value)>;

/// The keys `tokenizer.*` of the tokenizer in `folder`, for a model of `vocab_len` tokens. Empty if
/// the folder has no `tokenizer.json`. `model` is the folder's `config.json`.
pub(crate) fn metadata(
    folder: &Path,
    model: &Config,
    vocab_len: usize,
) -> Result<Metadata, HuggingFaceError> {
    let path = folder.join(TOKENIZER);
    let json = read_json::<TokenizerJson>(&path, MAX_TOKENIZER_BYTES);
    let Some(json) = optional(json)? else {
        return Ok(Vec::new());
    };
    let source = Source { path: &path, json };
    let tokens = source.tokens(vocab_len)?;
    let kind = source.kind(&tokens)?;
    let mut metadata: Metadata = kind
        .into_iter()
        .map(|(key, value)| (format!("tokenizer.ggml.{key}"), value))
        .collect();
    let texts: StringArray = tokens.texts.iter().collect();
    metadata.push(("tokenizer.ggml.tokens".to_owned(), texts.into()));
    metadata.push((
        "tokenizer.ggml.token_type".to_owned(),
        tokens.types.clone().into(),
    ));
    let mut special = special::metadata(folder, model, &source, &tokens)?;
    // For the unknown token, `tokenizer.json` overrides the other files.
    special.retain(|(key, _)| metadata.iter().all(|(own, _)| own != key));
    metadata.extend(special);
    Ok(metadata)
}

/// A `tokenizer.json` and its path.
struct Source<'a> {
    path: &'a Path,
    json: TokenizerJson,
}

/// Texts and types by id.
struct Tokens {
    texts: Vec<String>,
    types: Vec<i32>,
}

impl Tokens {
    fn id_of(&self, text: &str) -> Option<u32> {
        let at = self.texts.iter().position(|token| token == text)?;
        u32::try_from(at).ok()
    }
}

impl Source<'_> {
    fn unsupported(&self, key: &str, value: impl ToString) -> HuggingFaceError {
        HuggingFaceError::Unsupported {
            path: self.path.to_owned(),
            key: key.to_owned(),
            value: value.to_string(),
        }
    }

    /// GGUF's keys of this kind of tokenizer, without the prefix `tokenizer.ggml.`.
    fn kind(&self, tokens: &Tokens) -> Result<Vec<(&'static str, Value)>, HuggingFaceError> {
        match self.json.model.kind() {
            "BPE" if matches!(self.json.model.vocab, Vocabulary::Pieces(_)) => {
                Err(self.unsupported("model.vocab", "a list"))
            }
            "BPE" if self.json.model.byte_fallback => spm::metadata(self, tokens),
            "BPE" => bpe::metadata(self),
            "Unigram" => unigram::metadata(self, tokens),
            other => Err(self.unsupported("model.type", format!("{other:?}"))),
        }
    }

    /// Every token by its id. Ids without a token are unused, for instance those of padded
    /// embeddings.
    fn tokens(&self, vocab_len: usize) -> Result<Tokens, HuggingFaceError> {
        let mut texts: Vec<Option<&str>> = vec![None; vocab_len];
        let mut types = vec![token_type::UNUSED; vocab_len];
        let place = |text: &str, id: u64| {
            let at = usize::try_from(id).ok().filter(|&at| at < vocab_len);
            at.ok_or_else(|| HuggingFaceError::TokenId {
                path: self.path.to_owned(),
                token: text.to_owned(),
                id,
                tokens: vocab_len,
            })
        };
        let taken = |first: &str, second: &str, id| HuggingFaceError::DuplicateTokenId {
            path: self.path.to_owned(),
            first: first.to_owned(),
            second: second.to_owned(),
            id,
        };
        for (text, id) in self.json.model.vocab.ids() {
            let at = place(text, id)?;
            if let Some(first) = texts[at].replace(text) {
                return Err(taken(first, text, id));
            }
            types[at] = self.plain_type(text);
        }
        for AddedToken {
            id,
            content,
            special,
            ..
        } in &self.json.added_tokens
        {
            let at = place(content, *id)?;
            match texts[at].replace(content) {
                Some(first) if first != content => return Err(taken(first, content, *id)),
                _ => {}
            }
            types[at] = if !special {
                token_type::USER_DEFINED
            } else if self.is_unknown(content) {
                token_type::UNKNOWN
            } else {
                token_type::CONTROL
            };
        }
        for (key, is_set) in [
            ("lstrip", AddedToken::lstrip as fn(&AddedToken) -> bool),
            ("rstrip", AddedToken::rstrip),
            ("single_word", AddedToken::single_word),
        ] {
            let mut added = self.json.added_tokens.iter();
            if let Some(at) = added.position(is_set) {
                return Err(self.unsupported(&format!("added_tokens[{at}].{key}"), true));
            }
        }
        let texts = texts.into_iter().enumerate();
        let texts =
            texts.map(|(id, text)| text.map_or_else(|| format!("[PAD{id}]"), str::to_owned));
        Ok(Tokens {
            texts: texts.collect(),
            types,
        })
    }

    /// Whether the token stands for text without tokens. Byte-level vocabularies have no such
    /// token: every text has tokens.
    fn is_unknown(&self, text: &str) -> bool {
        let model = &self.json.model;
        match &model.vocab {
            Vocabulary::Map(_) => model.byte_fallback && model.unk_token.as_deref() == Some(text),
            Vocabulary::Pieces(_) => self.unknown_piece() == Some(text),
        }
    }

    /// The unknown token of a Unigram model.
    fn unknown_piece(&self) -> Option<&str> {
        let Vocabulary::Pieces(pieces) = &self.json.model.vocab else {
            return None;
        };
        let id = usize::try_from(self.json.model.unk_id?).ok()?;
        pieces.get(id).map(|(text, _)| text.as_str())
    }

    fn plain_type(&self, text: &str) -> i32 {
        if self.json.model.byte_fallback && spm::is_byte_token(text) {
            token_type::BYTE
        } else if self.is_unknown(text) {
            token_type::UNKNOWN
        } else {
            token_type::NORMAL
        }
    }
}

/// The kind of a stage of the tokenizer.
fn kind(stage: &Json) -> Option<&str> {
    stage.get("type").and_then(Json::as_str)
}
