use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::error::TokenizerError;
use super::spec::key;
use super::vocab::{TokenType, Vocab};

/// How SentencePiece writes a space within tokens: U+2581.
pub(crate) const SPACE: char = '\u{2581}';

/// SentencePiece's BPE (Kudo and Richardson 2018, <https://arxiv.org/abs/1808.06226>): over the whole text,
/// the adjacent pair whose joined text is the token of the highest score is merged until no pair joins to a
/// token; characters without a token are written as bytes.
#[derive(Debug)]
pub(crate) struct Spm {
    scores: Vec<f32>,
    /// The token of each byte.
    bytes: [Option<u32>; 256],
    unknown: Option<u32>,
    add_space_prefix: bool,
}

/// A stretch of the text; those with bytes form a doubly linked list.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: u32,
    len: u32,
    prev: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// A merge that may be done; out of date once either side has changed.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    score: f32,
    left: u32,
    right: u32,
    /// Bytes of both sides together.
    len: u32,
}

impl Ord for Candidate {
    /// The highest score is the greatest; among equals the leftmost.
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
        if scores.len() != vocab.len() {
            return Err(TokenizerError::LengthMismatch {
                key: key::SCORES,
                len: scores.len(),
                tokens: vocab.len(),
            });
        }
        for (id, score) in (0u32..).zip(&mut scores) {
            if score.is_nan() {
                return Err(TokenizerError::BadScore {
                    key: key::SCORES,
                    id,
                });
            }
            // Zeros of either sign are one score.
            *score += 0.0;
        }
        Ok(Self {
            scores,
            bytes: vocab.byte_tokens()?,
            unknown,
            add_space_prefix,
        })
    }

    pub fn adds_space_prefix(&self) -> bool {
        self.add_space_prefix
    }

    /// Appends the tokens of `text`, which holds no special tokens; `first` says that it begins a text or
    /// follows a special token.
    ///
    /// Takes O(n log n) for n bytes.
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
            let piece = stretch(text, symbol.start, symbol.len);
            match vocab.id_of(piece) {
                Some(id) => ids.push(id),
                None => self.push_bytes(piece, ids)?,
            }
        }
        Ok(())
    }

    /// Queues the merge of two neighbours if they join to a token.
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
        let Some(id) = vocab.id_of(stretch(text, l.start, len)) else {
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

    fn push_bytes(&self, piece: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let tokens = piece.bytes().map(|byte| {
            let id = self.bytes.get(usize::from(byte)).copied().flatten();
            id.ok_or(TokenizerError::NoTokenForByte { byte })
        });
        match (tokens.collect::<Result<Vec<_>, _>>(), self.unknown) {
            (Ok(tokens), _) => ids.extend(tokens),
            (Err(_), Some(unknown)) => ids.push(unknown),
            (Err(error), None) => return Err(error),
        }
        Ok(())
    }
}

/// The `len` bytes from `start`; symbols hold whole characters.
fn stretch(text: &str, start: u32, len: u32) -> &str {
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
    for part in text.split_inclusive(SPACE) {
        match part.strip_suffix(SPACE) {
            Some(before) => {
                bytes.extend_from_slice(before.as_bytes());
                bytes.push(b' ');
            }
            None => bytes.extend_from_slice(part.as_bytes()),
        }
    }
}
