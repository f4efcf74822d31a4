use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use kovar::{DType, EncodeOptions, PerplexityError, perplexity};
use serde::Serialize;

use crate::args::{DeviceArgs, ModelArgs, PlacementArgs, RunArgs, cache_type, whole};
use crate::diagnostics::{UsageError, note};
use crate::{format, load, output, progress, text_input};

/// Tokens of a chunk if it isn't told and the model was trained for so many.
const DEFAULT_CHUNK: usize = 512;

/// The longest text, in bytes.
const MAX_TEXT: u64 = 1 << 30;

/// Measure how well a model foretells a text.
///
/// The perplexity is exp of the mean of -ln p over the tokens that are scored, as llama.cpp's
/// llama-perplexity defines it: the text is cut into chunks of --ctx tokens, each evaluated from an
/// empty context; the first half of a chunk is context only, the tokens behind the first of its
/// second half are scored. A rest that fills no chunk is left out. A text shorter than a chunk is
/// taken as one chunk of its own length, half of which is scored. Lower is better; compare only
/// values of the same text, chunk and tokenizer.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Perplexity {
    /// The text, UTF-8; `-` reads it from stdin.
    #[arg(short, long, value_name = "TEXT")]
    file: PathBuf,

    /// Tokens of a chunk [default: 512, or what the model was trained for if that is less].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(perplexity::MIN_CHUNK as u32..=1 << 24))]
    ctx: Option<u32>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,

    /// No notes on stderr.
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    model: ModelArgs,

    /// Number type of the keys and values in the context: f32, f16, bf16 or q8_0.
    #[arg(long, value_name = "DTYPE", default_value = "f16", value_parser = cache_type,
          help_heading = "Model")]
    cache_type: DType,

    #[command(flatten)]
    device: DeviceArgs,

    #[command(flatten)]
    placement: PlacementArgs,
}

const EXAMPLES: &str = "\
Examples:
  kovar perplexity -m model.gguf -f wiki.test.raw
  kovar perplexity -m model-q4_k_m.gguf -f wiki.test.raw --ctx 2048 --json | jq .perplexity
  kovar perplexity -f stories.txt --ctx 256";

#[derive(Serialize)]
struct Report {
    model: String,
    perplexity: f64,
    standard_error: f64,
    tokens: usize,
    scored: usize,
    chunk: usize,
    chunks: usize,
    seconds: f64,
}

impl Perplexity {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be loaded, a text that cannot be read or is too short, a chunk that the
    /// context cannot hold.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let text = self.text()?;
        let file = load::open(&self.model.model)?;
        let run = RunArgs {
            model: self.model.clone(),
            ctx: self.ctx,
            cache_type: self.cache_type,
            device: self.device.clone(),
            placement: self.placement.clone(),
            logit_rows: perplexity::SCORED_AT_ONCE,
        };
        let mut loaded = load::language_model(file, &run, self.quiet)?;
        let encode = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        let tokenizer = &loaded.tokenizer;
        let tokens = tokenizer.encode(&text, encode)?;
        if !self.quiet {
            load::tell_lost_bytes(tokenizer, &text);
        }
        let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
        let model = &mut loaded.model;
        let chunk = match self.ctx {
            Some(tokens) => tokens as usize,
            None => DEFAULT_CHUNK.min(model.context_len().unwrap_or(usize::MAX)),
        };
        if !self.quiet && (perplexity::MIN_CHUNK..chunk).contains(&tokens.len()) {
            note(format_args!(
                "note: the text is shorter than a chunk of {chunk}; it is taken as one of {}",
                format::plural(tokens.len(), "token")
            ));
        }

        let start = Instant::now();
        let bar = progress::bar("scoring", tokens.len() / chunk.min(tokens.len()).max(1));
        let scored = perplexity::perplexity(model, &tokens, bos, chunk, &mut |done, _, so_far| {
            bar.set_position(done as u64);
            bar.set_message(format!("perplexity {so_far:.4}"));
            ControlFlow::Continue(())
        });
        bar.finish_and_clear();
        let scored = scored.map_err(|error| match error {
            PerplexityError::Chunk { .. } if self.ctx.is_some() => anyhow::Error::new(
                UsageError::new(format!("invalid value for '--ctx': {error}")),
            ),
            error => anyhow::Error::new(error).context("cannot score the text"),
        })?;
        let seconds = start.elapsed();
        if self.json {
            output::write_json(&Report {
                model: self.model.model.to_string(),
                perplexity: scored.value,
                standard_error: scored.std_error,
                tokens: scored.tokens,
                scored: scored.scored,
                chunk: scored.chunk,
                chunks: scored.chunks,
                seconds: seconds.as_secs_f64(),
            })?;
            return Ok(ExitCode::SUCCESS);
        }
        output::write(&format!(
            "perplexity {:.4} +/- {:.4}\n",
            scored.value, scored.std_error
        ))?;
        if !self.quiet {
            let evaluated = scored.chunk * scored.chunks;
            note(format_args!(
                "[{} of {} scored in {} of {}, {} left out at the end; {} ({:.1} tokens/s)]",
                scored.scored,
                format::plural(scored.tokens, "token"),
                format::plural(scored.chunks, "chunk"),
                scored.chunk,
                scored.tokens - evaluated,
                format::duration(seconds),
                format::rate(evaluated, seconds),
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self) -> anyhow::Result<String> {
        if self.file.as_os_str() == text_input::DASH {
            return text_input::read_text(std::io::stdin().lock(), MAX_TEXT)
                .context("cannot read the text on stdin");
        }
        text_input::read_text_file(&self.file, MAX_TEXT)
    }
}
