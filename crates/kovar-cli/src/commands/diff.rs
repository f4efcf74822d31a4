use std::collections::HashMap;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kovar::runtime::ObservedSegment;
use kovar::{Layout, NodeRef, Value};
use kovar_testkit::limits::limits_of;
use kovar_testkit::metrics::{Comparison, compare};
use kovar_testkit::{Elements, read_value};
use serde::Serialize;

use crate::args::{PlacementArgs, RunArgs, TokenIds};
use crate::diagnostics::UsageError;
use crate::{format, load, output};

/// The most that is kept of the first run, in bytes.
const MAX_KEPT: usize = 2 << 30;

/// Errors of two results that are within an NMSE of the exact one on opposite sides add up to
/// twice its root.
const BOTH: f64 = 4.0;

/// Find the first operation whose results differ between two devices.
///
/// Runs a step of the tokens on each, operation by operation, and compares what each operation
/// writes, also in caches and states. On the devices of --b each operation works on the results of
/// --a, so roundings do not add up over the layers and an operation differs by its own doing.
/// Differences are normalised mean square errors (NMSE). An operation fails above four times the
/// limit that test-ops holds it to: by how much two results differ that are as far from the exact
/// one as they may be, on opposite sides. Exit code 1 if one fails. Placement options are for --b;
/// on --a everything is where it is without them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// The devices that are taken to be right, as --device takes them.
    #[arg(long, value_name = "DEVICES")]
    a: String,

    /// The devices to compare with them.
    #[arg(long, value_name = "DEVICES")]
    b: String,

    /// Token ids, separated by commas or spaces; `kovar tokenize` makes them. At most 512, of which
    /// those of the first step run.
    #[arg(
        long,
        value_name = "IDS",
        default_value = "1,2,3,4,5,6,7,8",
        allow_hyphen_values = true
    )]
    ids: TokenIds,

    /// Show every operation, not only the first that fails.
    #[arg(long)]
    all: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    run: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  kovar diff -m model.gguf --a cpu:portable --b cpu
  kovar diff -m model.gguf --a cpu --b cpu,cpu:avx2 --place 'blk.*=cpu:avx2'
  kovar diff --a cpu:portable --b cpu --all";

#[derive(Debug, Serialize)]
struct Report {
    operations: usize,
    /// The first result that fails, or with --all every result.
    differences: Vec<Difference>,
    failed: bool,
}

#[derive(Debug, Serialize)]
struct Difference {
    node: usize,
    op: &'static str,
    result: String,
    device: usize,
    nmse: f64,
    limit: f64,
    max_error: f64,
    at: Vec<usize>,
    expected: f64,
    found: f64,
    failed: bool,
}

/// What the nodes of a step wrote, by their index: elements row-major as their dtype stores them.
type Written = HashMap<usize, Vec<Vec<u8>>>;

/// Looks at a node of a segment that ran.
type Look<'l> = dyn FnMut(&ObservedSegment<'_>, NodeRef<'_>) -> anyhow::Result<()> + 'l;

impl Diff {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be loaded or run on one of the devices, runs of different operations.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        let n_tokens = self.ids.0.len();
        if n_tokens > 512 {
            return Err(UsageError::new("--ids takes at most 512 tokens").into());
        }
        if self.run.device.device.is_some() {
            let message = "--a and --b say which devices to use, not --device";
            return Err(UsageError::new(message).into());
        }
        // What a cache does not need is not worth comparing.
        self.run.ctx = self.run.ctx.or(u32::try_from(n_tokens).ok());
        let report = self.compare(self.record()?)?;
        if self.json {
            output::write_json(&report)?;
        } else {
            output::write(&text(&report, &self.a, &self.b))?;
        }
        Ok(report.exit_code())
    }

    /// Runs the step on the devices that are right.
    fn record(&self) -> anyhow::Result<Written> {
        let mut args = self.run.clone();
        args.placement = PlacementArgs::default();
        let (mut written, mut kept) = (Written::new(), 0usize);
        observe(args, &self.a, &self.ids.0, &mut |evaluated, node| {
            let values = node.writes().map(|value| Ok(evaluated.read(value)?));
            let values = values.collect::<anyhow::Result<Vec<_>>>()?;
            kept += values.iter().map(Vec::len).sum::<usize>();
            if kept > MAX_KEPT {
                let max = format::bytes(MAX_KEPT as u64);
                bail!("what the operations write takes more than {max}; give fewer --ids");
            }
            written.insert(index_of(evaluated)?, values);
            Ok(())
        })?;
        Ok(written)
    }

    /// Runs the step on the other devices, each operation on what was written before.
    fn compare(&self, mut right: Written) -> anyhow::Result<Report> {
        let mut report = Report {
            operations: 0,
            differences: Vec::new(),
            failed: false,
        };
        observe(
            self.run.clone(),
            &self.b,
            &self.ids.0,
            &mut |evaluated, node| {
                let index = index_of(evaluated)?;
                let expected = right.remove(&index);
                let expected = expected.with_context(|| {
                    format!(
                        "{} (node {}) does not run on {}",
                        node.op().name(),
                        index,
                        self.a
                    )
                })?;
                report.operations += 1;
                for (value, expected) in node.writes().zip(&expected) {
                    let found = evaluated.read(value)?;
                    let (wanted, found) = (
                        elements(node, value, expected)?,
                        elements(node, value, &found)?,
                    );
                    let found = compare(value.dims(), &wanted, &found, None);
                    let difference = difference(evaluated, node, value, found);
                    let failed = difference.failed;
                    if self.all || (failed && !report.failed) {
                        report.differences.push(difference);
                    }
                    report.failed |= failed;
                    evaluated.replace(value, expected)?;
                }
                Ok(())
            },
        )?;
        if !right.is_empty() {
            let missing = format::plural(right.len(), "operation");
            bail!("{missing} of the run on {} missing on {}", self.a, self.b);
        }
        Ok(report)
    }
}

impl Report {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::from(self.failed))
    }
}

/// Runs a step on `devices`, node by node.
fn observe(
    mut args: RunArgs,
    devices: &str,
    ids: &[u32],
    look: &mut Look<'_>,
) -> anyhow::Result<()> {
    args.device.device = Some(devices.to_owned());
    // Both runs take the same step.
    args.placement.micro_batch = None;
    let file = load::open(&args.model.model)?;
    let mut model = load::model(file, &args)?;
    let mut failed: Option<anyhow::Error> = None;
    let mut observer = |evaluated: &ObservedSegment<'_>| {
        let graph = evaluated.graph();
        for node in evaluated.nodes().iter().filter_map(|&id| graph.node(id)) {
            if let Err(error) = look(evaluated, node) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    let observed = model.observe(ids, &mut observer);
    match failed {
        Some(error) => Err(error),
        None => observed.with_context(|| format!("cannot run the step on {devices}")),
    }
}

/// The index of the node of an observed segment, which has one.
fn index_of(evaluated: &ObservedSegment<'_>) -> anyhow::Result<usize> {
    let node = evaluated.nodes().first().map(|id| id.index());
    node.context("a segment has no operation")
}

/// The elements of what a node wrote, row-major.
fn elements(node: NodeRef<'_>, value: &Value, bytes: &[u8]) -> anyhow::Result<Vec<f64>> {
    let Some(layout) = Layout::contiguous(*value.dims()) else {
        bail!("{} has too many elements", node.storage_of(value).name);
    };
    let data = read_value(&Value { layout, ..*value }, bytes)?;
    Ok(match data.elements() {
        Elements::Float(values) => values.clone(),
        Elements::Int(values) => values.iter().map(|&value| value as f64).collect(),
    })
}

fn difference(
    evaluated: &ObservedSegment<'_>,
    node: NodeRef<'_>,
    value: &Value,
    found: Comparison,
) -> Difference {
    let worst = found.worst_absolute;
    let own = limits_of(node, value.dtype);
    let own = own.quantized.map_or(own.plain, |quantized| quantized.plain);
    let limit = BOTH * own;
    Difference {
        node: evaluated.nodes().first().map_or(0, |id| id.index()),
        op: node.op().name(),
        result: node.storage_of(value).name.clone(),
        device: evaluated.device().index(),
        nmse: found.nmse,
        limit,
        max_error: worst.error,
        at: worst.index,
        expected: worst.expected,
        found: worst.actual,
        failed: found.nmse > limit || found.nmse.is_nan(),
    }
}

fn text(report: &Report, a: &str, b: &str) -> String {
    let mut text = String::new();
    for difference in &report.differences {
        let Difference {
            node,
            op,
            result,
            nmse,
            limit,
            max_error,
            at,
            expected,
            found,
            failed,
            ..
        } = difference;
        let verdict = if *failed { "differs" } else { "agrees" };
        text += &format!(
            "{op} (node {node}, writing `{result}`) {verdict}: NMSE {nmse:.2e}, limit {limit:.2e}, \
             largest error {max_error:.3e} at {at:?} ({a}: {expected:.6}, {b}: {found:.6})\n"
        );
    }
    let operations = report.operations;
    if !report.failed {
        text += &format!("{operations} operations on {a} and on {b} agree within their limits\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        diff: Diff,
    }

    fn diff(more: &[&str]) -> Diff {
        let args = [
            "diff",
            "--a",
            "cpu:portable",
            "--b",
            "cpu",
            "--ids",
            "1,2,3",
        ];
        Program::parse_from(args.iter().chain(more)).diff
    }

    /// Makes every element of what a node wrote another number.
    fn plant(written: &mut Written, node: usize, value: usize) {
        let values = written.get_mut(&node).unwrap();
        values[value].iter_mut().for_each(|byte| *byte ^= 1);
    }

    fn failed(report: &Report) -> Vec<(usize, &str, &str)> {
        let failed = report.differences.iter().filter(|d| d.failed);
        failed.map(|d| (d.node, d.op, d.result.as_str())).collect()
    }

    #[test]
    fn a_wrong_result_in_the_midst_is_found_where_it_is() {
        let op = "matmul";
        for model in ["llama-stories", "rwkv7-stories"] {
            let every = diff(&["-m", model, "--all"]);
            let right = every.record().unwrap();
            let report = every.compare(right.clone()).unwrap();
            assert_eq!(failed(&report), [], "{model}");
            assert_eq!(report.exit_code(), ExitCode::SUCCESS);
            let products: Vec<_> = report.differences.iter().filter(|d| d.op == op).collect();
            let middle = products[products.len() / 2];

            let mut wrong = right;
            plant(&mut wrong, middle.node, 0);
            let report = diff(&["-m", model]).compare(wrong).unwrap();
            assert_eq!(
                failed(&report),
                [(middle.node, op, middle.result.as_str())],
                "{model}"
            );
            assert_eq!(report.exit_code(), ExitCode::from(1));
        }
    }

    #[test]
    fn a_wrong_state_is_found_besides_a_right_result() {
        let every = diff(&["-m", "rwkv7-stories", "--all"]);
        let mut written = every.record().unwrap();
        let report = every.compare(written.clone()).unwrap();
        let mut results = report.differences.iter().filter(|d| d.op == "wkv7");
        let (result, state) = (results.next().unwrap(), results.next().unwrap());
        assert_eq!(result.node, state.node);
        plant(&mut written, state.node, 1);
        let report = diff(&["-m", "rwkv7-stories"]).compare(written).unwrap();
        assert_eq!(
            failed(&report),
            [(state.node, "wkv7", state.result.as_str())]
        );
    }

    #[test]
    fn runs_of_different_operations_are_told() {
        let diff = diff(&[]);
        let mut written = diff.record().unwrap();
        let last = *written.keys().max().unwrap();
        let values = written.remove(&last).unwrap();
        let error = diff.compare(written.clone()).unwrap_err().to_string();
        let place = format!("(node {last}) does not run on cpu:portable");
        assert!(error.ends_with(&place), "{error}");

        written.insert(last, values);
        written.insert(last + 1, Vec::new());
        let error = diff.compare(written).unwrap_err().to_string();
        assert_eq!(
            error,
            "1 operation of the run on cpu:portable missing on cpu"
        );
    }
}
