//! Runs a generation with the text on stdout, progress on stderr, and cancellation by Ctrl-C.

use std::ops::ControlFlow;
use std::time::Duration;

use indicatif::ProgressBar;
use kovar::{
    FinishReason, GenerateOptions, Generation, LanguageModelError, Progress, SamplerParams,
};
use serde::Serialize;

use crate::diagnostics::note;
use crate::interrupt::Interrupt;
use crate::{format, output, progress};

/// Shorter prompts, in tokens, show no progress.
const LONG_PROMPT: usize = 512;

/// The callback for the progress of a generation.
pub type OnProgress<'a> = dyn FnMut(Progress<'_>) -> ControlFlow<()> + 'a;

/// Runs `generate`. With `shown`, writes `shown` and then the text to stdout as it is generated,
/// and a newline at the end, even after an error. Nothing is written if it fails before it begins.
/// Ctrl-C ends it with [`FinishReason::Cancelled`]; before the first progress, Ctrl-C ends the
/// program.
///
/// # Errors
/// Those of `generate`; stdout is closed or full.
pub fn stream(
    interrupt: &Interrupt,
    shown: Option<&str>,
    generate: impl FnOnce(&mut OnProgress<'_>) -> Result<Generation, LanguageModelError>,
) -> anyhow::Result<Generation> {
    let mut listening = None;
    let mut bar: Option<ProgressBar> = None;
    let mut failure: Option<anyhow::Error> = None;
    let mut prefix = shown;
    // Whether the current line of stdout has text.
    let mut is_in_line = false;
    let result = generate(&mut |progress| {
        listening.get_or_insert_with(|| interrupt.listen());
        let mut show = |text: &str| {
            if !text.is_empty() {
                is_in_line = !text.ends_with('\n');
            }
            output::write(text)
        };
        let mut written = prefix.take().map_or(Ok(()), &mut show);
        match progress {
            Progress::Prompt { done, total } => show_prompt(&mut bar, done, total),
            Progress::Text(text) if shown.is_some() && written.is_ok() => {
                written = show(text);
            }
            Progress::Text(_) => {}
        }
        if let Err(error) = written {
            failure = Some(error);
            return ControlFlow::Break(());
        }
        interrupt.flow()
    });
    drop(listening);
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if let Some(error) = failure {
        return Err(error);
    }
    let is_empty = |generation: &Generation| generation.text.is_empty();
    if is_in_line || (shown.is_some() && result.as_ref().is_ok_and(is_empty)) {
        output::write("\n")?;
    }
    Ok(result?)
}

fn show_prompt(bar: &mut Option<ProgressBar>, done: usize, total: usize) {
    if total < LONG_PROMPT {
        return;
    }
    let bar = bar.get_or_insert_with(|| progress::bar("reading the prompt", total));
    bar.set_position(done as u64);
    if done == total {
        bar.finish_and_clear();
    }
}

/// The name of a finish reason in JSON.
pub fn finish_name(finish: &FinishReason) -> &'static str {
    match finish {
        FinishReason::End => "end",
        FinishReason::GrammarEnd => "grammar_end",
        FinishReason::Stop(_) => "stop",
        FinishReason::MaxTokens => "max_tokens",
        FinishReason::ContextFull => "context_full",
        FinishReason::Cancelled => "interrupted",
        _ => "other",
    }
}

/// The seed that reproduces a text; `None` if no random numbers are used.
pub fn reported_seed(sampling: &SamplerParams) -> Option<u64> {
    sampling.seed.filter(|_| sampling.temperature > 0.0)
}

/// Token counts, times and rates of a generation.
#[derive(Debug, Serialize)]
pub struct Timings {
    prompt_tokens: usize,
    prompt_seconds: f64,
    prompt_tokens_per_second: f64,
    generated_tokens: usize,
    generate_seconds: f64,
    generated_tokens_per_second: f64,
}

impl Timings {
    /// The timings of a generation.
    pub fn of(generation: &Generation) -> Self {
        let tokens = generation.tokens.len();
        Self {
            prompt_tokens: generation.prompt_evaluated,
            prompt_seconds: generation.prompt_time.as_secs_f64(),
            prompt_tokens_per_second: format::rate(
                generation.prompt_evaluated,
                generation.prompt_time,
            ),
            generated_tokens: tokens,
            generate_seconds: generation.generate_time.as_secs_f64(),
            generated_tokens_per_second: format::rate(tokens, generation.generate_time),
        }
    }
}

/// The statistics of a generation in one line, with the seed that reproduces it.
pub fn statistics(generation: &Generation, sampling: &SamplerParams) -> String {
    let part = |name: &str, tokens: usize, time: Duration| {
        format!(
            "{name}: {} in {} ({:.1} tokens/s)",
            format::plural(tokens, "token"),
            format::duration(time),
            format::rate(tokens, time)
        )
    };
    let seed = reported_seed(sampling).map_or(String::new(), |seed| format!(" seed {seed}"));
    let finish = finish_text(&generation.finish);
    format!(
        "[{}, {}; {finish}]{seed}",
        part(
            "prompt",
            generation.prompt_evaluated,
            generation.prompt_time
        ),
        part("text", generation.tokens.len(), generation.generate_time),
    )
}

/// Warns, even with --quiet, if a text ended before its grammar allowed it.
pub fn warn_cut(generation: &Generation, options: &GenerateOptions) {
    let finish = &generation.finish;
    if options.grammar.is_some() && !matches!(finish, FinishReason::End | FinishReason::GrammarEnd)
    {
        note(format_args!(
            "warning: the text may violate its constraint, it ended early: {}",
            finish_text(finish)
        ));
    }
}

fn finish_text(finish: &FinishReason) -> String {
    match finish {
        FinishReason::End => "the model ended the text".to_owned(),
        FinishReason::GrammarEnd => "the text is complete".to_owned(),
        FinishReason::Stop(stop) => format!("stopped at {stop:?}"),
        FinishReason::MaxTokens => "the token limit was reached".to_owned(),
        FinishReason::ContextFull => "the context is full (see --ctx)".to_owned(),
        FinishReason::Cancelled => "interrupted".to_owned(),
        other => format!("{other:?}"),
    }
}
