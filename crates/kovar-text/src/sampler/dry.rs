//! DRY: "don't repeat yourself".

use std::collections::{HashMap, VecDeque};

use super::{SamplerParams, stage::Stage};
use crate::tokenizer::{EncodeOptions, Tokenizer, TokenizerError};

/// The texts across which nothing counts as repeated, if none are given.
pub const DEFAULT_BREAKERS: &[&str] = &["\n", ":", "\"", "*"];

/// The most tokens of a breaker behind its first, so that looking for one takes bounded time.
const MAX_TAIL: usize = 20;

/// Makes tokens less likely that would continue a sequence which the text has already (p-e-w 2024,
/// <https://github.com/oobabooga/text-generation-webui/pull/5677>).
///
/// A token that stood behind a copy of the last n tokens loses multiplier * base^(n - allowed length), if n
/// is at least the allowed length. Breakers end what counts as the last n tokens.
#[derive(Debug)]
pub(crate) struct Dry {
    multiplier: f64,
    base: f64,
    allowed_length: usize,
    last_n: usize,
    /// By their first token, what follows it.
    breakers: HashMap<u32, Vec<Vec<u32>>>,
    recent: VecDeque<u32>,
    /// The last tokens, the latest first.
    reversed: Vec<u32>,
    /// For each position of `reversed`, how many tokens from there on are those from its beginning on.
    matches: Vec<usize>,
    /// By token, the longest sequence that it would continue.
    longest: HashMap<u32, usize>,
}

impl Dry {
    /// `None` if the parameters change nothing.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        let last_n = params.dry_penalty_last_n;
        if params.dry_multiplier == 0.0 || last_n == 0 {
            return None;
        }
        let mut breakers: HashMap<u32, Vec<Vec<u32>>> = HashMap::new();
        for breaker in &params.dry_sequence_breakers {
            if let Some((&head, tail)) = breaker.split_first() {
                breakers.entry(head).or_default().push(tail.to_vec());
            }
        }
        Some(Self {
            multiplier: params.dry_multiplier.into(),
            base: params.dry_base.into(),
            allowed_length: params.dry_allowed_length,
            last_n,
            breakers,
            recent: VecDeque::with_capacity(last_n),
            reversed: Vec::with_capacity(last_n),
            matches: Vec::with_capacity(last_n),
            longest: HashMap::new(),
        })
    }

    /// The tokens behind the latest breaker in `reversed`.
    fn since_breaker(&self) -> usize {
        let found = self.reversed.iter().enumerate().find_map(|(at, head)| {
            // The tail goes on towards the latest token, which is the first of `reversed`.
            let after = self.reversed.get(..at)?;
            let tails = self.breakers.get(head)?.iter();
            let longest = tails.filter(|tail| {
                tail.len() <= at && tail.iter().eq(after.iter().rev().take(tail.len()))
            });
            longest.map(|tail| at - tail.len()).min()
        });
        found.unwrap_or(self.reversed.len())
    }

    fn is_breaker(&self, token: u32) -> bool {
        let tails = self.breakers.get(&token);
        tails.is_some_and(|tails| tails.iter().any(Vec::is_empty))
    }
}

impl Stage for Dry {
    fn adjust(&mut self, logits: &mut [f32]) {
        self.reversed.clear();
        self.reversed.extend(self.recent.iter().rev());
        let limit = self.since_breaker();
        if limit < self.allowed_length {
            return;
        }
        prefix_matches(&self.reversed, &mut self.matches);
        self.longest.clear();
        let behind = self.reversed.iter().zip(self.matches.iter().skip(1));
        for (&token, &matched) in behind {
            let matched = matched.min(limit);
            if matched >= self.allowed_length {
                let longest = self.longest.entry(token).or_default();
                *longest = matched.max(*longest);
            }
        }
        for (&token, &matched) in &self.longest {
            if self.is_breaker(token) {
                continue;
            }
            if let Some(logit) = logits.get_mut(token as usize) {
                let power = libm::pow(self.base, (matched - self.allowed_length) as f64);
                // A token is never banned: it may be the only one.
                let penalty = (self.multiplier * power).min(f64::from(f32::MAX) / 2.0);
                *logit -= penalty as f32;
            }
        }
    }

    fn accept(&mut self, token: u32) {
        if self.recent.len() == self.last_n {
            self.recent.pop_front();
        }
        self.recent.push_back(token);
    }

    fn reset(&mut self) {
        self.recent.clear();
    }
}

/// For each position of `tokens`, how many tokens from there on are equal to those from the beginning on
/// (the Z function, in O(n); Gusfield 1997). The first is 0.
fn prefix_matches(tokens: &[u32], matches: &mut Vec<usize>) {
    matches.clear();
    matches.resize(tokens.len(), 0);
    // The stretch from `left` to `right` is known to be a copy of the beginning.
    let (mut left, mut right) = (0, 0);
    for at in 1..tokens.len() {
        let known = match at < right {
            true => matches.get(at - left).map_or(0, |&z| z.min(right - at)),
            false => 0,
        };
        let beginning = tokens.iter().skip(known);
        let rest = tokens.iter().skip(at + known);
        let matched = known + beginning.zip(rest).take_while(|(a, b)| a == b).count();
        if let Some(slot) = matches.get_mut(at) {
            *slot = matched;
        }
        if at + matched > right {
            (left, right) = (at, at + matched);
        }
    }
}

/// The token sequences in which the texts `breakers` may come up, for
/// [`SamplerParams::dry_sequence_breakers`]: tokens that hold one, and tokens that end in the beginning of
/// one with the tokens of its rest.
///
/// # Errors
/// A rest has bytes without a token.
pub fn breaker_tokens(
    tokenizer: &Tokenizer,
    breakers: &[impl AsRef<str>],
) -> Result<Vec<Vec<u32>>, TokenizerError> {
    let mut sequences = Vec::new();
    for id in 0..tokenizer.vocab_len() as u32 {
        let bytes = tokenizer.token_bytes(id)?;
        for breaker in breakers.iter().map(AsRef::as_ref) {
            if breaker.is_empty() {
                continue;
            }
            if contains(&bytes, breaker.as_bytes()) {
                sequences.push(vec![id]);
                continue;
            }
            for (cut, _) in breaker.char_indices().skip(1) {
                let (begun, rest) = breaker.split_at(cut);
                if bytes.ends_with(begun.as_bytes()) {
                    let mut tail = tokenizer.encode(rest, EncodeOptions::default())?;
                    tail.truncate(MAX_TAIL);
                    tail.insert(0, id);
                    sequences.push(tail);
                }
            }
        }
    }
    sequences.sort_unstable();
    sequences.dedup();
    Ok(sequences)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn matches_are_those_of_a_plain_search(tokens in prop::collection::vec(0u32..3, 0..60)) {
            let mut matches = Vec::new();
            prefix_matches(&tokens, &mut matches);
            for at in 1..tokens.len() {
                let plain = tokens.iter().zip(&tokens[at..]).take_while(|(a, b)| a == b).count();
                prop_assert_eq!(matches[at], plain);
            }
        }
    }
}
