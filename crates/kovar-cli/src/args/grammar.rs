use std::path::Path;

use clap::Args;
use kovar::{Grammar, GrammarKind};

use crate::diagnostics::UsageError;
use crate::text_input;

/// Constraints on the text.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Constrained output")]
#[group(multiple = false)]
pub struct GrammarArgs {
    /// Generate JSON that satisfies this schema; @FILE reads the schema from a file.
    #[arg(
        short = 'j',
        long,
        value_name = "SCHEMA|@FILE",
        allow_hyphen_values = true
    )]
    pub json_schema: Option<String>,

    /// Generate text that matches this regular expression as a whole; @FILE reads the expression
    /// from a file.
    #[arg(long, value_name = "REGEX|@FILE", allow_hyphen_values = true)]
    pub regex: Option<String>,

    /// Generate text of this context-free grammar, in llguidance's dialect of Lark; @FILE reads the
    /// grammar from a file.
    #[arg(long, value_name = "GRAMMAR|@FILE", allow_hyphen_values = true)]
    pub grammar: Option<String>,
}

impl GrammarArgs {
    /// The grammar, if one is given.
    ///
    /// # Errors
    /// Its file cannot be read; a usage error that names the option if it is invalid.
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
