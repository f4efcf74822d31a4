use aho_corasick::{AhoCorasick, MatchKind};

use super::error::TokenizerError;
use super::spec::key;
use super::vocab::{TokenType, Vocab, check_searched};

/// Finds special tokens written out in text, leftmost first and the longest of those that begin together.
#[derive(Debug)]
pub(crate) struct SpecialTokens {
    /// User-defined tokens, which any text may hold.
    user_defined: Finder,
    /// Control and unknown tokens as well.
    all: Finder,
}

#[derive(Debug)]
struct Finder {
    search: Option<AhoCorasick>,
    /// By pattern number.
    ids: Vec<u32>,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Text without special tokens, not empty.
    Text(&'t str),
    Token(u32),
}

impl Finder {
    fn new(vocab: &Vocab, wanted: impl Fn(TokenType) -> bool) -> Result<Self, TokenizerError> {
        let (ids, texts): (Vec<u32>, Vec<&str>) = vocab
            .iter()
            .filter(|&(_, _, token_type)| wanted(token_type))
            .map(|(id, text, _)| (id, text))
            .unzip();
        for (&id, text) in ids.iter().zip(&texts) {
            check_searched(id, text.as_bytes())?;
        }
        let search = match texts.is_empty() {
            true => None,
            false => Some(
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(texts)
                    .map_err(|source| TokenizerError::SpecialTokens {
                        key: key::TOKENS,
                        source,
                    })?,
            ),
        };
        Ok(Self { search, ids })
    }
}

impl SpecialTokens {
    /// User-defined tokens are left to the algorithm if `cuts_user_defined` does not hold.
    pub fn new(vocab: &Vocab, cuts_user_defined: bool) -> Result<Self, TokenizerError> {
        let is_user_defined = |token_type| token_type == TokenType::UserDefined;
        Ok(Self {
            user_defined: Finder::new(vocab, |token_type| {
                cuts_user_defined && is_user_defined(token_type)
            })?,
            all: Finder::new(vocab, |token_type| {
                token_type.is_special() && (cuts_user_defined || !is_user_defined(token_type))
            })?,
        })
    }

    /// Cuts `text` at the special tokens in it: at all of them, or at user-defined ones only.
    pub fn parts<'t>(&self, text: &'t str, all: bool) -> Vec<Part<'t>> {
        let finder = if all { &self.all } else { &self.user_defined };
        let mut parts = Vec::new();
        let mut at = 0;
        let push_text = |parts: &mut Vec<_>, from, to| match text.get(from..to) {
            Some("") | None => {}
            Some(text) => parts.push(Part::Text(text)),
        };
        for found in finder
            .search
            .iter()
            .flat_map(|search| search.find_iter(text))
        {
            push_text(&mut parts, at, found.start());
            if let Some(&id) = finder.ids.get(found.pattern().as_usize()) {
                parts.push(Part::Token(id));
            }
            at = found.end();
        }
        push_text(&mut parts, at, text.len());
        parts
    }
}
