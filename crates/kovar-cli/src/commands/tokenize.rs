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
/// Writes the ids in one line, as the model would get them. Needs only a tokenizer, so it works on
/// files that have a vocabulary and no tensors.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Tokenize {
    /// The text; `-`, or none where stdin is not a terminal, reads it from stdin, as it is.
    #[arg(value_name = "TEXT")]
    text: Option<String>,

    #[command(flatten)]
    model: ModelArgs,

    /// One token a line: its id and the text that it stands for. Bytes that are no whole character
    /// show as <0x9F>.
    #[arg(long)]
    pieces: bool,

    /// Read control tokens that are written out in the text, such as <|im_end|>, as these tokens.
    #[arg(long)]
    special: bool,

    /// No begin and end tokens around the text, even if the file asks for them.
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
            let message = "there is no text: give it as an argument or on stdin";
            return Err(UsageError::missing(message).into());
        };
        load::tell_warnings(&tokenizer);
        load::tell_lost_bytes(&tokenizer, &text);
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

/// What a token stands for.
fn bytes(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    tokenizer.token_bytes(id).unwrap_or_default()
}
