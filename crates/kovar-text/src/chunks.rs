//! How a run of tokens is cut into steps of the sizes that plans are compiled for.

use std::ops::Range;

/// The token counts of compiled steps. A step with fewer tokens is padded and the tail masked.
const STEP_SIZES: [usize; 7] = [1, 2, 4, 8, 32, 128, 512];

/// What a step costs beside its tokens, in tokens: reading all weights once takes about as long
/// as the arithmetic of this many.
const STEP_COST: usize = 8;

/// The size of the next step for `remaining` tokens, 1 or more: the one that makes the estimated
/// cost of all steps least.
pub(crate) fn next_step(remaining: usize) -> usize {
    cheapest(remaining.min(STEP_SIZES[STEP_SIZES.len() - 1])).1
}

/// The estimated cost of `remaining` tokens, and the first step's size.
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

/// The largest step of at most `most` tokens, 1 at least.
pub(crate) fn step_within(most: usize) -> usize {
    let within = STEP_SIZES.iter().rfind(|&&size| size <= most);
    within.copied().unwrap_or(1)
}

/// The most tokens of a step of several parts, the sizes that [`next_step`] gives one after
/// another: such a step takes each layer's weights once, and memory for the hidden state of all
/// tokens.
pub(crate) const LONGEST_STEP: usize = 4096;

/// The tokens of a step of several parts that `remaining` tokens, 1 or more, begin with.
pub(crate) fn next_long_step(remaining: usize) -> usize {
    let (tokens, mut len) = (remaining.min(LONGEST_STEP), 0);
    while len < tokens {
        len += next_step(tokens - len);
    }
    len
}

/// The parts of a step.
pub(crate) fn parts(n_tokens: usize) -> Vec<Range<usize>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    while start < n_tokens {
        let end = n_tokens.min(start + next_step(n_tokens - start));
        parts.push(start..end);
        start = end;
    }
    parts
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
    fn a_long_step_has_parts_of_the_sizes_of_short_ones() {
        for size in STEP_SIZES {
            assert_eq!(parts(size).len(), 1);
        }
        for tokens in (1..1200).chain([4095, 4096, 4097, 100_000]) {
            let len = next_long_step(tokens);
            assert!(len >= tokens.min(LONGEST_STEP) && len <= LONGEST_STEP);
            assert_eq!(next_long_step(len), len, "{tokens}");
            let mut end = 0;
            for part in parts(len) {
                assert_eq!(part.start, end, "{tokens}");
                assert!(STEP_SIZES.contains(&part.len()), "{tokens}: {part:?}");
                assert!(part.start < tokens, "{tokens}: {part:?} has no token");
                end = part.end;
            }
            assert_eq!(end, len);
        }
    }
}
