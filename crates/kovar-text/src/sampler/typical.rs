use rand::rngs::ChaCha8Rng;

use super::candidates::{Candidates, weight};
use super::{SamplerParams, stage::Stage};

/// Keeps the tokens whose surprise is nearest to the expected one, until their probabilities add up
/// to p (locally typical sampling, Meister et al. 2022, <https://arxiv.org/abs/2202.00666>).
///
/// The surprise of a token is -ln of its probability; the expected surprise is the entropy of the
/// candidates.
#[derive(Debug)]
pub(crate) struct Typical {
    p: f64,
}

impl Typical {
    /// `None` if all are kept.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        (params.typical_p < 1.0).then_some(Self {
            p: params.typical_p.into(),
        })
    }
}

impl Stage for Typical {
    fn narrow(&mut self, candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {
        let (max, total) = (candidates.max_logit(), candidates.total_weight());
        let probability = |logit| weight(logit, max) / total;
        let items = candidates.as_slice();
        let entropy: f64 = items
            .iter()
            .map(|item| probability(item.logit))
            .filter(|&p| p > 0.0)
            .map(|p| -p * libm::log(p))
            .sum();
        let mut scored: Vec<(f64, f64, usize)> = (items.iter().enumerate())
            .map(|(at, item)| {
                let p = probability(item.logit);
                ((-libm::log(p) - entropy).abs(), p, at)
            })
            .collect();
        scored.sort_unstable_by(|a, b| {
            let by_score = a.0.total_cmp(&b.0);
            by_score.then(b.1.total_cmp(&a.1)).then_with(|| {
                match (items.get(a.2), items.get(b.2)) {
                    (Some(a), Some(b)) => a.id.cmp(&b.id),
                    _ => a.2.cmp(&b.2),
                }
            })
        });
        let mut kept = vec![false; items.len()];
        let mut sum = 0.0;
        for (_, p, at) in scored {
            if let Some(kept) = kept.get_mut(at) {
                *kept = true;
            }
            sum += p;
            if sum >= self.p {
                break;
            }
        }
        candidates.retain_marked(&kept);
    }
}
