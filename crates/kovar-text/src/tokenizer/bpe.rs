use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::byte_level::{byte_of, char_of};
use super::error::{TokenizerError, TokenizerWarning};
use super::merges::{Merge, Merges};
use super::pre::{Family, PreTokenizer};
use super::spec::key;
use super::vocab::Vocab;

/// Byte-level byte-pair encoding (Sennrich et al. 2016, <https://arxiv.org/abs/1508.07909>; in the
/// form of GPT-2): within each word of the pre-tokenizer, the adjacent pair of the lowest rank is
/// merged, until no pair has a merge rule.
#[derive(Debug)]
pub(crate) struct Bpe {
    pre: PreTokenizer,
    ignore_merges: bool,
    /// The token of each byte.
    bytes: [Option<u32>; 256],
    merges: Merges,
}

/// A token of the word being merged. The remaining symbols form a doubly linked list.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: u32,
    prev: u32,
    next: u32,
}

/// The end of the list on either side.
const NONE: u32 = u32::MAX;
/// The `id` of a symbol that was merged into its left neighbour; not a token.
const GONE: u32 = u32::MAX;

/// A possible merge; stale once either side has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: u32,
    right: u32,
    left_id: u32,
    right_id: u32,
    merged: u32,
}

/// Buffers that are reused for each word.
#[derive(Debug, Default)]
struct Scratch {
    text: String,
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Candidate>>,
}

impl Bpe {
    /// `family` defines how text is split into words; `rules` are the merges, lowest rank first.
    pub fn new(
        vocab: &Vocab,
        family: &Family,
        rules: &[String],
        warnings: &mut Vec<TokenizerWarning>,
    ) -> Result<Self, TokenizerError> {
        let pre = PreTokenizer::new(family).map_err(|source| TokenizerError::PreTokenizer {
            key: key::PRE,
            source,
        })?;
        let mut bytes = [None; 256];
        for (slot, byte) in bytes.iter_mut().zip(0u8..=255) {
            *slot = vocab.id_of(char_of(byte).encode_utf8(&mut [0; 4]));
        }
        warnings.extend(TokenizerWarning::of_missing_bytes(|byte| {
            bytes[usize::from(byte)].is_some()
        }));

        let mut merges = Vec::with_capacity(rules.len());
        for (rank, rule) in rules.iter().enumerate() {
            // A token may begin with a space, so the separator is the first space after the first
            // character.
            let after_first = rule.chars().next().map_or(0, char::len_utf8);
            let separator = rule.get(after_first..).and_then(|tail| tail.find(' '));
            let pair = separator.and_then(|at| {
                let (left, tail) = rule.split_at_checked(after_first + at)?;
                let right = tail.strip_prefix(' ')?;
                (!right.is_empty()).then_some((left, right))
            });
            let Some((left, right)) = pair else {
                return Err(TokenizerError::BadMerge {
                    key: key::MERGES,
                    rank,
                    rule: rule.clone(),
                });
            };
            let find = |token: &str| {
                vocab
                    .id_of(token)
                    .ok_or_else(|| TokenizerError::MergeOfUnknownToken {
                        key: key::MERGES,
                        rank,
                        rule: rule.clone(),
                        token: token.to_owned(),
                    })
            };
            let (left_id, right_id) = (find(left)?, find(right)?);
            let id = find(&format!("{left}{right}"))?;
            let rank = u32::try_from(rank).unwrap_or(u32::MAX);
            merges.push((left_id, right_id, Merge { rank, id }));
        }
        Ok(Self {
            pre,
            ignore_merges: family.ignore_merges,
            bytes,
            merges: Merges::new(vocab.len(), merges),
        })
    }

    /// Appends the tokens of `text`, which holds no special tokens and fewer than 2^32 bytes.
    ///
    /// O(n log n) for n bytes. Bytes without a token are omitted.
    pub fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let mut scratch = Scratch::default();
        self.pre.split(text, &mut |word| {
            if self.ignore_merges {
                scratch.text.clear();
                scratch.text.extend(word.bytes().map(char_of));
                if let Some(id) = vocab.id_of(&scratch.text) {
                    ids.push(id);
                    return Ok(());
                }
            }
            self.encode_word(word, &mut scratch, ids);
            Ok(())
        })
    }

    fn encode_word(&self, word: &str, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        let Scratch { symbols, queue, .. } = scratch;
        symbols.clear();
        queue.clear();
        for byte in word.bytes() {
            if let Some(&Some(id)) = self.bytes.get(usize::from(byte)) {
                let at = symbols.len() as u32;
                symbols.push(Symbol {
                    id,
                    prev: at.wrapping_sub(1),
                    next: at + 1,
                });
            }
        }
        if let Some(last) = symbols.last_mut() {
            last.next = NONE;
        }
        for right in 1..symbols.len() as u32 {
            self.propose(symbols, queue, right - 1, right);
        }
        while let Some(Reverse(candidate)) = queue.pop() {
            let Candidate { left, right, .. } = candidate;
            let (Some(&l), Some(&r)) = (symbols.get(left as usize), symbols.get(right as usize))
            else {
                continue;
            };
            if l.id != candidate.left_id || r.id != candidate.right_id || l.next != right {
                continue;
            }
            if let Some(symbol) = symbols.get_mut(left as usize) {
                symbol.id = candidate.merged;
                symbol.next = r.next;
            }
            if let Some(symbol) = symbols.get_mut(right as usize) {
                symbol.id = GONE;
            }
            if let Some(symbol) = symbols.get_mut(r.next as usize) {
                symbol.prev = left;
            }
            self.propose(symbols, queue, l.prev, left);
            self.propose(symbols, queue, left, r.next);
        }
        ids.extend(
            symbols
                .iter()
                .map(|symbol| symbol.id)
                .filter(|&id| id != GONE),
        );
    }

    /// Queues the merge of two neighbours if it has a rule.
    fn propose(
        &self,
        symbols: &[Symbol],
        queue: &mut BinaryHeap<Reverse<Candidate>>,
        left: u32,
        right: u32,
    ) {
        let (Some(l), Some(r)) = (symbols.get(left as usize), symbols.get(right as usize)) else {
            return;
        };
        if let Some(Merge { rank, id }) = self.merges.get(l.id, r.id) {
            queue.push(Reverse(Candidate {
                rank,
                left,
                right,
                left_id: l.id,
                right_id: r.id,
                merged: id,
            }));
        }
    }
}

/// Appends the bytes that the text of a normal token encodes.
pub(crate) fn push_token_bytes(text: &str, bytes: &mut Vec<u8>) {
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
