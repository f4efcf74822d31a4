use std::fmt::Debug;

use super::candidates::Candidates;

/// One step of choosing a token. All stages first change logits, then narrow the candidates, in their order.
pub(crate) trait Stage: Debug + Send {
    /// Changes logits of single tokens; `logits[id]` may be NaN.
    fn adjust(&mut self, _logits: &mut [f32]) {}

    /// Drops candidates, never the likeliest one, or rescales them.
    fn narrow(&mut self, _candidates: &mut Candidates) {}

    /// Learns of a token of the text, from the prompt or chosen.
    fn accept(&mut self, _token: u32) {}

    /// Forgets the text.
    fn reset(&mut self) {}
}
