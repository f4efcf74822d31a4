use std::collections::HashMap;

use aho_corasick::AhoCorasick;

use super::error::{TokenizerError, TokenizerWarning};
use super::spec::key;
use super::vocab::{TokenType, Vocab, check_searched, leftmost_longest};

/// The tokenizer of the RWKV "World" models: at each position, the longest token that the rest of
/// the text begins with. Tokens are byte strings, written in the file with Python's escapes.
///
/// Like the reference implementation, and unlike llama.cpp, it does not find control tokens in
/// text.
#[derive(Debug)]
pub(crate) struct World {
    search: AhoCorasick,
    /// By pattern number.
    ids: Vec<u32>,
    /// By id; special tokens as written in the file.
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
        if unknown.is_none() {
            let has_token = |byte| first.contains_key(&[byte][..]);
            warnings.extend(TokenizerWarning::of_missing_bytes(has_token));
        }
        let (patterns, ids): (Vec<&[u8]>, Vec<u32>) = first.into_iter().unzip();
        Ok(Self {
            search: leftmost_longest(patterns)?,
            ids,
            tokens,
            unknown,
        })
    }

    /// Appends the ids of `text`. Each byte without a token becomes the unknown token, or is
    /// omitted if there is none.
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

/// The bytes of `text` with the escapes of Python's byte strings: `\t`, `\n`, `\r`, `\xHH`; `\`
/// before any other character stands for that character. `None` if an escape is incomplete.
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
