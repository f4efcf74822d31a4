use std::path::Path;

use clap::Args;
use kovar::{Grammar, GrammarKind};

use crate::diagnostics::UsageError;
use crate::text_input;

/// What the text must be.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Form of the text")]
pub struct GrammarArgs {
    /// Write JSON that satisfies this schema; @FILE reads it from a file.
    #[arg(
        short = 'j',
        long,
        value_name = "SCHEMA|@FILE",
        group = "form",
        allow_hyphen_values = true
    )]
    pub json_schema: Option<String>,

    /// Write a text that the whole of this regular expression matches; @FILE reads it from a file.
    #[arg(
        long,
        value_name = "REGEX|@FILE",
        group = "form",
        allow_hyphen_values = true
    )]
    pub regex: Option<String>,

    /// Write a text of this context-free grammar, in the dialect of Lark that llguidance reads;
    /// @FILE reads it from a file.
    #[arg(
        long,
        value_name = "GRAMMAR|@FILE",
        group = "form",
        allow_hyphen_values = true
    )]
    pub grammar: Option<String>,
}

impl GrammarArgs {
    /// The grammar, if one is given.
    ///
    /// # Errors
    /// Its file cannot be read; a usage error that names the option if it is none.
    pub fn grammar(&self) -> anyhow::Result<Option<Grammar>> {
        let given = [
            ("--json-schema", GrammarKind::JsonSchema, &self.json_schema),
            ("--regex", GrammarKind::Regex, &self.regex),
            ("--grammar", GrammarKind::Lark, &self.grammar),
        ];
        for (option, kind, argument) in given {
            let Some(argument) = argument else { continue };
            let text = match argument.strip_prefix('@') {
                Some(path) => {
                    let text = text_input::read_text_file(Path::new(path), kind.max_len() as u64)?;
                    match kind {
                        GrammarKind::Regex => text_input::without_newline(&text).to_owned(),
                        _ => text,
                    }
                }
                None => argument.clone(),
            };
            let grammar = Grammar::new(kind, text);
            return grammar.map(Some).map_err(|error| {
                UsageError::new(format!("invalid value for '{option}': {error}")).into()
            });
        }
        Ok(None)
    }
}
