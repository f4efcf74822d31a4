//! DRY: "don't repeat yourself".

use std::collections::{HashMap, VecDeque};

use super::{SamplerParams, stage::Stage};
use crate::tokenizer::{EncodeOptions, Tokenizer, TokenizerError};

/// The default breakers: texts at which repeated sequences end.
pub const DEFAULT_BREAKERS: &[&str] = &["\n", ":", "\"", "*"];

/// The maximum number of tokens of a breaker after its first token, which bounds the time of the
/// search.
const MAX_TAIL: usize = 20;

/// Makes tokens less likely that would continue a repeated sequence of the text (p-e-w 2024,
/// <https://github.com/oobabooga/text-generation-webui/pull/5677>).
///
/// If the last n tokens occurred earlier, the logit of the token that followed them is lowered by
/// multiplier * base^(n - allowed length), if n is at least the allowed length. The last n tokens
/// do not extend beyond a breaker.
#[derive(Debug)]
pub(crate) struct Dry {
    multiplier: f64,
    base: f64,
    allowed_length: usize,
    last_n: usize,
    /// By first token, the tokens that follow it.
    breakers: HashMap<u32, Vec<Vec<u32>>>,
    recent: VecDeque<u32>,
    /// The last tokens, most recent first.
    reversed: Vec<u32>,
    /// For each position of `reversed`, how many tokens from there equal those from the beginning.
    matches: Vec<usize>,
    /// By token, the length of the longest sequence that it would continue.
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

    /// The number of tokens after the latest breaker in `reversed`.
    fn since_breaker(&self) -> usize {
        let found = self.reversed.iter().enumerate().find_map(|(at, head)| {
            // The tail continues towards the most recent token, which is the first of `reversed`.
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
        let following = self.reversed.iter().zip(self.matches.iter().skip(1));
        for (&token, &matched) in following {
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
                // The logit stays finite: the token may be the only candidate.
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

/// For each position of `tokens`, how many tokens from there equal those from the beginning (the Z
/// function, in O(n); Gusfield 1997). The first is 0.
fn prefix_matches(tokens: &[u32], matches: &mut Vec<usize>) {
    matches.clear();
    matches.resize(tokens.len(), 0);
    // The tokens from `left` to `right` are known to equal the beginning.
    let (mut left, mut right) = (0, 0);
    for at in 1..tokens.len() {
        let known = if at < right {
            matches.get(at - left).map_or(0, |&z| z.min(right - at))
        } else {
            0
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

/// The token sequences that may contain the texts `breakers`, for
/// [`SamplerParams::dry_sequence_breakers`]: tokens that contain a breaker, and tokens that end
/// with a prefix of a breaker, followed by the tokens of its rest.
///
/// # Errors
/// The rest of a breaker has bytes without a token.
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

fn contains(bytes: &[u8], other: &[u8]) -> bool {
    bytes.windows(other.len()).any(|window| window == other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn matches_are_those_of_a_naive_search(tokens in prop::collection::vec(0u32..3, 0..60)) {
            let mut matches = Vec::new();
            prefix_matches(&tokens, &mut matches);
            for at in 1..tokens.len() {
                let plain = tokens.iter().zip(&tokens[at..]).take_while(|(a, b)| a == b).count();
                prop_assert_eq!(matches[at], plain);
            }
        }
    }
}
