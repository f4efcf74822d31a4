use rand::rngs::ChaCha8Rng;

use super::{SamplerParams, candidates::Candidates, stage::Stage};

/// Keeps the k most likely tokens (Fan et al. 2018, <https://arxiv.org/abs/1805.04833>).
#[derive(Debug)]
pub(crate) struct TopK {
    k: usize,
}

impl TopK {
    /// `None` if all are kept.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        let k = usize::try_from(params.top_k).ok()?;
        (k > 0).then_some(Self { k })
    }
}

impl Stage for TopK {
    fn narrow(&mut self, candidates: &mut Candidates, _rng: &mut ChaCha8Rng) {
        candidates.sort_front(self.k);
        candidates.truncate(self.k);
    }
}
