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

/// The default size of a chunk, in tokens.
const DEFAULT_CHUNK: usize = 512;

/// The maximum length of the text, in bytes.
const MAX_TEXT: u64 = 1 << 30;

/// Measure how well a model predicts a text.
///
/// The perplexity is the exponential of the mean of -ln p over the scored tokens, as defined by
/// llama.cpp's llama-perplexity. The text is split into chunks of --ctx tokens, each evaluated from
/// an empty context. The first half of a chunk and the first token of its second half are context;
/// the other tokens are scored. An incomplete chunk at the end is ignored. A text shorter than a
/// chunk is one chunk of its own length. Lower is better. Only values of the same text, chunk size
/// and tokenizer are comparable.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Perplexity {
    /// The text, UTF-8; `-` reads it from stdin.
    #[arg(short, long, value_name = "TEXT")]
    file: PathBuf,

    /// Size of a chunk in tokens [default: 512, or the trained context if that is smaller].
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(perplexity::MIN_CHUNK as u32..=1 << 24))]
    ctx: Option<u32>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,

    /// Print no notes on stderr.
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    model: ModelArgs,

    /// Number type of the cached keys and values.
    #[arg(long, value_name = "DTYPE", default_value = "F16", ignore_case = true,
          value_parser = cache_type(), help_heading = "Model")]
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
    /// A model that cannot be loaded, a text that cannot be read or is too short, or a chunk that
    /// does not fit into the context.
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
            load::warn_lost_bytes(tokenizer, &text);
        }
        let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
        let model = &mut loaded.model;
        let chunk = match self.ctx {
            Some(tokens) => tokens as usize,
            None => DEFAULT_CHUNK.min(model.context_len().unwrap_or(usize::MAX)),
        };
        if !self.quiet && (perplexity::MIN_CHUNK..chunk).contains(&tokens.len()) {
            note(format_args!(
                "note: the text is shorter than a chunk of {chunk}; it is scored as one chunk of {}",
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
                "[{} of {} scored in {} of {}, {} ignored at the end; {} ({:.1} tokens/s)]",
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
