//! How a sequence of tokens is divided into steps of the sizes that plans are compiled for.

use std::ops::Range;

/// The token counts of compiled steps. A step with fewer tokens is padded.
const STEP_SIZES: [usize; 7] = [1, 2, 4, 8, 32, 128, 512];

/// The fixed cost of a step, in tokens: reading all weights once takes about as long as the
/// arithmetic of this many tokens.
const STEP_COST: usize = 8;

/// The size of the next step for `remaining` (at least 1) tokens, so that the estimated cost of all
/// steps is the lowest.
pub(crate) fn next_step(remaining: usize) -> usize {
    cheapest(remaining.min(STEP_SIZES[STEP_SIZES.len() - 1])).1
}

/// The estimated cost of `remaining` tokens, and the size of the first step.
fn cheapest(remaining: usize) -> (usize, usize) {
    if remaining == 0 {
        return (0, 1);
    }
    let padded = STEP_SIZES.iter().find(|&&size| size >= remaining);
    let full = STEP_SIZES.iter().rfind(|&&size| size <= remaining);
    let cost = |&size: &usize| {
        let rest = cheapest(remaining.saturating_sub(size)).0;
        (STEP_COST + size + rest, size)
    };
    padded
        .into_iter()
        .chain(full)
        .map(cost)
        .min()
        .unwrap_or((0, 1))
}

/// The largest step size of at most `most` tokens, at least 1.
pub(crate) fn step_within(most: usize) -> usize {
    let within = STEP_SIZES.iter().rfind(|&&size| size <= most);
    within.copied().unwrap_or(1)
}

/// The maximum number of tokens of a step with several micro-batches, whose sizes are those of
/// consecutive calls of [`next_step`]. Such a step reads each layer's weights once and needs memory
/// for the hidden state of all tokens.
pub(crate) const LONGEST_STEP: usize = 4096;

/// The size of the next step of several micro-batches for `remaining` (at least 1) tokens.
pub(crate) fn next_long_step(remaining: usize) -> usize {
    let (tokens, mut len) = (remaining.min(LONGEST_STEP), 0);
    while len < tokens {
        len += next_step(tokens - len);
    }
    len
}

/// The token ranges of the micro-batches of a step.
pub(crate) fn micro_batches(n_tokens: usize) -> Vec<Range<usize>> {
    let (mut micro_batches, mut start) = (Vec::new(), 0);
    while start < n_tokens {
        let end = n_tokens.min(start + next_step(n_tokens - start));
        micro_batches.push(start..end);
        start = end;
    }
    micro_batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_cover_all_tokens_with_little_padding() {
        for total in 1..1500usize {
            let (mut remaining, mut padding, mut steps) = (total, 0, 0);
            while remaining > 0 {
                let size = next_step(remaining);
                padding += size.saturating_sub(remaining);
                remaining = remaining.saturating_sub(size);
                steps += 1;
            }
            assert!(padding <= 6 * STEP_COST, "{total} tokens: {padding} padded");
            assert!(steps <= 7 + total / 512, "{total} tokens: {steps} steps");
        }
    }

    #[test]
    fn sizes_of_plans_are_taken_as_they_are() {
        for size in STEP_SIZES {
            assert_eq!(next_step(size), size);
        }
        let within = [0, 1, 7, 128, 511, 512, 5000].map(step_within);
        assert_eq!(within, [1, 1, 4, 128, 128, 512, 512]);
        assert_eq!(next_step(700), 512);
        assert_eq!(next_step(3), 4);
        assert_eq!(next_step(480), 512);
        assert_eq!(next_step(40), 32);
    }

    #[test]
    fn a_long_step_has_micro_batches_of_the_sizes_of_short_ones() {
        for size in STEP_SIZES {
            assert_eq!(micro_batches(size).len(), 1);
        }
        for tokens in (1..1200).chain([4095, 4096, 4097, 100_000]) {
            let len = next_long_step(tokens);
            assert!(len >= tokens.min(LONGEST_STEP) && len <= LONGEST_STEP);
            assert_eq!(next_long_step(len), len, "{tokens}");
            let mut end = 0;
            for micro_batch in micro_batches(len) {
                assert_eq!(micro_batch.start, end, "{tokens}");
                assert!(
                    STEP_SIZES.contains(&micro_batch.len()),
                    "{tokens}: {micro_batch:?}"
                );
                assert!(
                    micro_batch.start < tokens,
                    "{tokens}: {micro_batch:?} has no token"
                );
                end = micro_batch.end;
            }
            assert_eq!(end, len);
        }
    }
}
