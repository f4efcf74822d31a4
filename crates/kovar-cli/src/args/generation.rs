use std::path::PathBuf;

use clap::Args;
use kovar::GenerateOptions;

use super::{GrammarArgs, SamplingArgs, unescaped, whole};

/// When text ends, and how it is printed.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Generation")]
pub struct GenerationArgs {
    /// Maximum number of tokens to generate; -1 generates until the model ends the text or the
    /// context is full [default: -1; chat: 1024 per answer].
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(-1..=i64::MAX))]
    pub max_tokens: Option<i64>,

    /// End the text at this string; may be given several times. \n is a newline, \t a tab, \\ a
    /// backslash.
    #[arg(long, value_name = "STRING", value_parser = stop_string, allow_hyphen_values = true)]
    pub stop: Vec<String>,

    /// Never sample the tokens that end a text, so that it continues.
    #[arg(long)]
    pub ignore_eos: bool,

    /// Continue the text that is saved in FILE, if FILE exists, and save the text and the model's
    /// state in FILE at the end. Tokens that were already evaluated are not evaluated again. A
    /// saved text can only be continued with the same model and --cache-type. The random numbers
    /// start from --seed again.
    #[arg(long, alias = "session", value_name = "FILE")]
    pub saved: Option<PathBuf>,

    /// Print a JSON object with text, tokens, finish reason, seed (null at --temp 0, where it has
    /// no effect) and timings instead of the text; chat prints one object per message.
    #[arg(long)]
    pub json: bool,

    /// Print no statistics and notes on stderr.
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub grammar: GrammarArgs,

    #[command(flatten)]
    pub sampling: SamplingArgs,
}

impl GenerationArgs {
    /// The options of the library; `max_tokens` is the default limit, -1 is no limit.
    ///
    /// # Errors
    /// A grammar that cannot be read or is invalid.
    pub fn options(&self, max_tokens: i64) -> anyhow::Result<GenerateOptions> {
        Ok(GenerateOptions {
            max_tokens: usize::try_from(self.max_tokens.unwrap_or(max_tokens)).ok(),
            stop: self.stop.clone(),
            ignore_end: self.ignore_eos,
            grammar: self.grammar.grammar()?,
        })
    }
}

/// A stop string with its escapes replaced.
fn stop_string(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a stop string cannot be empty".to_owned()),
        _ => unescaped(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_string_may_have_escapes_and_is_not_empty() {
        assert_eq!(stop_string(r"\n\n").unwrap(), "\n\n");
        assert!(stop_string("").is_err());
    }
}
