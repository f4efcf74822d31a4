use clap::Args;
use kovar::GenerateOptions;

use super::SamplingArgs;
use crate::diagnostics::UsageError;

/// When text ends, and how it is reported.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Generation")]
pub struct GenerationArgs {
    /// The most tokens to generate; -1 goes on until the model ends the text or the context is
    /// full.
    #[arg(short = 'n', long, value_name = "N", default_value_t = -1,
          allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub max_tokens: i64,

    /// End the text where this string comes up; may be given several times.
    #[arg(long, value_name = "STRING")]
    pub stop: Vec<String>,

    /// Go on past the token by which the model ends a text.
    #[arg(long)]
    pub ignore_eos: bool,

    /// Print one JSON object with text, tokens, finish reason and timings instead of the text.
    #[arg(long)]
    pub json: bool,

    /// No statistics and notes on stderr.
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub sampling: SamplingArgs,
}

impl GenerationArgs {
    /// The options of the library.
    ///
    /// # Errors
    /// An empty stop string.
    pub fn options(&self) -> Result<GenerateOptions, UsageError> {
        if self.stop.iter().any(String::is_empty) {
            return Err(UsageError::new(
                "invalid value '' for '--stop': a stop string cannot be empty",
            ));
        }
        Ok(GenerateOptions {
            max_tokens: usize::try_from(self.max_tokens).ok(),
            stop: self.stop.clone(),
            ignore_end: self.ignore_eos,
        })
    }
}
