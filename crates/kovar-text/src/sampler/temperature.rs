use rand::rngs::ChaCha8Rng;

use super::{SamplerParams, candidates::Candidates, stage::Stage};

/// Divides logits by the temperature.
#[derive(Debug)]
pub(crate) struct Temperature {
    temperature: f32,
}

impl Temperature {
    /// `None` if nothing changes.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        (params.temperature != 1.0).then_some(Self {
            temperature: params.temperature,
        })
    }
}

impl Stage for Temperature {
    fn narrow(&mut self, candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {
        // Relative to the greatest, so that a tiny temperature cannot make several logits infinite.
        let max = candidates.max_logit();
        candidates.map_logits(|logit| {
            if logit == max {
                0.0
            } else {
                (logit - max) / self.temperature
            }
        });
    }
}
