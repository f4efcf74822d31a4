use rand::rngs::ChaCha8Rng;

use super::candidates::{Candidates, weight};
use super::stage::{Stage, uniform};
use super::{SamplerParams, candidates};

/// With a given probability, drops all tokens above a threshold except the least likely of them
/// ("exclude top choices", p-e-w 2024,
/// <https://github.com/oobabooga/text-generation-webui/pull/6335>).
#[derive(Debug)]
pub(crate) struct Xtc {
    probability: f64,
    threshold: f64,
}

impl Xtc {
    /// `None` if nothing is ever dropped: two tokens cannot both have a probability above 0.5.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        (params.xtc_probability > 0.0 && params.xtc_threshold <= 0.5).then_some(Self {
            probability: params.xtc_probability.into(),
            threshold: params.xtc_threshold.into(),
        })
    }
}

impl Stage for Xtc {
    fn narrow(&mut self, candidates: &mut Candidates, rng: &mut ChaCha8Rng) {
        if uniform(rng) >= self.probability {
            return;
        }
        let (max, total) = (candidates.max_logit(), candidates.total_weight());
        let is_likely =
            |item: &&candidates::Candidate| weight(item.logit, max) / total >= self.threshold;
        let likely = candidates.as_slice().iter().filter(is_likely).count();
        candidates.sort_front(likely);
        candidates.drop_front(likely.saturating_sub(1));
    }
}
