//! Mirostat: keeps the surprise of the text near a target (Basu et al. 2020,
//! <https://arxiv.org/abs/2007.14966>).

use rand::rngs::ChaCha8Rng;

use super::candidates::{Candidates, weight};
use super::stage::Stage;
use super::{Mirostat, SamplerParams};

/// The number of the most likely tokens from which version 1 estimates the exponent of Zipf's law.
const ESTIMATED_FROM: usize = 100;

/// Keeps the surprise, -log2 of the probability of a drawn token, near `tau`: the bound `mu` is
/// corrected by the error times the rate `eta`.
#[derive(Debug)]
pub(crate) struct MirostatStage {
    version: Mirostat,
    tau: f64,
    eta: f64,
    mu: f64,
    vocab_len: usize,
}

impl MirostatStage {
    /// `None` if it is off.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        let tau = f64::from(params.mirostat_tau);
        (params.mirostat != Mirostat::Off).then_some(Self {
            version: params.mirostat,
            tau,
            eta: params.mirostat_eta.into(),
            mu: 2.0 * tau,
            vocab_len: 0,
        })
    }

    /// The number of tokens to keep, by the exponent of Zipf's law fitted to the most likely ones.
    fn zipf_count(&self, candidates: &mut Candidates) -> usize {
        let (mut products, mut squares) = (0.0, 0.0);
        let sorted = candidates.sort_front(ESTIMATED_FROM);
        for (rank, (a, b)) in (1u32..).zip(sorted.iter().zip(sorted.iter().skip(1))) {
            let t = libm::log(f64::from(rank + 1) / f64::from(rank));
            // Also correct if both are infinite.
            let b = if a.logit == b.logit {
                0.0
            } else {
                f64::from(a.logit) - f64::from(b.logit)
            };
            products += t * b;
            squares += t * t;
        }
        let s = products / squares;
        let epsilon = s - 1.0;
        let n = self.vocab_len as f64;
        let scale = if epsilon == 0.0 {
            1.0 / libm::log(n)
        } else {
            epsilon / (1.0 - libm::pow(n, -epsilon))
        };
        let k = libm::pow(scale * libm::exp2(self.mu), 1.0 / s);
        // With a single candidate the estimate is NaN, which becomes 0.
        (k as usize).max(1)
    }

    fn within_bound(&self, candidates: &mut Candidates) {
        let (max, total) = (candidates.max_logit(), candidates.total_weight());
        let least = libm::exp2(-self.mu);
        candidates.retain(|item| item.logit == max || weight(item.logit, max) / total >= least);
        if total.recip() < least {
            // Even the most likely token is below the bound; only it is kept.
            candidates.sort_front(1);
            candidates.truncate(1);
        }
    }
}

impl Stage for MirostatStage {
    fn adjust(&mut self, logits: &mut [f32]) {
        self.vocab_len = logits.len();
    }

    fn narrow(&mut self, candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {
        match self.version {
            Mirostat::Off => {}
            Mirostat::V1 => {
                let kept = self.zipf_count(candidates);
                candidates.sort_front(kept);
                candidates.truncate(kept);
            }
            Mirostat::V2 => self.within_bound(candidates),
        }
    }

    fn drawn(&mut self, probability: f64) {
        let surprise = -libm::log2(probability);
        self.mu -= self.eta * (surprise - self.tau);
    }

    fn reset(&mut self) {
        self.mu = 2.0 * self.tau;
    }
}
