use rand::rngs::ChaCha8Rng;

use super::candidates::{Candidates, weight};
use super::{SamplerParams, stage::Stage};

/// Keeps the smallest set of most likely tokens whose probabilities add up to p (nucleus sampling,
/// Holtzman et al. 2019, <https://arxiv.org/abs/1904.09751>).
#[derive(Debug)]
pub(crate) struct TopP {
    p: f64,
}

/// How many candidates are sorted first; the nucleus is usually smaller.
const FIRST_SORTED: usize = 128;

impl TopP {
    /// `None` if all are kept.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        (params.top_p < 1.0).then_some(Self {
            p: params.top_p.into(),
        })
    }
}

impl Stage for TopP {
    fn narrow(&mut self, candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {
        let enough = self.p * candidates.total_weight();
        let max = candidates.max_logit();
        let (mut sum, mut kept, mut sorted) = (0.0, 0, FIRST_SORTED);
        loop {
            for candidate in candidates.sort_front(sorted).iter().skip(kept) {
                sum += weight(candidate.logit, max);
                kept += 1;
                if sum >= enough {
                    candidates.truncate(kept);
                    return;
                }
            }
            if kept == candidates.len() {
                return;
            }
            sorted *= 4;
        }
    }
}
