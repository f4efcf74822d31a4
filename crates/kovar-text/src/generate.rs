//! Text generation: evaluates a prompt, then samples and evaluates one token after another.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::grammar::{Allowed, Constraint, Grammar, GrammarError};
use crate::model::{EvalError, LogitsOf, Model};
use crate::sampler::{Sampler, SamplerError};
use crate::stream::{EmptyStopString, StopStrings, Utf8Stream};
use crate::tokenizer::{Tokenizer, TokenizerError};

/// When generation ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenerateOptions {
    /// The maximum number of tokens to generate; `None` generates until the model ends the text or
    /// the context is full.
    pub max_tokens: Option<usize>,
    /// Strings that end the text; they are not part of it.
    pub stop: Vec<String>,
    /// Whether the tokens that end a text are never sampled, so that the text continues.
    pub ignore_end: bool,
    /// Constrains the text. It may still end early at a limit or a stop string.
    pub grammar: Option<Grammar>,
}

/// Why generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended the text.
    End,
    /// The text is complete: the grammar allows nothing after it.
    GrammarEnd,
    /// The text reached a stop string.
    Stop(String),
    /// The maximum number of tokens was generated.
    MaxTokens,
    /// The context is full.
    ContextFull,
    /// The caller stopped it.
    Cancelled,
}

/// What is reported to the caller during generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A part of the prompt is evaluated.
    Prompt {
        /// Tokens evaluated.
        done: usize,
        /// Tokens of the prompt that were not already in the context.
        total: usize,
    },
    /// More text, in whole characters.
    Text(&'a str),
}

/// A generated text.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The text, without the prompt.
    pub text: String,
    /// The sampled tokens, without the one that ended the text.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: FinishReason,
    /// Tokens of the prompt that were evaluated; the others were already in the context.
    pub prompt_evaluated: usize,
    /// Time for the prompt.
    pub prompt_time: Duration,
    /// Time for the generated tokens.
    pub generate_time: Duration,
}

/// Why text could not be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Tokens could not be evaluated.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// No token could be sampled.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// A sampled token is not in the vocabulary.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The text cannot be constrained by the grammar.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// A stop string is empty.
    #[error(transparent)]
    Stop(#[from] EmptyStopString),
}

/// Continues `prompt` with `model`. The common prefix of the prompt and the model's context is not
/// evaluated again; the rest of the context is dropped.
///
/// `on_progress` may stop the generation with [`ControlFlow::Break`].
///
/// # Errors
/// A prompt that is empty or does not fit into the context, a device failure, logits that are NaN,
/// an empty stop string, a grammar that is invalid or that no token can follow.
pub fn generate(
    model: &mut Model,
    tokenizer: &Tokenizer,
    sampler: &mut Sampler,
    prompt: &[u32],
    options: &GenerateOptions,
    on_progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Generation, GenerateError> {
    let mut stops = StopStrings::new(options.stop.clone())?;
    let grammar = options.grammar.as_ref();
    let mut constraint = grammar
        .map(|grammar| Constraint::compile(grammar, tokenizer))
        .transpose()?;
    let ends = if options.ignore_end {
        &[]
    } else {
        tokenizer.end_ids()
    };
    let mut characters = Utf8Stream::new();
    let (mut decoded, mut text) = (String::new(), String::new());
    let mut tokens = Vec::new();
    let mut logits = Vec::new();

    let start = Instant::now();
    let kept = model.keep_prefix(prompt);
    let rest = &prompt[kept..];
    // Before anything is evaluated.
    model.check(rest)?;
    for &token in prompt {
        sampler.accept(token);
    }
    let mut flow = ControlFlow::Continue(());
    let total = rest.len();
    let mut done = 0;
    for chunk in rest.chunks(model.prompt_tokens()) {
        let mut go_on = || {
            flow = on_progress(Progress::Prompt { done, total });
            flow
        };
        let evaluated = model.eval_while(chunk, LogitsOf::Last, &mut logits, &mut go_on);
        if flow.is_break() {
            // The caller stopped: the result of the chunk does not matter.
            break;
        }
        evaluated?;
        done += chunk.len();
    }
    done = model.tokens().len().saturating_sub(kept);
    // The next prompt often begins with this prompt but continues differently.
    model.checkpoint().map_err(EvalError::from)?;
    if flow.is_continue() {
        flow = on_progress(Progress::Prompt { done, total });
    }
    let prompt_time = start.elapsed();

    let start = Instant::now();
    let mut emitted = 0;
    let finish = loop {
        if flow.is_break() {
            break FinishReason::Cancelled;
        }
        if options.max_tokens.is_some_and(|max| tokens.len() >= max) {
            break FinishReason::MaxTokens;
        }
        // Some models pad their logits beyond the vocabulary.
        let known = logits.len().min(tokenizer.vocab_len());
        if options.ignore_end {
            for &end in tokenizer.end_ids() {
                if let Some(logit) = logits.get_mut(end as usize) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        let mut may_end = true;
        if let Some(constraint) = &mut constraint {
            match constraint.mask(&mut logits[..known], ends)? {
                Allowed::More { end } => may_end = end,
                Allowed::Nothing => break FinishReason::GrammarEnd,
            }
        }
        let token = sampler.sample(&mut logits[..known])?;
        if may_end && ends.binary_search(&token).is_ok() {
            break FinishReason::End;
        }
        sampler.accept(token);
        tokens.push(token);
        if let Some(constraint) = &mut constraint {
            constraint.accept(token)?;
        }
        decoded.clear();
        characters.push(&tokenizer.token_bytes(token)?, &mut decoded);
        let stop = stops.push(&decoded, &mut text);
        if text.len() > emitted {
            flow = on_progress(Progress::Text(&text[emitted..]));
            emitted = text.len();
        }
        if let Some(stop) = stop {
            break FinishReason::Stop(options.stop[stop.index].clone());
        }
        if constraint.as_ref().is_some_and(Constraint::is_complete) {
            break FinishReason::GrammarEnd;
        }
        if options.max_tokens.is_some_and(|max| tokens.len() >= max) {
            break FinishReason::MaxTokens;
        }
        if model.context_len() == Some(model.tokens().len()) {
            break FinishReason::ContextFull;
        }
        model.eval(&[token], LogitsOf::Last, &mut logits)?;
    };
    if !matches!(finish, FinishReason::Stop(_)) {
        decoded.clear();
        characters.finish(&mut decoded);
        stops.push(&decoded, &mut text);
        stops.finish(&mut text);
        if text.len() > emitted && finish != FinishReason::Cancelled {
            // The text has already ended, so there is nothing to stop.
            let _ = on_progress(Progress::Text(&text[emitted..]));
        }
    }
    Ok(Generation {
        text,
        tokens,
        finish,
        prompt_evaluated: done,
        prompt_time,
        generate_time: start.elapsed(),
    })
}
