//! How well a model predicts a text.

use std::ops::ControlFlow;

use crate::model::{EvalError, LogitsOf, Model};

/// The number of tokens whose logits are computed together, which bounds their memory. Under a
/// budget, load the model with this many [`logit_rows`](crate::ModelOptions::logit_rows) to reserve
/// the memory.
pub const SCORED_AT_ONCE: usize = 128;

/// The minimum number of tokens of a chunk: one token of context, the first token of the second
/// half (context too), and one scored token.
pub const MIN_CHUNK: usize = 3;

/// The perplexity of a text, exp of the mean of -ln p(token | tokens before it in its chunk).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// The perplexity.
    pub value: f64,
    /// Its standard error: `value` times the standard error of the mean. 0 for a single token.
    pub std_error: f64,
    /// Tokens that were scored.
    pub scored: usize,
    /// Tokens of the text.
    pub tokens: usize,
    /// Tokens of a chunk.
    pub chunk: usize,
    /// Chunks that were evaluated.
    pub chunks: usize,
}

/// Why a text could not be scored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerplexityError {
    /// A text that is too short to score any token.
    #[error("the text has too few tokens to score: {tokens}; {MIN_CHUNK} are needed")]
    TooShort {
        /// Its tokens.
        tokens: usize,
    },
    /// A chunk size that is too small, or larger than the context.
    #[error("a chunk of {chunk} tokens is not possible; it must be {}", possible(*.context))]
    Chunk {
        /// The requested tokens of a chunk.
        chunk: usize,
        /// Tokens that the context holds, if there is a limit.
        context: Option<usize>,
    },
    /// A token of the text has the probability 0 or NaN, so there is no mean.
    #[error("token {token} at position {position} of the text has the probability {probability}")]
    NotFinite {
        /// The token.
        token: u32,
        /// Its position in the text.
        position: usize,
        /// Its probability according to the model: 0 or NaN.
        probability: f64,
    },
    /// Tokens could not be evaluated.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

fn possible(context: Option<usize>) -> String {
    match context {
        Some(context) => format!("between {MIN_CHUNK} and the context of {context}"),
        None => format!("at least {MIN_CHUNK}"),
    }
}

/// Scores the tokens of a text as llama.cpp's `llama-perplexity` does.
///
/// The text is split into chunks of `chunk` tokens, each evaluated from an empty context. An
/// incomplete chunk at the end is ignored. A text shorter than a chunk is one chunk of its own
/// length. The first half of a chunk and the first token of its second half are context; the other
/// tokens are scored: `chunk - chunk/2 - 1` per chunk. If `bos` is given, it replaces the first
/// token of each chunk.
///
/// `on_chunk` is called after each chunk with the number of chunks done, the number of all chunks,
/// and the perplexity so far; it may stop the evaluation. Afterwards the model's context holds the
/// last chunk.
///
/// # Errors
/// See [`PerplexityError`].
pub fn perplexity(
    model: &mut Model,
    tokens: &[u32],
    bos: Option<u32>,
    chunk: usize,
    on_chunk: &mut dyn FnMut(usize, usize, f64) -> ControlFlow<()>,
) -> Result<Perplexity, PerplexityError> {
    let context = model.context_len();
    if chunk < MIN_CHUNK || context.is_some_and(|context| chunk > context) {
        return Err(PerplexityError::Chunk { chunk, context });
    }
    let chunk = chunk.min(tokens.len());
    if chunk < MIN_CHUNK {
        return Err(PerplexityError::TooShort {
            tokens: tokens.len(),
        });
    }
    let chunks = tokens.len() / chunk;
    let mut losses = Losses::default();
    let mut text = Vec::with_capacity(chunk);
    for (at, tokens) in tokens.chunks_exact(chunk).enumerate() {
        text.clear();
        text.extend_from_slice(tokens);
        if let (Some(first), Some(bos)) = (text.first_mut(), bos) {
            *first = bos;
        }
        score(model, &text, at * chunk, &mut losses)?;
        if on_chunk(at + 1, chunks, losses.perplexity()).is_break() {
            return Err(PerplexityError::Stopped);
        }
    }
    Ok(Perplexity {
        value: losses.perplexity(),
        std_error: losses.std_error(),
        scored: losses.count,
        tokens: tokens.len(),
        chunk,
        chunks,
    })
}

/// Adds the losses of a chunk that begins at position `start` of the text.
fn score(
    model: &mut Model,
    chunk: &[u32],
    start: usize,
    losses: &mut Losses,
) -> Result<(), PerplexityError> {
    let mut logits = Vec::new();
    let (before, scored) = chunk.split_at(chunk.len() / 2);
    let vocab_len = model.vocab_len();
    model.truncate(0);
    model.eval(before, LogitsOf::Last, &mut logits)?;
    // The logits after a token predict the next token.
    let (from, to) = (scored, scored.get(1..).unwrap_or_default());
    let mut position = start + before.len() + 1;
    for (from, to) in from.chunks(SCORED_AT_ONCE).zip(to.chunks(SCORED_AT_ONCE)) {
        let from = from.get(..to.len()).unwrap_or(from);
        model.eval(from, LogitsOf::All, &mut logits)?;
        for (row, &token) in logits.chunks_exact(vocab_len).zip(to) {
            let loss = -log_probability(row, token);
            if !loss.is_finite() {
                return Err(PerplexityError::NotFinite {
                    token,
                    position,
                    probability: libm::exp(-loss),
                });
            }
            losses.add(loss);
            position += 1;
        }
    }
    Ok(())
}

/// ln of the softmax of `logits` at `token`.
fn log_probability(logits: &[f32], token: u32) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let above = |logit: f32| f64::from(logit) - f64::from(max);
    let sum: f64 = logits.iter().map(|&logit| libm::exp(above(logit))).sum();
    let logit = logits.get(token as usize);
    logit.map_or(f64::NEG_INFINITY, |&logit| above(logit) - libm::log(sum))
}

/// The sums from which the mean and the variance are computed.
#[derive(Default)]
struct Losses {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Losses {
    fn add(&mut self, loss: f64) {
        self.count += 1;
        self.sum += loss;
        self.squares += loss * loss;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn perplexity(&self) -> f64 {
        libm::exp(self.mean())
    }

    fn std_error(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let variance = self.squares / self.count as f64 - self.mean() * self.mean();
        let of_mean = (variance.max(0.0) / (self.count - 1) as f64).sqrt();
        of_mean * self.perplexity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_are_those_of_a_softmax() {
        let logits = [1000.0, 999.0, f32::NEG_INFINITY];
        let sum = 1.0 + (-1.0f64).exp();
        assert!((log_probability(&logits, 0) + sum.ln()).abs() < 1e-12);
        assert!((log_probability(&logits, 1) + 1.0 + sum.ln()).abs() < 1e-12);
        assert_eq!(log_probability(&logits, 2), f64::NEG_INFINITY);
        assert_eq!(log_probability(&logits, 3), f64::NEG_INFINITY);
        assert!(log_probability(&[f32::NAN, 0.0], 1).is_nan());
    }

    #[test]
    fn the_standard_error_is_that_of_the_mean_times_the_perplexity() {
        let mut losses = Losses::default();
        [1.0, 2.0, 3.0, 6.0].into_iter().for_each(|x| losses.add(x));
        let variance = (4.0 + 1.0 + 0.0 + 9.0) / 4.0;
        let expected = (variance / 3.0f64).sqrt() * 3.0f64.exp();
        assert!((losses.std_error() - expected).abs() < 1e-12);
    }
}
