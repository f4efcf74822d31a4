use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use kovar::{FinishReason, Generation};
use serde::Serialize;

use crate::args::{GenerationArgs, ModelSource, RunArgs};
use crate::diagnostics::{INTERRUPTED, UsageError, note};
use crate::interrupt::Interrupt;
use crate::session::SessionFile;
use crate::stream::{Timings, finish_name, statistics, stream, tell_cut, told_seed};
use crate::{hints, load, output, text_input};

/// The most tokens if no limit is given: none, a text may fill the context.
const MAX_TOKENS: i64 = -1;

/// What the story model begins with if it isn't told.
const DEMO_PROMPT: &str = "Once upon a time";

/// Continue a text.
///
/// Writes the prompt and what the model makes of it to stdout, as it is made. The prompt is taken
/// as plain text; to ask a model that was trained for conversations, use `kovar chat`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Generate {
    /// The text to continue; `-`, or none where stdin is not a terminal, reads it from stdin (less
    /// one newline at its end). The embedded models begin with "Once upon a time" by themselves. With
    /// a --session, what comes behind its text; it may be nothing.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,

    /// Do not write the prompt, only what follows it.
    #[arg(long, visible_alias = "no-display-prompt")]
    no_echo: bool,

    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    generation: GenerationArgs,
}

const EXAMPLES: &str = "\
Examples:
  kovar generate
  kovar generate \"One day, Tom could not find his red ball.\" --seed 7
  kovar generate -m model.gguf -n 40 --temp 0 \"The capital of France is\"
  kovar generate -m model.gguf --stop \"\\n\\n\" --json < prompt.txt
  kovar generate -m model.gguf --session story.kovar -n 100 \"It was late.\"
  kovar generate -m model.gguf --session story.kovar -n 100
  kovar generate -m model.gguf --regex \"(yes|no)\" \"Is the sky blue? Answer:\"
  kovar generate -m model.gguf --json-schema @person.json \"A person, as JSON:\"
  head -c 2000 notes.txt | kovar generate -m model.gguf -n 100 --no-echo";

#[derive(Serialize)]
struct Report<'a> {
    model: String,
    prompt: &'a str,
    text: &'a str,
    tokens: &'a [u32],
    finish_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a str>,
    seed: Option<u64>,
    timings: Timings,
}

impl Generate {
    /// Runs the command.
    ///
    /// # Errors
    /// Values out of range, a model that cannot be loaded, a prompt that does not fit.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let options = self.generation.options(MAX_TOKENS)?;
        let mut sampling = self.generation.sampling.params()?;
        let interrupt = Interrupt::install()?;
        // Before anything that takes time.
        let session = SessionFile::new(self.generation.session.as_deref())?;
        let file = load::open(&self.run.model.model)?;
        let given = self.given()?;
        let quiet = self.generation.quiet;
        let mut model = load::language_model(file, &self.run, quiet)?;
        self.generation
            .sampling
            .add_tokens(&mut sampling, &model.tokenizer)?;
        if !quiet {
            load::tell_endless(&model.model, &self.run);
        }
        let goes_on = session.restore_text(&mut model)?;
        let prompt = self.prompt(given, goes_on)?;
        if prompt.is_empty() && model.text().is_empty() && !model.tokenizer.adds_bos() {
            bail!("the prompt is empty");
        }
        if !quiet {
            load::tell_lost_bytes(&model.tokenizer, &prompt);
        }

        let echo = if self.no_echo { "" } else { prompt.as_str() };
        let shown = (!self.generation.json).then_some(echo);
        let generation = stream(&interrupt, shown, |on_progress| {
            model.continue_text(&prompt, &sampling, &options, on_progress)
        });
        let generation =
            generation.map_err(|error| hints::context_full(error, &model.model, false))?;
        let saved = session.save_text(&mut model);
        if self.generation.json {
            self.report(&prompt, &generation, told_seed(&sampling))?;
        } else if !quiet {
            note(statistics(&generation, &sampling));
        }
        tell_cut(&generation, &options);
        saved?;
        Ok(exit_code(&generation))
    }

    /// The text of the argument or of stdin.
    fn given(&self) -> anyhow::Result<Option<String>> {
        let given = self.prompt.as_deref();
        Ok(match text_input::text_or_stdin(given)? {
            Some(text) if given != Some(&text) => {
                Some(text_input::without_newline(&text).to_owned())
            }
            other => other,
        })
    }

    /// The text to continue, with which a session goes on if there is one.
    fn prompt(&self, given: Option<String>, goes_on: bool) -> anyhow::Result<String> {
        let is_demo = matches!(self.run.model.model, ModelSource::Demo(_));
        match given {
            None if goes_on => Ok(String::new()),
            None if is_demo => Ok(DEMO_PROMPT.to_owned()),
            Some(text) if text.is_empty() && self.prompt.is_none() && is_demo && !goes_on => {
                Ok(DEMO_PROMPT.to_owned())
            }
            Some(text) => Ok(text),
            None => Err(UsageError::missing(
                "there is no prompt: give one as an argument or on stdin",
            )
            .into()),
        }
    }

    fn report(
        &self,
        prompt: &str,
        generation: &Generation,
        seed: Option<u64>,
    ) -> anyhow::Result<()> {
        output::write_json(&Report {
            model: self.run.model.model.to_string(),
            prompt,
            text: &generation.text,
            tokens: &generation.tokens,
            finish_reason: finish_name(&generation.finish),
            stop: match &generation.finish {
                FinishReason::Stop(stop) => Some(stop),
                _ => None,
            },
            seed,
            timings: Timings::of(generation),
        })
    }
}

fn exit_code(generation: &Generation) -> ExitCode {
    match generation.finish {
        FinishReason::Cancelled => ExitCode::from(INTERRUPTED),
        _ => ExitCode::SUCCESS,
    }
}
