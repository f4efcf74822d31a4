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

/// The maximum size of the recorded results of the first run, in bytes.
const MAX_KEPT: usize = 2 << 30;

/// Factor on the NMSE limit: if two results deviate from the exact one by up to the limit, in
/// opposite directions, their difference has up to 4 times the NMSE.
const BOTH: f64 = 4.0;

/// Find the first operation whose results differ between two devices.
///
/// Runs a step of the tokens on both, operation by operation, and compares everything that each
/// operation writes, including caches and states. On the devices of --b, each operation takes the
/// results of --a as inputs, so rounding errors do not accumulate over the layers. Differences are
/// normalised mean square errors (NMSE). An operation fails above four times its limit in test-ops,
/// which is the largest difference of two results within the limit. The exit code is 1 if an
/// operation fails. Placement options apply to --b only.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, mut_arg("device", |device| device.hide(true)))]
pub struct Diff {
    /// The reference devices, separated by commas; `kovar devices` lists them.
    #[arg(long, value_name = "DEVICES")]
    a: String,

    /// The devices to compare with the reference.
    #[arg(long, value_name = "DEVICES")]
    b: String,

    /// Token ids, separated by commas or spaces; `kovar tokenize` prints them. At most 512; only
    /// the first step is run.
    #[arg(
        long,
        value_name = "IDS",
        default_value = "1,2,3,4,5,6,7,8",
        allow_hyphen_values = true
    )]
    ids: TokenIds,

    /// Show every operation, not only the first failure.
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
    /// The first failed result, or with --all every result.
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

/// The values that the nodes of a step wrote, by node index: row-major elements in the form of
/// their dtype.
type Written = HashMap<usize, Vec<Vec<u8>>>;

/// Inspects a node of a segment after its run.
type Look<'l> = dyn FnMut(&ObservedSegment<'_>, NodeRef<'_>) -> anyhow::Result<()> + 'l;

impl Diff {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be loaded or run on one of the devices, or runs with different
    /// operations.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        let n_tokens = self.ids.0.len();
        if n_tokens > 512 {
            return Err(UsageError::new("--ids takes at most 512 tokens").into());
        }
        if self.run.device.device.is_some() {
            let message = "--device cannot be used here: --a and --b select the devices";
            return Err(UsageError::new(message).into());
        }
        // Unused cache rows need not be compared.
        self.run.ctx = self.run.ctx.or(u32::try_from(n_tokens).ok());
        let report = self.compare(self.record()?)?;
        if self.json {
            output::write_json(&report)?;
        } else {
            output::write(&text(&report, &self.a, &self.b))?;
        }
        Ok(report.exit_code())
    }

    /// Runs the step on the reference devices.
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
                bail!("the results of the operations need more than {max}; pass fewer --ids");
            }
            written.insert(index_of(evaluated)?, values);
            Ok(())
        })?;
        Ok(written)
    }

    /// Runs the step on the other devices, each operation on the recorded results.
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

/// Runs a step on `devices`, node by node, and calls `look` after each node.
fn observe(
    mut args: RunArgs,
    devices: &str,
    ids: &[u32],
    look: &mut Look<'_>,
) -> anyhow::Result<()> {
    args.device.device = Some(devices.to_owned());
    // Both runs must use the same step.
    args.placement.micro_batch = None;
    let file = load::open(&args.model.model)?;
    let mut model = load::model(file, &args)?;
    let mut failed: Option<anyhow::Error> = None;
    let mut observer = |evaluated: &ObservedSegment<'_>| {
        let graph = evaluated.graph();
        for node in graph.nodes_of(evaluated.nodes()) {
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

/// The index of the only node of an observed segment.
fn index_of(evaluated: &ObservedSegment<'_>) -> anyhow::Result<usize> {
    let node = evaluated.nodes().first().map(|id| id.index());
    node.context("a segment has no operation")
}

/// The row-major elements of a value that a node wrote.
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

    /// Changes every element of a value that a node wrote.
    fn plant(written: &mut Written, node: usize, value: usize) {
        let values = written.get_mut(&node).unwrap();
        values[value].iter_mut().for_each(|byte| *byte ^= 1);
    }

    fn failed(report: &Report) -> Vec<(usize, &str, &str)> {
        let failed = report.differences.iter().filter(|d| d.failed);
        failed.map(|d| (d.node, d.op, d.result.as_str())).collect()
    }

    #[test]
    fn a_wrong_result_is_found_at_its_node() {
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
    fn a_wrong_state_is_found_beside_a_right_result() {
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
    fn runs_of_different_operations_are_reported() {
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
