use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use kovar::{FinishReason, Generation};
use serde::Serialize;

use crate::args::{GenerationArgs, ModelSource, RunArgs};
use crate::diagnostics::{INTERRUPTED, UsageError, note};
use crate::interrupt::Interrupt;
use crate::saved_file::SavedFile;
use crate::stream::{Timings, finish_name, reported_seed, statistics, stream, warn_cut};
use crate::{hints, load, output, text_input};

/// The default of --max-tokens: no limit, the text may fill the context.
const MAX_TOKENS: i64 = -1;

/// The default prompt of the story models.
const DEMO_PROMPT: &str = "Once upon a time";

/// Continue a text.
///
/// Writes the prompt and its continuation to stdout while the text is generated. The prompt is
/// plain text; for models that were trained for conversations, use `kovar chat`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Generate {
    /// The text to continue. `-`, or no PROMPT if stdin is not a terminal, reads it from stdin
    /// (without one newline at its end). The default of the embedded models is "Once upon a time".
    /// With --saved, PROMPT is appended to the saved text and may be empty.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,

    /// Print only the generated text, not the prompt.
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
  kovar generate -m model.gguf --saved story.kovar -n 100 \"It was late.\"
  kovar generate -m model.gguf --saved story.kovar -n 100
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
        // Before anything that takes long.
        let saved_file = SavedFile::new(self.generation.saved.as_deref())?;
        let file = load::open(&self.run.model.model)?;
        let given = self.given()?;
        let quiet = self.generation.quiet;
        let mut model = load::language_model(file, &self.run, quiet)?;
        self.generation
            .sampling
            .add_tokens(&mut sampling, &model.tokenizer)?;
        if !quiet {
            load::note_endless(&model.model, &self.run);
        }
        let is_restored = saved_file.restore_text(&mut model)?;
        let prompt = self.prompt(given, is_restored)?;
        if prompt.is_empty() && model.text().is_empty() && !model.tokenizer.adds_bos() {
            bail!("the prompt is empty");
        }
        if !quiet {
            load::warn_lost_bytes(&model.tokenizer, &prompt);
        }

        let echo = if self.no_echo { "" } else { prompt.as_str() };
        let shown = (!self.generation.json).then_some(echo);
        let generation = stream(&interrupt, shown, |on_progress| {
            model.continue_text(&prompt, &sampling, &options, on_progress)
        });
        let generation =
            generation.map_err(|error| hints::context_full(error, &model.model, false))?;
        let saved = saved_file.save_text(&mut model);
        if self.generation.json {
            self.report(&prompt, &generation, reported_seed(&sampling))?;
        } else if !quiet {
            note(statistics(&generation, &sampling));
        }
        warn_cut(&generation, &options);
        saved?;
        Ok(exit_code(&generation))
    }

    /// The text from the argument or from stdin.
    fn given(&self) -> anyhow::Result<Option<String>> {
        let given = self.prompt.as_deref();
        Ok(match text_input::text_or_stdin(given)? {
            Some(text) if given != Some(&text) => {
                Some(text_input::without_newline(&text).to_owned())
            }
            other => other,
        })
    }

    /// The text to continue, or to append to a restored text.
    fn prompt(&self, given: Option<String>, is_restored: bool) -> anyhow::Result<String> {
        let is_demo = matches!(self.run.model.model, ModelSource::Demo(_));
        match given {
            None if is_restored => Ok(String::new()),
            None if is_demo => Ok(DEMO_PROMPT.to_owned()),
            Some(text) if text.is_empty() && self.prompt.is_none() && is_demo && !is_restored => {
                Ok(DEMO_PROMPT.to_owned())
            }
            Some(text) => Ok(text),
            None => Err(UsageError::missing(
                "there is no prompt: pass it as an argument or on stdin",
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
