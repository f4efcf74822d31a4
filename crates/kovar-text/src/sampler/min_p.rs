use rand::rngs::ChaCha8Rng;

use super::{SamplerParams, candidates::Candidates, stage::Stage};

/// Drops tokens whose probability is below a fraction of the highest probability (Nguyen et al.
/// 2024, <https://arxiv.org/abs/2407.01082>).
#[derive(Debug)]
pub(crate) struct MinP {
    /// Natural logarithm of the fraction.
    log_fraction: f32,
}

impl MinP {
    /// `None` if all are kept.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        (params.min_p > 0.0).then(|| Self {
            log_fraction: libm::log(params.min_p.into()) as f32,
        })
    }
}

impl Stage for MinP {
    fn narrow(&mut self, candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {
        let least = candidates.max_logit() + self.log_fraction;
        candidates.retain(|candidate| candidate.logit >= least);
    }
}
