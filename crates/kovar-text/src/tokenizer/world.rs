use std::collections::HashMap;

use aho_corasick::{AhoCorasick, MatchKind};

use super::error::{TokenizerError, TokenizerWarning};
use super::spec::key;
use super::vocab::{TokenType, Vocab, check_searched};

/// The tokenizer of the RWKV "World" models: the longest token that the rest of the text begins
/// with, again and again. Tokens are byte strings, written in the file with Python's escapes.
///
/// Control tokens are not found in text, as in the reference implementation; llama.cpp finds them.
#[derive(Debug)]
pub(crate) struct World {
    search: AhoCorasick,
    /// By pattern number.
    ids: Vec<u32>,
    /// By id; as in the file for special tokens.
    tokens: Vec<Box<[u8]>>,
    unknown: Option<u32>,
}

impl World {
    pub fn new(
        vocab: &Vocab,
        unknown: Option<u32>,
        warnings: &mut Vec<TokenizerWarning>,
    ) -> Result<Self, TokenizerError> {
        let mut tokens = Vec::with_capacity(vocab.len());
        for (id, text, token_type) in vocab.iter() {
            let is_text = matches!(token_type, TokenType::Normal | TokenType::UserDefined);
            let bytes = if is_text {
                unescape(text)
            } else {
                Some(text.into())
            };
            let bytes = bytes.filter(|bytes: &Vec<u8>| !bytes.is_empty());
            let bytes = bytes.ok_or_else(|| TokenizerError::BadEscape {
                key: key::TOKENS,
                id,
                token: text.to_owned(),
            })?;
            tokens.push(bytes.into_boxed_slice());
        }
        let mut first: HashMap<&[u8], u32> = HashMap::new();
        for ((id, text, token_type), bytes) in vocab.iter().zip(&tokens) {
            if token_type != TokenType::Normal {
                continue;
            }
            check_searched(id, bytes)?;
            if let Some(first) = first.insert(bytes, id) {
                return Err(TokenizerError::DuplicateToken {
                    key: key::TOKENS,
                    token: text.to_owned(),
                    first,
                    second: id,
                });
            }
        }
        let in_utf8 = |byte: &u8| !matches!(byte, 0xC0 | 0xC1 | 0xF5..);
        let missing: Vec<u8> = (0u8..=255)
            .filter(in_utf8)
            .filter(|&byte| !first.contains_key(&[byte][..]))
            .collect();
        if !missing.is_empty() && unknown.is_none() {
            warnings.push(TokenizerWarning::BytesWithoutToken { bytes: missing });
        }
        let (patterns, ids): (Vec<&[u8]>, Vec<u32>) = first.into_iter().unzip();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns)
            .map_err(|source| TokenizerError::SpecialTokens {
                key: key::TOKENS,
                source,
            })?;
        Ok(Self {
            search,
            ids,
            tokens,
            unknown,
        })
    }

    /// Appends the ids of `text`. Bytes that no token begins with become the unknown token each, or
    /// are left out if there is none.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut at = 0;
        let skip = |ids: &mut Vec<u32>, count: usize| {
            let unknown = self.unknown.into_iter();
            ids.extend(unknown.flat_map(|id| std::iter::repeat_n(id, count)));
        };
        for found in self.search.find_iter(text) {
            skip(ids, found.start() - at);
            ids.extend(self.ids.get(found.pattern().as_usize()));
            at = found.end();
        }
        skip(ids, text.len() - at);
    }

    /// Appends the bytes that a token stands for.
    pub fn push_token_bytes(&self, id: u32, bytes: &mut Vec<u8>) {
        bytes.extend(self.tokens.get(id as usize).into_iter().flatten());
    }
}

/// The bytes that `text` stands for, as Python writes byte strings: `\t`, `\n`, `\r`, `\xHH`, and `\`
/// before any other character stands for that character. `None` if an escape is cut short.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            b'x' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes() {
        for (text, bytes) in [
            ("abc", Some(&b"abc"[..])),
            (r"\t\n\r", Some(b"\t\n\r")),
            (r"\xff\x0A", Some(b"\xff\n")),
            (r"\\n", Some(b"\\n")),
            (r"it\'s", Some(b"it's")),
            ("\u{e9}", Some(b"\xc3\xa9")),
            (r"a\", None),
            (r"\xf", None),
            (r"\xg0", None),
        ] {
            assert_eq!(unescape(text).as_deref(), bytes, "{text}");
        }
    }
}
