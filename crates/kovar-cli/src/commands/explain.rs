use std::collections::HashMap;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use kovar::runtime::{NodeReport, Pattern};
use kovar::{Model, NodeId};
use serde::Serialize;

use crate::args::{RunArgs, whole};
use crate::diagnostics::UsageError;
use crate::output::Table;
use crate::{load, output};

/// Show the device of each operation of a model, and why it was chosen.
///
/// Prints one line per operation of a step: the name of its result, the device, the kernel, the
/// estimated and the measured time, the fusion that it belongs to, and the reason for the device.
/// The model is loaded and runs one step of token 0, operation by operation. The measured times
/// therefore include the overhead of starting an operation, and fused operations show their
/// separate kernels.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Show only operations whose name or result name matches PATTERN (`*` any characters, `?`
    /// one).
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    node: String,

    /// Number of tokens of the step.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
          value_parser = whole(1u32..=512))]
    tokens: u32,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    run: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  kovar explain -m model.gguf
  kovar explain -m model.gguf --node 'matmul*' --tokens 512
  kovar explain -m model.gguf --node attention --json | jq '.nodes[].measured_ns'";

#[derive(Serialize)]
struct Report {
    nodes: Vec<Node>,
}

#[derive(Serialize)]
struct Node {
    node: usize,
    op: &'static str,
    result: String,
    device: String,
    kernel: &'static str,
    estimated_ns: f64,
    measured_ns: Option<u64>,
    /// The group of fused operations that it belongs to, if any.
    fused: Option<Fused>,
    /// Whether its device is estimated to be the fastest.
    fastest: bool,
    why: String,
    refusals: Vec<String>,
}

#[derive(Serialize)]
struct Fused {
    fusion: &'static str,
    /// The group's first node.
    first: usize,
    /// Whether the result is written to memory.
    written: bool,
}

/// The kernel and the measured time of a node.
struct Ran {
    kernel: &'static str,
    time: Duration,
}

impl Explain {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be loaded or run.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let n_tokens = self.tokens as usize;
        let target = load::Target::new(&self.run)?;
        let ids = target.ids();
        let forecast = |tokens: u32| {
            let file = load::open(&self.run.model.model)?;
            load::forecast(file, &target, &self.run, tokens)
        };
        let mut forecasted = forecast(self.tokens)?;
        if forecasted.shape.n_outputs == 0 {
            // Only the first step is run, and it gives logits.
            forecasted = forecast(u32::try_from(forecasted.shape.n_tokens)?)?;
        }
        let (graph, forecast) = (forecasted.graph, forecasted.plan);
        let pattern = Pattern::new(&self.node);
        let wanted = |node: &&NodeReport| pattern.matches(node.op) || pattern.matches(&node.result);
        let nodes: Vec<&NodeReport> = forecast.nodes.iter().filter(wanted).collect();
        if nodes.is_empty() {
            let message = format!("--node `{}` matches no operation", self.node);
            return Err(UsageError::new(message).into());
        }
        self.run.placement.check([&graph], &target.devices, false)?;
        let file = load::open(&self.run.model.model)?;
        let mut model = Model::load(file, target.devices, &target.options)
            .with_context(|| format!("cannot load {}", self.run.model.model))?;
        let ran = run(&mut model, n_tokens)?;
        let nodes = nodes.into_iter();
        let report = Report {
            nodes: nodes.map(|node| describe(node, &ids, &ran)).collect(),
        };
        if self.json {
            output::write_json(&report)?;
        } else {
            output::write(&text(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs a step twice, node by node, and measures the second run.
fn run(model: &mut Model, n_tokens: usize) -> anyhow::Result<HashMap<NodeId, Ran>> {
    let mut ran = HashMap::new();
    for _ in 0..2 {
        model.truncate(0);
        ran.clear();
        let mut start = Instant::now();
        let mut failed = None;
        let mut observer = |evaluated: &kovar::runtime::ObservedSegment<'_>| {
            if let Err(error) = evaluated.wait() {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            let time = start.elapsed();
            for (&node, kernel) in evaluated.nodes().iter().zip(evaluated.kernels()) {
                ran.insert(node, Ran { kernel, time });
            }
            start = Instant::now();
            ControlFlow::Continue(())
        };
        let observed = model.observe(&vec![0; n_tokens], &mut observer);
        if let Some(error) = failed {
            return Err(error).context("cannot run the step");
        }
        observed.context("cannot run the step")?;
    }
    Ok(ran)
}

fn describe(node: &NodeReport, ids: &[String], ran: &HashMap<NodeId, Ran>) -> Node {
    let ran = ran.get(&node.node);
    let refusals = node.refusals.iter();
    Node {
        node: node.node.index(),
        op: node.op,
        result: node.result.clone(),
        device: ids.get(node.device.index()).cloned().unwrap_or_default(),
        kernel: ran.map_or("", |ran| ran.kernel),
        estimated_ns: node.estimate_ns,
        measured_ns: ran.map(|ran| u64::try_from(ran.time.as_nanos()).unwrap_or(u64::MAX)),
        fused: node.fused.map(|fused| Fused {
            fusion: fused.fusion,
            first: fused.first.index(),
            written: fused.kept,
        }),
        fastest: node.is_fastest,
        why: node.why.to_string(),
        refusals: refusals
            .map(|no| format!("{}: {}", no.device, no.reason))
            .collect(),
    }
}

fn text(report: &Report) -> String {
    let mut table = Table::new(&[
        ">node",
        "operation",
        "result",
        "device",
        "kernel",
        ">estimated",
        ">measured",
        "fusion",
        "why",
    ]);
    let time = |nanoseconds: f64| format!("{:.1} us", nanoseconds / 1e3);
    for node in &report.nodes {
        let mut why = node.why.clone();
        for refusal in &node.refusals {
            why += "; ";
            why += refusal;
        }
        table.row([
            node.node.to_string(),
            node.op.to_owned(),
            node.result.clone(),
            node.device.clone(),
            node.kernel.to_owned(),
            time(node.estimated_ns),
            node.measured_ns
                .map_or_else(String::new, |ns| time(ns as f64)),
            node.fused.as_ref().map_or_else(String::new, |fused| {
                let within = if fused.written { "" } else { ", not written" };
                format!("{} from {}{within}", fused.fusion, fused.first)
            }),
            why,
        ]);
    }
    table.render("")
}
