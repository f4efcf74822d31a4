use std::path::PathBuf;

use clap::Args;
use kovar::GenerateOptions;

use super::{GrammarArgs, SamplingArgs, unescaped, whole};

/// When text ends, and how it is reported.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Generation")]
pub struct GenerationArgs {
    /// The most tokens to generate; -1 goes on until the model ends the text or the context is
    /// full [default: -1, of chat 1024 for each answer].
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(-1..=i64::MAX))]
    pub max_tokens: Option<i64>,

    /// End the text where this string comes up; may be given several times. \n is a newline, \t a
    /// tab, \\ a backslash.
    #[arg(long, value_name = "STRING", value_parser = stop_string, allow_hyphen_values = true)]
    pub stop: Vec<String>,

    /// Never choose the tokens by which the model ends a text, so that it goes on.
    #[arg(long)]
    pub ignore_eos: bool,

    /// Go on where the text in FILE ended, if FILE is there, and save the text and the model's state
    /// in it at the end. What was evaluated then is not evaluated again. A session fits only the
    /// model, and the --cache-type, that it was made with. Chance begins anew.
    #[arg(long, value_name = "FILE")]
    pub session: Option<PathBuf>,

    /// Print one JSON object with text, tokens, finish reason, seed (null where it plays no part,
    /// at --temp 0) and timings instead of the text; chat prints one for each message.
    #[arg(long)]
    pub json: bool,

    /// No statistics and notes on stderr.
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub grammar: GrammarArgs,

    #[command(flatten)]
    pub sampling: SamplingArgs,
}

impl GenerationArgs {
    /// The options of the library; `max_tokens` is the limit if none is given, -1 is without one.
    ///
    /// # Errors
    /// A grammar that cannot be read or is none.
    pub fn options(&self, max_tokens: i64) -> anyhow::Result<GenerateOptions> {
        Ok(GenerateOptions {
            max_tokens: usize::try_from(self.max_tokens.unwrap_or(max_tokens)).ok(),
            stop: self.stop.clone(),
            ignore_end: self.ignore_eos,
            grammar: self.grammar.grammar()?,
        })
    }
}

/// A stop string with its escapes replaced by what they stand for.
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
