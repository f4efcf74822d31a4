//! Mirostat: keeps the surprise of the text near a target (Basu et al. 2020, <https://arxiv.org/abs/2007.14966>).

use rand::rngs::ChaCha8Rng;

use super::candidates::{Candidates, weight};
use super::stage::Stage;
use super::{Mirostat, SamplerParams};

/// The likeliest tokens from which version 1 estimates how probabilities fall.
const ESTIMATED_FROM: usize = 100;

/// Holds the surprise, -log2 of the probability that a token is drawn with, near `tau` by moving the bound
/// `mu` against the error with the rate `eta`.
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

    /// How many of the likeliest tokens are kept, by the exponent of Zipf's law that fits the likeliest.
    fn zipf_count(&self, candidates: &mut Candidates) -> usize {
        let (mut products, mut squares) = (0.0, 0.0);
        let sorted = candidates.sort_front(ESTIMATED_FROM);
        for (rank, (a, b)) in (1u32..).zip(sorted.iter().zip(sorted.iter().skip(1))) {
            let t = libm::log(f64::from(rank + 1) / f64::from(rank));
            // Equal also where both are infinite.
            let b = match a.logit == b.logit {
                true => 0.0,
                false => f64::from(a.logit) - f64::from(b.logit),
            };
            products += t * b;
            squares += t * t;
        }
        let s = products / squares;
        let epsilon = s - 1.0;
        let n = self.vocab_len as f64;
        let fall = match epsilon == 0.0 {
            true => 1.0 / libm::log(n),
            false => epsilon / (1.0 - libm::pow(n, -epsilon)),
        };
        let k = libm::pow(fall * libm::exp2(self.mu), 1.0 / s);
        // A single candidate leaves nothing to estimate from, and NaN becomes 0.
        (k as usize).max(1)
    }

    fn within_bound(&self, candidates: &mut Candidates) {
        let (max, total) = (candidates.max_logit(), candidates.total_weight());
        let least = libm::exp2(-self.mu);
        candidates.retain(|item| item.logit == max || weight(item.logit, max) / total >= least);
        if total.recip() < least {
            // Not even the likeliest is likely enough; it alone is kept.
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
