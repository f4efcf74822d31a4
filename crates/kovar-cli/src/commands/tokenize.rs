use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use kovar::{EncodeOptions, Tokenizer, TokenizerSpec};
use serde::Serialize;

use crate::args::ModelArgs;
use crate::diagnostics::UsageError;
use crate::{load, output, text_input};

/// Show the token ids of a text.
///
/// Prints the ids on one line, as the model would receive them. Works on files that have a
/// vocabulary but no tensors.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Tokenize {
    /// The text. `-`, or no TEXT if stdin is not a terminal, reads it from stdin unchanged.
    #[arg(value_name = "TEXT")]
    text: Option<String>,

    #[command(flatten)]
    model: ModelArgs,

    /// Print one token per line: its id and its text. Bytes of incomplete characters are shown as
    /// <0x9F>.
    #[arg(long)]
    pieces: bool,

    /// Encode control tokens in the text, such as <|im_end|>, as these tokens.
    #[arg(long)]
    special: bool,

    /// Add no begin and end tokens, even if the file asks for them.
    #[arg(long)]
    no_bos: bool,

    /// Print JSON: an object with `ids`, and with --pieces `pieces`.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  kovar tokenize \"Once upon a time\"
  kovar tokenize -m model.gguf --pieces \"naïve café\"
  kovar tokenize -m model.gguf --special --json \"<|im_start|>user\" | jq .ids";

#[derive(Serialize)]
struct Report {
    ids: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<Vec<String>>,
}

impl Tokenize {
    /// Runs the command.
    ///
    /// # Errors
    /// A file without a tokenizer.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let file = load::open(&self.model.model)?;
        let tokenizer = TokenizerSpec::from_metadata(file.metadata())
            .and_then(Tokenizer::from_spec)
            .with_context(|| format!("cannot read the tokenizer of {}", self.model.model))?;
        let Some(text) = text_input::text_or_stdin(self.text.as_deref())? else {
            let message = "there is no text: pass it as an argument or on stdin";
            return Err(UsageError::missing(message).into());
        };
        load::note_warnings(&tokenizer);
        load::warn_lost_bytes(&tokenizer, &text);
        let options = EncodeOptions {
            add_special: !self.no_bos,
            parse_special: self.special,
            ..EncodeOptions::default()
        };
        let ids = tokenizer.encode(&text, options)?;
        if self.json {
            let pieces = self
                .pieces
                .then(|| ids.iter().map(|&id| output::bytes(&bytes(&tokenizer, id))));
            let pieces = pieces.map(Iterator::collect);
            output::write_json(&Report { ids, pieces })?;
        } else if self.pieces {
            let lines = ids.iter().map(|&id| {
                format!(
                    "{id:>7}  {}\n",
                    output::quoted_bytes(&bytes(&tokenizer, id))
                )
            });
            output::write(&lines.collect::<String>())?;
        } else {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            output::write(&(ids.join(" ") + "\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The bytes of a token.
fn bytes(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    tokenizer.token_bytes(id).unwrap_or_default()
}
