use std::collections::HashMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

use super::error::TokenizerError;
use super::spec::key;

/// The role of a token, with the numbers of GGUF's `tokenizer.ggml.token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenType {
    /// A piece of ordinary text.
    Normal,
    /// Stands for text that the vocabulary cannot encode.
    Unknown,
    /// Controls the model (begin of text, end of turn); ordinary text is never encoded to it.
    Control,
    /// Added to a trained vocabulary; found in text before the text is split.
    UserDefined,
    /// An unused id.
    Unused,
    /// One byte, written `<0xHH>`.
    Byte,
}

impl TokenType {
    fn from_gguf(value: i32) -> Option<Self> {
        Some(match value {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }

    /// Whether the token stands for its own text and is not composed of smaller pieces.
    pub fn is_special(self) -> bool {
        matches!(self, Self::Control | Self::UserDefined | Self::Unknown)
    }
}

/// Texts and types by id, and ids by text.
#[derive(Debug)]
pub(crate) struct Vocab {
    texts: Vec<Arc<str>>,
    types: Vec<TokenType>,
    ids: HashMap<Arc<str>, u32>,
}

impl Vocab {
    /// Checks that tokens are non-empty and distinct and that types are known.
    pub fn new(tokens: Vec<String>, types: Option<Vec<i32>>) -> Result<Self, TokenizerError> {
        if tokens.is_empty() {
            return Err(TokenizerError::EmptyVocabulary { key: key::TOKENS });
        }
        let len = tokens.len();
        if u32::try_from(len).is_err() {
            return Err(TokenizerError::TooManyTokens {
                key: key::TOKENS,
                len,
            });
        }
        let types = match types {
            None => vec![TokenType::Normal; len],
            Some(values) if values.len() != len => {
                return Err(TokenizerError::LengthMismatch {
                    key: key::TOKEN_TYPE,
                    len: values.len(),
                    tokens: len,
                });
            }
            Some(values) => (0u32..)
                .zip(values)
                .map(|(id, value)| {
                    TokenType::from_gguf(value).ok_or(TokenizerError::UnknownTokenType {
                        key: key::TOKEN_TYPE,
                        id,
                        value,
                    })
                })
                .collect::<Result<_, _>>()?,
        };
        let mut texts = Vec::with_capacity(len);
        let mut ids = HashMap::with_capacity(len);
        for (id, token) in (0u32..).zip(tokens) {
            if token.is_empty() {
                return Err(TokenizerError::EmptyToken {
                    key: key::TOKENS,
                    id,
                });
            }
            let text: Arc<str> = token.into();
            if let Some(first) = ids.insert(text.clone(), id) {
                return Err(TokenizerError::DuplicateToken {
                    key: key::TOKENS,
                    token: text.to_string(),
                    first,
                    second: id,
                });
            }
            texts.push(text);
        }
        Ok(Self { texts, types, ids })
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn id_of(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    pub fn text(&self, id: u32) -> Option<&str> {
        self.texts.get(id as usize).map(|text| &**text)
    }

    pub fn token_type(&self, id: u32) -> Option<TokenType> {
        self.types.get(id as usize).copied()
    }

    /// All tokens, in order of id.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str, TokenType)> {
        (0u32..)
            .zip(self.texts.iter().zip(&self.types))
            .map(|(id, (text, &token_type))| (id, &**text, token_type))
    }

    /// Checks that there is one score per token and that no score is NaN.
    pub fn check_scores(&self, scores: &[f32]) -> Result<(), TokenizerError> {
        let key = key::SCORES;
        if scores.len() != self.len() {
            return Err(TokenizerError::LengthMismatch {
                key,
                len: scores.len(),
                tokens: self.len(),
            });
        }
        match (0u32..).zip(scores).find(|(_, score)| score.is_nan()) {
            Some((id, _)) => Err(TokenizerError::BadScore { key, id }),
            None => Ok(()),
        }
    }

    /// The id of the byte token of each byte value, `<0x00>` to `<0xFF>`.
    fn byte_tokens(&self) -> Result<[Option<u32>; 256], TokenizerError> {
        let mut ids = [None; 256];
        for (id, text, token_type) in self.iter() {
            if token_type != TokenType::Byte {
                continue;
            }
            let slot = parse_byte_token(text).and_then(|byte| ids.get_mut(usize::from(byte)));
            match slot {
                Some(slot) => *slot = Some(id),
                None => {
                    return Err(TokenizerError::BadByteToken {
                        key: key::TOKENS,
                        id,
                        token: text.to_owned(),
                    });
                }
            }
        }
        Ok(ids)
    }
}

/// The encoding of text without a token: byte tokens, or the unknown token.
#[derive(Debug)]
pub(crate) struct ByteFallback {
    /// By byte.
    tokens: [Option<u32>; 256],
    unknown: Option<u32>,
}

impl ByteFallback {
    pub fn new(vocab: &Vocab, unknown: Option<u32>) -> Result<Self, TokenizerError> {
        let tokens = vocab.byte_tokens()?;
        Ok(Self { tokens, unknown })
    }

    /// Appends the byte tokens of `text`, or if one is missing, the unknown token, unless
    /// `after_unknown`. Returns whether `text` is unknown.
    pub fn push(
        &self,
        text: &str,
        after_unknown: bool,
        ids: &mut Vec<u32>,
    ) -> Result<bool, TokenizerError> {
        let tokens = text.bytes().map(|byte| {
            let id = self.tokens.get(usize::from(byte)).copied().flatten();
            id.ok_or(TokenizerError::NoTokenForByte { byte })
        });
        match (tokens.collect::<Result<Vec<_>, _>>(), self.unknown) {
            (Ok(tokens), _) => {
                ids.extend(tokens);
                Ok(false)
            }
            (Err(_), Some(unknown)) => {
                ids.extend((!after_unknown).then_some(unknown));
                Ok(true)
            }
            (Err(error), None) => Err(error),
        }
    }
}

/// A search for the leftmost match of `patterns`, of those the longest.
pub(crate) fn leftmost_longest(
    patterns: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> Result<AhoCorasick, TokenizerError> {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest);
    builder.build(patterns).map_err(too_large)
}

/// The error of tokens that are too large to search for.
pub(crate) fn too_large(source: BuildError) -> TokenizerError {
    TokenizerError::SpecialTokens {
        key: key::TOKENS,
        source,
    }
}

/// The maximum length, in bytes, of a token that is searched for in texts: the time of a search is
/// proportional to the product of the lengths of the text and the longest token.
const MAX_SEARCHED: usize = 1 << 10;

/// Fails for a token that is too long to be searched for in texts.
pub(crate) fn check_searched(id: u32, token: &[u8]) -> Result<(), TokenizerError> {
    if token.len() <= MAX_SEARCHED {
        return Ok(());
    }
    Err(TokenizerError::LongToken {
        key: key::TOKENS,
        id,
        len: token.len(),
        most: MAX_SEARCHED,
    })
}

/// The value of a byte token's text: 10 for `<0x0A>`.
pub(crate) fn parse_byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}
