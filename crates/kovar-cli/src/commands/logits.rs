use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kovar::{LogitsOf, Model, Tokenizer, TokenizerSpec};
use serde::Serialize;

use crate::args::{RunArgs, TokenIds, whole};
use crate::diagnostics::UsageError;
use crate::output::Table;
use crate::{format, hints, load, output};

/// Number of tokens that are evaluated together, which bounds the memory of their logits.
const CHUNK: usize = 128;

/// The default number of logits per position, except with --json.
const DEFAULT_TOP: usize = 10;

/// Show a model's logits after each token.
///
/// Evaluates the tokens from an empty context. The file needs no tokenizer. Useful to compare kovar
/// with other programs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Logits {
    /// Token ids, separated by commas or spaces; `kovar tokenize` prints them.
    #[arg(long, value_name = "IDS", allow_hyphen_values = true)]
    ids: TokenIds,

    /// Show only the K greatest logits of each position, in descending order [default: 10; all with
    /// --json].
    #[arg(long, value_name = "K", allow_negative_numbers = true,
          value_parser = whole(1..=usize::MAX))]
    top: Option<usize>,

    /// Show only the logits after the last token.
    #[arg(long)]
    last: bool,

    /// Print JSON: per position, `top` with ids and logits, or without --top, all `logits` by id.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    run: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  kovar logits --ids 571,705,259,475
  kovar logits -m model.gguf --ids \"$(kovar tokenize -m model.gguf 'The sky is')\" --last
  kovar logits -m model.gguf --ids 1,2,3 --top 20 --json | jq '.positions[2].top'";

#[derive(Serialize)]
struct Report {
    model: String,
    vocab: usize,
    positions: Vec<Position>,
}

#[derive(Serialize)]
struct Position {
    position: usize,
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    top: Option<Vec<Logit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logits: Option<Vec<f32>>,
}

#[derive(Serialize)]
struct Logit {
    id: u32,
    logit: f32,
}

impl Logits {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be loaded, ids outside its vocabulary, or more tokens than the context
    /// holds.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        let file = load::open(&self.run.model.model)?;
        let tokenizer = TokenizerSpec::from_metadata(file.metadata())
            .and_then(Tokenizer::from_spec)
            .ok();
        // --ctx may exceed the trained context: tests of a model may go beyond it.
        let needed = u32::try_from(self.ids.0.len()).unwrap_or(u32::MAX);
        if self.run.ctx.is_some_and(|ctx| ctx < needed) {
            let tokens = format::plural(self.ids.0.len(), "token");
            let message = format!("--ctx is too small: --ids has {tokens}");
            return Err(UsageError::new(message).into());
        }
        if self.top.is_none() && !self.json {
            self.top = Some(DEFAULT_TOP);
        }
        if !self.last {
            self.run.logit_rows = CHUNK.min(self.ids.0.len());
        }
        let mut model = load::model(file, &self.run)?;
        let positions = self.positions(&mut model)?;
        if self.json {
            output::write_json(&Report {
                model: self.run.model.model.to_string(),
                vocab: model.vocab_len(),
                positions,
            })?;
        } else {
            for position in &positions {
                output::write(&text(position, tokenizer.as_ref()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn positions(&self, model: &mut Model) -> anyhow::Result<Vec<Position>> {
        let mut positions = Vec::new();
        let mut logits = Vec::new();
        let ids = &self.ids.0;
        let (mut at, last) = (0, ids.len() - 1);
        for chunk in ids.chunks(CHUNK) {
            let logits_of = if self.last {
                LogitsOf::Last
            } else {
                LogitsOf::All
            };
            model
                .eval(chunk, logits_of, &mut logits)
                .map_err(|error| hints::context_full(error.into(), model, false))
                .context("cannot evaluate the tokens")?;
            let mut rows = logits.chunks_exact(model.vocab_len());
            for &id in chunk {
                if !self.last || at == last {
                    let row = rows.next().context("the model gave too few logits")?;
                    if self.json {
                        check_finite(at, id, row)?;
                    }
                    positions.push(self.position(at, id, row));
                }
                at += 1;
            }
        }
        Ok(positions)
    }

    fn position(&self, position: usize, id: u32, logits: &[f32]) -> Position {
        Position {
            position,
            id,
            top: self.top.map(|k| top(logits, k)),
            logits: self.top.is_none().then(|| logits.to_vec()),
        }
    }
}

/// JSON cannot represent infinite numbers and NaN.
fn check_finite(position: usize, id: u32, logits: &[f32]) -> anyhow::Result<()> {
    match (0..).zip(logits).find(|(_, logit)| !logit.is_finite()) {
        None => Ok(()),
        Some((of, logit)) => {
            let other = logits.iter().filter(|logit| !logit.is_finite()).count() - 1;
            let other = format::plural(other, "other");
            bail!(
                "after token {id} at position {position} the logit of token {of} is {logit} \
                 ({other} not finite); JSON cannot represent it"
            )
        }
    }
}

/// The `k` greatest logits in descending order, equal ones by id.
fn top(logits: &[f32], k: usize) -> Vec<Logit> {
    let mut all: Vec<Logit> = (0..)
        .zip(logits)
        .map(|(id, &logit)| Logit { id, logit })
        .collect();
    all.sort_by(|a, b| b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id)));
    all.truncate(k);
    all
}

fn text(position: &Position, tokenizer: Option<&Tokenizer>) -> String {
    let mut table = Table::new(&[">id", ">logit", "token"]);
    for Logit { id, logit } in position.top.iter().flatten() {
        let token = tokenizer.and_then(|tokenizer| tokenizer.token_bytes(*id).ok());
        let token = token.map(|bytes| output::quoted_bytes(&bytes));
        table.row([
            id.to_string(),
            format!("{logit:.4}"),
            token.unwrap_or_default(),
        ]);
    }
    format!(
        "after token {} at position {}:\n{}",
        position.id,
        position.position,
        table.render("  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_in_falling_order_and_ties_go_by_id() {
        let top = top(&[1.0, 3.0, 2.0, 3.0], 3);
        let ids: Vec<u32> = top.iter().map(|logit| logit.id).collect();
        assert_eq!(ids, [1, 3, 2]);
    }
}
