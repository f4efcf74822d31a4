use kovar_formats::{Gguf, Metadata, MetadataError};

use super::error::TokenizerError;

/// Names of the GGUF metadata keys that describe a tokenizer.
pub(crate) mod key {
    pub const MODEL: &str = "tokenizer.ggml.model";
    pub const PRE: &str = "tokenizer.ggml.pre";
    pub const TOKENS: &str = "tokenizer.ggml.tokens";
    pub const SCORES: &str = "tokenizer.ggml.scores";
    pub const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";
    pub const MERGES: &str = "tokenizer.ggml.merges";
    pub const BOS: &str = "tokenizer.ggml.bos_token_id";
    pub const EOS: &str = "tokenizer.ggml.eos_token_id";
    pub const EOS_IDS: &str = "tokenizer.ggml.eos_token_ids";
    pub const EOT: &str = "tokenizer.ggml.eot_token_id";
    pub const EOM: &str = "tokenizer.ggml.eom_token_id";
    pub const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
    pub const PADDING: &str = "tokenizer.ggml.padding_token_id";
    pub const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
    pub const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
    pub const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
    pub const REMOVE_EXTRA_WHITESPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
    pub const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";
    pub const CHAT_TEMPLATE: &str = "tokenizer.chat_template";
}

/// A tokenizer as a model file describes it, not yet checked.
///
/// The fields mirror the `tokenizer.*` keys of the GGUF specification
/// (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>); `None` means that the key is
/// absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenizerSpec {
    /// `tokenizer.ggml.model`: `gpt2` (byte-level BPE), `llama` (SentencePiece's BPE), `t5`
    /// (SentencePiece's unigram model) or `rwkv` (RWKV World).
    pub model: String,
    /// `tokenizer.ggml.pre`: how text is split into words before merging (byte-level BPE only).
    pub pre: Option<String>,
    /// `tokenizer.ggml.tokens`: the text of every token, by id.
    pub tokens: Vec<String>,
    /// `tokenizer.ggml.scores`: merge priority of every token, higher first, or its log probability
    /// (SentencePiece only).
    pub scores: Option<Vec<f32>>,
    /// `tokenizer.ggml.token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6
    /// byte.
    pub token_types: Option<Vec<i32>>,
    /// `tokenizer.ggml.merges`: pairs `left right` in order of priority (byte-level BPE only).
    pub merges: Option<Vec<String>>,
    /// `tokenizer.ggml.bos_token_id`
    pub bos: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`
    pub eos: Option<u32>,
    /// `tokenizer.ggml.eos_token_ids`: further tokens that end a text.
    pub eos_ids: Vec<u32>,
    /// `tokenizer.ggml.eot_token_id`: end of a turn in a conversation.
    pub eot: Option<u32>,
    /// `tokenizer.ggml.eom_token_id`: end of a message that expects a tool's result.
    pub eom: Option<u32>,
    /// `tokenizer.ggml.unknown_token_id`
    pub unknown: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`
    pub padding: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`
    pub add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`
    pub add_eos: Option<bool>,
    /// `tokenizer.ggml.add_space_prefix` (SentencePiece only)
    pub add_space_prefix: Option<bool>,
    /// `tokenizer.ggml.remove_extra_whitespaces` (unigram only)
    pub remove_extra_whitespaces: Option<bool>,
    /// `tokenizer.ggml.precompiled_charsmap`: SentencePiece's normalisation (unigram only).
    pub precompiled_charsmap: Option<Vec<u8>>,
    /// `tokenizer.chat_template`: Jinja source.
    pub chat_template: Option<String>,
}

impl TokenizerSpec {
    /// Reads the `tokenizer.*` keys of a file; absent keys are `None`.
    ///
    /// # Errors
    /// [`TokenizerError::NoTokenizer`] if the kind of tokenizer is absent,
    /// [`TokenizerError::MissingKey`] if the tokens are absent, [`TokenizerError::Metadata`] if a
    /// value has the wrong type.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let text = |key| Ok::<_, MetadataError>(metadata.get_str(key)?.map(str::to_owned));
        let texts = |key| {
            let texts = metadata.get_str_array(key)?;
            Ok::<_, MetadataError>(texts.map(|texts| texts.iter().map(str::to_owned).collect()))
        };
        Ok(Self {
            model: text(key::MODEL)?.ok_or(TokenizerError::NoTokenizer { key: key::MODEL })?,
            pre: text(key::PRE)?,
            tokens: texts(key::TOKENS)?.ok_or(TokenizerError::MissingKey { key: key::TOKENS })?,
            scores: metadata.get_f32_array(key::SCORES)?,
            token_types: metadata.get_i32_array(key::TOKEN_TYPE)?,
            merges: texts(key::MERGES)?,
            bos: metadata.get_u32(key::BOS)?,
            eos: metadata.get_u32(key::EOS)?,
            eos_ids: metadata.get_u32_array(key::EOS_IDS)?.unwrap_or_default(),
            eot: metadata.get_u32(key::EOT)?,
            eom: metadata.get_u32(key::EOM)?,
            unknown: metadata.get_u32(key::UNKNOWN)?,
            padding: metadata.get_u32(key::PADDING)?,
            add_bos: metadata.get_bool(key::ADD_BOS)?,
            add_eos: metadata.get_bool(key::ADD_EOS)?,
            add_space_prefix: metadata.get_bool(key::ADD_SPACE_PREFIX)?,
            remove_extra_whitespaces: metadata.get_bool(key::REMOVE_EXTRA_WHITESPACES)?,
            precompiled_charsmap: metadata.get_bytes(key::CHARSMAP)?,
            chat_template: text(key::CHAT_TEMPLATE)?,
        })
    }

    /// [`Self::from_metadata`] of a GGUF file.
    ///
    /// # Errors
    /// As [`Self::from_metadata`].
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        Self::from_metadata(gguf.metadata())
    }
}
