use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kovar::runtime::Evaluated;
use kovar::{Layout, NodeRef, Value};
use kovar_testkit::limits::limits;
use kovar_testkit::metrics::{Comparison, compare};
use kovar_testkit::{Elements, read_value};
use serde::Serialize;

use crate::args::{RunArgs, TokenIds};
use crate::diagnostics::UsageError;
use crate::{load, output};

/// Find the first operation whose results differ between two devices.
///
/// Runs a step of the tokens on each, operation by operation, and compares what each operation
/// writes. Differences are normalised mean square errors (NMSE). An operation fails if its NMSE is
/// above the limit that test-ops holds it to, or above the largest limit of the operations before
/// it, since it works on their results. Exit code 1 if one fails.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// The devices that are taken to be right, as --device takes them.
    #[arg(long, value_name = "DEVICES")]
    a: String,

    /// The devices to compare with them.
    #[arg(long, value_name = "DEVICES")]
    b: String,

    /// Token ids, separated by commas or spaces; `kovar tokenize` makes them. At most 512.
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
  kovar diff -m model.gguf --a cpu --b cpu,cpu:avx2 --place 'blk.*=cpu'
  kovar diff --a cpu:portable --b cpu --all";

#[derive(Serialize)]
struct Report {
    operations: usize,
    /// The first operation that fails, or with --all every operation.
    differences: Vec<Difference>,
    failed: bool,
}

#[derive(Serialize)]
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

/// Takes what a node of a segment wrote.
type Take<'t> = dyn FnMut(&Evaluated<'_>, NodeRef<'_>, Vec<f64>) -> anyhow::Result<()> + 't;

impl Diff {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be loaded or run on one of the devices.
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
        let mut expected: Vec<Vec<f64>> = Vec::new();
        self.observe(&self.a, &mut |_, _, values| {
            expected.push(values);
            Ok(())
        })?;
        let mut report = Report {
            operations: 0,
            differences: Vec::new(),
            failed: false,
        };
        let mut limit = 0f64;
        let mut wanted = expected.iter();
        self.observe(&self.b, &mut |evaluated, node, values| {
            let expected = wanted
                .next()
                .context("the second run has more operations")?;
            let own = limits(node);
            limit = limit.max(own.quantized.map_or(own.plain, |quantized| quantized.plain));
            let found = compare(node.output().dims(), expected, &values, None);
            let difference = difference(evaluated, node, found, limit);
            report.operations += 1;
            if self.all || (difference.failed && !report.failed) {
                report.differences.push(difference);
            }
            report.failed |= report.differences.last().is_some_and(|last| last.failed);
            Ok(())
        })?;
        if self.json {
            output::write_json(&report)?;
        } else {
            output::write(&text(&report, &self.a, &self.b))?;
        }
        Ok(ExitCode::from(u8::from(report.failed)))
    }

    /// Runs the step on `devices` and hands over what each node writes.
    fn observe(&self, devices: &str, take: &mut Take<'_>) -> anyhow::Result<()> {
        let mut args = self.run.clone();
        args.device.device = Some(devices.to_owned());
        let file = load::open(&args.model.model)?;
        let mut model = load::model(file, &args)?;
        let mut failed: Option<anyhow::Error> = None;
        let mut observer = |evaluated: &Evaluated<'_>| {
            let graph = evaluated.graph();
            for node in evaluated.nodes().iter().filter_map(|&id| graph.node(id)) {
                let taken =
                    elements(evaluated, node).and_then(|values| take(evaluated, node, values));
                if let Err(error) = taken {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        let observed = model.observe(&self.ids.0, &mut observer);
        match failed {
            Some(error) => Err(error),
            None => observed.with_context(|| format!("cannot run the step on {devices}")),
        }
    }
}

/// What a node wrote, row-major.
fn elements(evaluated: &Evaluated<'_>, node: NodeRef<'_>) -> anyhow::Result<Vec<f64>> {
    let output = node.output();
    let bytes = evaluated.read(output)?;
    let Some(layout) = Layout::contiguous(*output.dims()) else {
        bail!("{} has too many elements", node.storage_of(output).name);
    };
    let value = Value { layout, ..*output };
    let data = read_value(&value, &bytes)?;
    Ok(match data.elements() {
        Elements::Float(values) => values.clone(),
        Elements::Int(values) => values.iter().map(|&value| value as f64).collect(),
    })
}

fn difference(
    evaluated: &Evaluated<'_>,
    node: NodeRef<'_>,
    found: Comparison,
    limit: f64,
) -> Difference {
    let worst = found.worst_absolute;
    Difference {
        node: evaluated.nodes().first().map_or(0, |id| id.index()),
        op: node.op().name(),
        result: node.storage_of(node.output()).name.clone(),
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
