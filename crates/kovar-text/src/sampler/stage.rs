use std::fmt::Debug;

use rand::Rng;
use rand::rngs::ChaCha8Rng;

use super::candidates::Candidates;

/// A stage of sampling. All stages first adjust the logits, in order; then all stages narrow the
/// candidates, in order.
pub(crate) trait Stage: Debug + Send {
    /// Changes the logits of individual tokens; `logits[id]` may be NaN.
    fn adjust(&mut self, _logits: &mut [f32]) {}

    /// Drops candidates, never the last one, or rescales them.
    fn narrow(&mut self, _candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {}

    /// Receives the probability of the drawn token among the remaining candidates.
    fn drawn(&mut self, _probability: f64) {}

    /// Receives a token of the text, from the prompt or sampled.
    fn accept(&mut self, _token: u32) {}

    /// Forgets the text.
    fn reset(&mut self) {}
}

/// A number in [0, 1) of 53 random bits.
pub(crate) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}
