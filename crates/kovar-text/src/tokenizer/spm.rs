use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::error::TokenizerError;
use super::vocab::{ByteFallback, TokenType, Vocab};

/// How SentencePiece writes a space within tokens: U+2581.
pub(crate) const SPACE: char = '\u{2581}';

/// SentencePiece's BPE (Kudo and Richardson 2018, <https://arxiv.org/abs/1808.06226>): over the
/// whole text, the adjacent pair whose concatenation is the token of the highest score is merged,
/// until no concatenation is a token. Characters without a token are written as bytes.
#[derive(Debug)]
pub(crate) struct Spm {
    scores: Vec<f32>,
    fallback: ByteFallback,
    add_space_prefix: bool,
}

/// A substring of the text. The symbols that are not empty form a doubly linked list.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: u32,
    len: u32,
    prev: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// A possible merge; stale once either side has changed.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    score: f32,
    left: u32,
    right: u32,
    /// Length in bytes of both sides together.
    len: u32,
}

impl Ord for Candidate {
    /// By score; among equal scores, the leftmost is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl Spm {
    pub fn new(
        vocab: &Vocab,
        mut scores: Vec<f32>,
        unknown: Option<u32>,
        add_space_prefix: bool,
    ) -> Result<Self, TokenizerError> {
        vocab.check_scores(&scores)?;
        for score in &mut scores {
            // Zeros of both signs compare equal.
            *score += 0.0;
        }
        Ok(Self {
            scores,
            fallback: ByteFallback::new(vocab, unknown)?,
            add_space_prefix,
        })
    }

    pub fn adds_space_prefix(&self) -> bool {
        self.add_space_prefix
    }

    /// Appends the tokens of `text`, which contains no special tokens. `first`: it begins a text or
    /// follows a special token.
    ///
    /// O(n log n) for n bytes.
    pub fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        first: bool,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        if text.is_empty() {
            return Ok(());
        }
        let mut escaped = String::with_capacity(text.len() + text.len() / 2);
        if first && self.add_space_prefix {
            escaped.push(SPACE);
        }
        escaped.extend(text.chars().map(|character| match character {
            ' ' => SPACE,
            other => other,
        }));
        let text = escaped.as_str();
        if u32::try_from(text.len()).is_err() {
            return Err(TokenizerError::TextTooLong { len: text.len() });
        }

        let mut symbols: Vec<Symbol> = (0u32..)
            .zip(text.char_indices())
            .map(|(at, (start, character))| Symbol {
                start: start as u32,
                len: character.len_utf8() as u32,
                prev: at.wrapping_sub(1),
                next: at + 1,
            })
            .collect();
        if let Some(last) = symbols.last_mut() {
            last.next = NONE;
        }
        let mut queue = BinaryHeap::new();
        for right in 1..symbols.len() as u32 {
            self.propose(vocab, text, &symbols, &mut queue, right - 1, right);
        }
        while let Some(candidate) = queue.pop() {
            let Candidate {
                left, right, len, ..
            } = candidate;
            let (Some(&l), Some(&r)) = (symbols.get(left as usize), symbols.get(right as usize))
            else {
                continue;
            };
            if l.len == 0 || r.len == 0 || l.len + r.len != len || l.next != right {
                continue;
            }
            if let Some(symbol) = symbols.get_mut(left as usize) {
                symbol.len = len;
                symbol.next = r.next;
            }
            if let Some(symbol) = symbols.get_mut(right as usize) {
                symbol.len = 0;
            }
            if let Some(symbol) = symbols.get_mut(r.next as usize) {
                symbol.prev = left;
            }
            self.propose(vocab, text, &symbols, &mut queue, l.prev, left);
            self.propose(vocab, text, &symbols, &mut queue, left, r.next);
        }

        for symbol in symbols.iter().filter(|symbol| symbol.len > 0) {
            let piece = substring(text, symbol.start, symbol.len);
            match vocab.id_of(piece) {
                Some(id) => ids.push(id),
                None => {
                    self.fallback.push(piece, false, ids)?;
                }
            }
        }
        Ok(())
    }

    /// Queues the merge of two neighbours if their concatenation is a token.
    fn propose(
        &self,
        vocab: &Vocab,
        text: &str,
        symbols: &[Symbol],
        queue: &mut BinaryHeap<Candidate>,
        left: u32,
        right: u32,
    ) {
        let (Some(l), Some(r)) = (symbols.get(left as usize), symbols.get(right as usize)) else {
            return;
        };
        let len = l.len + r.len;
        let Some(id) = vocab.id_of(substring(text, l.start, len)) else {
            return;
        };
        if let Some(&score) = self.scores.get(id as usize) {
            queue.push(Candidate {
                score,
                left,
                right,
                len,
            });
        }
    }
}

/// The `len` bytes from `start`; symbols are whole characters.
fn substring(text: &str, start: u32, len: u32) -> &str {
    text.get(start as usize..start as usize + len as usize)
        .unwrap_or_default()
}

/// Appends the bytes that the text of a token stands for.
pub(crate) fn push_token_bytes(text: &str, token_type: TokenType, bytes: &mut Vec<u8>) {
    if token_type == TokenType::Byte
        && let Some(byte) = super::vocab::parse_byte_token(text)
    {
        bytes.push(byte);
        return;
    }
    for word in text.split_inclusive(SPACE) {
        match word.strip_suffix(SPACE) {
            Some(before) => {
                bytes.extend_from_slice(before.as_bytes());
                bytes.push(b' ');
            }
            None => bytes.extend_from_slice(word.as_bytes()),
        }
    }
}
