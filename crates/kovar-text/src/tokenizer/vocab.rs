use std::collections::HashMap;
use std::sync::Arc;

use super::error::TokenizerError;
use super::spec::key;

/// The role of a token, as GGUF's `tokenizer.ggml.token_type` numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenType {
    /// A piece of ordinary text.
    Normal,
    /// Stands for text that the vocabulary cannot express.
    Unknown,
    /// Steers the model (begin of text, end of turn); never made from ordinary text.
    Control,
    /// Added to a trained vocabulary; found in text before anything else is split.
    UserDefined,
    /// An id without use.
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

    /// Whether the token stands for itself and is not built from pieces of text.
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

    /// All tokens in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str, TokenType)> {
        (0u32..)
            .zip(self.texts.iter().zip(&self.types))
            .map(|(id, (text, &token_type))| (id, &**text, token_type))
    }

    /// The id of the token of type byte that stands for each byte value, `<0x00>` to `<0xFF>`.
    pub fn byte_tokens(&self) -> Result<[Option<u32>; 256], TokenizerError> {
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

/// The longest token that texts are searched for, in bytes: searching takes time in the product of the
/// lengths of the text and of the longest token.
const MAX_SEARCHED: usize = 1 << 10;

/// Fails for a token of more bytes than texts are searched for.
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
