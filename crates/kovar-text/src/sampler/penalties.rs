use std::collections::{HashMap, VecDeque};

use super::{SamplerParams, stage::Stage};

/// Makes recent tokens less likely (repetition: Keskar et al. 2019,
/// <https://arxiv.org/abs/1909.05858>; frequency and presence: as the OpenAI API defines them).
#[derive(Debug)]
pub(crate) struct Penalties {
    repetition: f32,
    frequency: f32,
    presence: f32,
    last_n: usize,
    recent: VecDeque<u32>,
    counts: HashMap<u32, u32>,
}

impl Penalties {
    /// `None` if the parameters change nothing.
    pub fn new(params: &SamplerParams) -> Option<Self> {
        let changes = params.repetition_penalty != 1.0
            || params.frequency_penalty != 0.0
            || params.presence_penalty != 0.0;
        let last_n = params.repeat_last_n;
        (changes && last_n > 0).then(|| Self {
            repetition: params.repetition_penalty,
            frequency: params.frequency_penalty,
            presence: params.presence_penalty,
            last_n,
            recent: VecDeque::with_capacity(last_n),
            counts: HashMap::with_capacity(2 * last_n),
        })
    }
}

impl Stage for Penalties {
    fn adjust(&mut self, logits: &mut [f32]) {
        for (&token, &count) in &self.counts {
            let Some(logit) = logits.get_mut(token as usize) else {
                continue;
            };
            if *logit <= 0.0 {
                *logit *= self.repetition;
            } else {
                *logit /= self.repetition;
            }
            *logit -= count as f32 * self.frequency + self.presence;
        }
    }

    fn accept(&mut self, token: u32) {
        if self.recent.len() == self.last_n
            && let Some(oldest) = self.recent.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
        self.recent.push_back(token);
        *self.counts.entry(token).or_insert(0) += 1;
    }

    fn reset(&mut self) {
        self.recent.clear();
        self.counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn penalties(params: SamplerParams) -> Penalties {
        Penalties::new(&params).unwrap()
    }

    #[test]
    fn repetition_moves_logits_of_either_sign_down() {
        let mut stage = penalties(SamplerParams {
            repetition_penalty: 2.0,
            ..SamplerParams::default()
        });
        stage.accept(0);
        stage.accept(1);
        stage.accept(1);
        let mut logits = [4.0, -4.0, 4.0];
        stage.adjust(&mut logits);
        assert_eq!(logits, [2.0, -8.0, 4.0]);
    }

    #[test]
    fn frequency_counts_and_presence_does_not() {
        let mut stage = penalties(SamplerParams {
            frequency_penalty: 0.5,
            presence_penalty: 1.0,
            ..SamplerParams::default()
        });
        [0, 1, 1, 1]
            .into_iter()
            .for_each(|token| stage.accept(token));
        let mut logits = [0.0, 0.0, 0.0];
        stage.adjust(&mut logits);
        assert_eq!(logits, [-1.5, -2.5, 0.0]);
    }

    #[test]
    fn tokens_beyond_the_window_are_forgotten() {
        let mut stage = penalties(SamplerParams {
            presence_penalty: 1.0,
            repeat_last_n: 2,
            ..SamplerParams::default()
        });
        [0, 1, 2].into_iter().for_each(|token| stage.accept(token));
        let mut logits = [0.0; 4];
        stage.adjust(&mut logits);
        assert_eq!(logits, [0.0, -1.0, -1.0, 0.0]);
        stage.reset();
        stage.adjust(&mut logits);
        assert_eq!(logits, [0.0, -1.0, -1.0, 0.0]);
    }

    #[test]
    fn ids_without_a_logit_are_ignored() {
        let mut stage = penalties(SamplerParams {
            presence_penalty: 1.0,
            ..SamplerParams::default()
        });
        stage.accept(u32::MAX);
        let mut logits = [0.0];
        stage.adjust(&mut logits);
        assert_eq!(logits, [0.0]);
    }
}
