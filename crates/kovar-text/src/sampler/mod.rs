//! Sampling the next token from a model's logits.

mod candidates;
mod dry;
mod logit_bias;
mod min_p;
mod mirostat;
mod params;
mod penalties;
mod stage;
mod temperature;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical;
mod xtc;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use candidates::{Candidates, weight};
use stage::{Stage, uniform};

pub use dry::{DEFAULT_BREAKERS, breaker_tokens};
pub use logit_bias::text_bias;
pub use params::{Mirostat, SamplerError, SamplerParams};

/// Samples tokens. The stages run in llama.cpp's order: logit bias, penalties, DRY, top-n-sigma,
/// top-k, typical, top-p, min-p, XTC, temperature, then a random draw. With Mirostat, only
/// temperature and Mirostat follow DRY.
///
/// A seed gives the same tokens on every platform: the random numbers are those of ChaCha8, and no
/// function of the platform's math library is used.
#[derive(Debug)]
pub struct Sampler {
    stages: Vec<Box<dyn Stage>>,
    greedy: bool,
    candidates: Candidates,
    seed: u64,
    rng: ChaCha8Rng,
}

impl Sampler {
    /// A sampler for an empty text.
    ///
    /// # Errors
    /// [`SamplerError::OutOfRange`], see [`SamplerParams::validate`].
    pub fn new(params: &SamplerParams) -> Result<Self, SamplerError> {
        params.validate()?;
        let greedy = params.temperature == 0.0;
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        push(&mut stages, logit_bias::LogitBias::new(params));
        push(&mut stages, penalties::Penalties::new(params));
        push(&mut stages, dry::Dry::new(params));
        if !greedy && params.mirostat == Mirostat::Off {
            push(&mut stages, top_n_sigma::TopNSigma::new(params));
            push(&mut stages, top_k::TopK::new(params));
            push(&mut stages, typical::Typical::new(params));
            push(&mut stages, top_p::TopP::new(params));
            push(&mut stages, min_p::MinP::new(params));
            push(&mut stages, xtc::Xtc::new(params));
        }
        if !greedy {
            push(&mut stages, temperature::Temperature::new(params));
            push(&mut stages, mirostat::MirostatStage::new(params));
        }
        let seed = params.seed.unwrap_or_else(rand::random);
        Ok(Self {
            stages,
            greedy,
            candidates: Candidates::default(),
            seed,
            rng: ChaCha8Rng::seed_from_u64(seed),
        })
    }

    /// The seed in use; it reproduces the same tokens.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Samples a token; `logits[id]` belongs to token `id` and is changed by biases and penalties.
    ///
    /// Tokens whose logit is NaN or minus infinity are never sampled; among equally likely tokens
    /// the lowest id comes first. Only the first call allocates memory. The token is not
    /// [accepted](Self::accept).
    ///
    /// # Errors
    /// [`SamplerError::NoCandidates`] if no token is left, [`SamplerError::TooManyLogits`].
    pub fn sample(&mut self, logits: &mut [f32]) -> Result<u32, SamplerError> {
        let len = logits.len();
        if u32::try_from(len).is_err() {
            return Err(SamplerError::TooManyLogits { len });
        }
        for stage in &mut self.stages {
            stage.adjust(logits);
        }
        let chosen = if self.greedy {
            likeliest(logits)
        } else {
            self.draw(logits)
        };
        chosen.ok_or(SamplerError::NoCandidates { len })
    }

    fn draw(&mut self, logits: &[f32]) -> Option<u32> {
        self.candidates.fill(logits);
        for stage in &mut self.stages {
            stage.narrow(&mut self.candidates, &mut self.rng);
        }
        let max = self.candidates.max_logit();
        let total = self.candidates.total_weight();
        let mut left = uniform(&mut self.rng) * total;
        let mut last = None;
        for candidate in self.candidates.as_slice() {
            let weight = weight(candidate.logit, max);
            if weight == 0.0 {
                continue;
            }
            last = Some((candidate.id, weight));
            if left < weight {
                break;
            }
            left -= weight;
        }
        let (id, weight) = last?;
        for stage in &mut self.stages {
            stage.drawn(weight / total);
        }
        Some(id)
    }

    /// Adds a token of the text, from the prompt or sampled, to the history of the penalties and
    /// DRY.
    pub fn accept(&mut self, token: u32) {
        for stage in &mut self.stages {
            stage.accept(token);
        }
    }

    /// Begins a new text: resets penalties, DRY and Mirostat, and restarts the random numbers from
    /// the seed.
    pub fn reset(&mut self) {
        for stage in &mut self.stages {
            stage.reset();
        }
        self.rng = ChaCha8Rng::seed_from_u64(self.seed);
    }
}

fn push<S: Stage + 'static>(stages: &mut Vec<Box<dyn Stage>>, stage: Option<S>) {
    if let Some(stage) = stage {
        stages.push(Box::new(stage));
    }
}

/// The lowest id with the greatest logit.
fn likeliest(logits: &[f32]) -> Option<u32> {
    let mut best = None;
    let mut best_logit = f32::NEG_INFINITY;
    for (id, &logit) in (0u32..).zip(logits) {
        if logit > best_logit {
            (best, best_logit) = (Some(id), logit);
        }
    }
    best
}
