use std::fmt::Debug;

use rand::Rng;
use rand::rngs::ChaCha8Rng;

use super::candidates::Candidates;

/// One step of choosing a token. All stages first change logits, then narrow the candidates, in their order.
pub(crate) trait Stage: Debug + Send {
    /// Changes logits of single tokens; `logits[id]` may be NaN.
    fn adjust(&mut self, _logits: &mut [f32]) {}

    /// Drops candidates, never the last one, or rescales them.
    fn narrow(&mut self, _candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {}

    /// Learns with which probability, among the candidates that were left, a token was drawn.
    fn drawn(&mut self, _probability: f64) {}

    /// Learns of a token of the text, from the prompt or chosen.
    fn accept(&mut self, _token: u32) {}

    /// Forgets the text.
    fn reset(&mut self) {}
}

/// A number in [0, 1) of 53 random bits.
pub(crate) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}
