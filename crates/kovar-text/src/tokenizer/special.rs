use aho_corasick::AhoCorasick;

use super::error::TokenizerError;
use super::vocab::{TokenType, Vocab, check_searched, leftmost_longest};

/// Finds special tokens in text: the leftmost, and of those the longest.
#[derive(Debug)]
pub(crate) struct SpecialTokens {
    /// User-defined tokens, which any text may contain.
    user_defined: Finder,
    /// All special tokens: also control and unknown ones.
    all: Finder,
}

#[derive(Debug)]
struct Finder {
    search: Option<AhoCorasick>,
    /// By pattern number.
    ids: Vec<u32>,
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
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
        let search = (!texts.is_empty()).then(|| leftmost_longest(texts));
        let search = search.transpose()?;
        Ok(Self { search, ids })
    }
}

impl SpecialTokens {
    /// If `cuts_user_defined` is false, user-defined tokens are left to the algorithm.
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

    /// Splits `text` at its special tokens: at all of them, or only at user-defined ones.
    pub fn pieces<'t>(&self, text: &'t str, all: bool) -> Vec<Piece<'t>> {
        let finder = if all { &self.all } else { &self.user_defined };
        let mut pieces = Vec::new();
        let mut at = 0;
        let push_text = |pieces: &mut Vec<_>, from, to| match text.get(from..to) {
            Some("") | None => {}
            Some(text) => pieces.push(Piece::Text(text)),
        };
        for found in finder
            .search
            .iter()
            .flat_map(|search| search.find_iter(text))
        {
            push_text(&mut pieces, at, found.start());
            if let Some(&id) = finder.ids.get(found.pattern().as_usize()) {
                pieces.push(Piece::Token(id));
            }
            at = found.end();
        }
        push_text(&mut pieces, at, text.len());
        pieces
    }
}
