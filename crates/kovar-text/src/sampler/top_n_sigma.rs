use rand::rngs::ChaCha8Rng;

use super::{SamplerParams, candidates::Candidates, stage::Stage};

/// Keeps the tokens whose logit is within n standard deviations of the greatest (Tang et al. 2024,
/// <https://arxiv.org/abs/2411.07641>).
#[derive(Debug)]
pub(crate) struct TopNSigma {
    n: f64,
}

impl TopNSigma {
    /// `None` if all are kept.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        (params.top_n_sigma > 0.0).then_some(Self {
            n: params.top_n_sigma.into(),
        })
    }
}

impl Stage for TopNSigma {
    fn narrow(&mut self, candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {
        let logits = || candidates.as_slice().iter().map(|c| f64::from(c.logit));
        let count = candidates.len() as f64;
        let mean = logits().sum::<f64>() / count;
        let variance = logits().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let least = f64::from(candidates.max_logit()) - self.n * variance.sqrt();
        // With an infinite logit there is no standard deviation.
        if least.is_finite() {
            candidates.retain(|candidate| f64::from(candidate.logit) >= least);
        }
    }
}
