use std::process::ExitCode;

use clap::Args;
use kovar::runtime::{NodeReport, PlacementReason};
use kovar::text::ModelForecast;
use serde::Serialize;

use crate::args::{RunArgs, whole};
use crate::output::Table;
use crate::{format, load, output};

/// Show the memory, segments and copies that a model needs, without loading it.
///
/// Shows, per device, the bytes of weights (in the device's own form), caches and activations; the
/// segments of a step and the bytes copied between devices; the fused operations; and the
/// operations whose device was not chosen by speed, with the reason. The memory is that of
/// evaluating --tokens tokens and of the steps of one token that follow. All steps share the memory
/// of activations, whose size the largest step determines. Segments, copies and operations are
/// those of the first step.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Plan {
    /// Number of tokens to evaluate. They are evaluated in steps of up to 512 tokens, or up to 4096
    /// if weights are streamed.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
          value_parser = whole(1u32..=4096))]
    tokens: u32,

    /// Number of tokens whose logits are computed together; `perplexity` and `logits` use 128.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
          value_parser = whole(1u32..=512))]
    logits: u32,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    run: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  kovar plan -m model.gguf
  kovar plan -m model.gguf --tokens 512 --ctx 8192 --cache-type q8_0
  kovar plan -m model.gguf --device cpu,cpu:avx2 --budget cpu=2GiB";

#[derive(Serialize)]
struct Report {
    /// Tokens of the step, which may be fewer than --tokens.
    tokens: usize,
    devices: Vec<Device>,
    segments: usize,
    copies: usize,
    /// Of a step after an empty context.
    copied_bytes: usize,
    /// Of a step that fills the context.
    copied_bytes_at_most: usize,
    uploads: usize,
    uploaded_bytes: usize,
    /// The fused operations.
    fused: Vec<Fused>,
    /// Bytes of outputs that the host reads.
    output_bytes: usize,
    other_reasons: Vec<Reason>,
    rejected_pins: Vec<String>,
}

#[derive(Serialize)]
struct Device {
    id: String,
    weights: usize,
    caches: usize,
    activations: usize,
    activations_lower_bound: usize,
    /// Staging memory for uploads and for reading back.
    upload_ring: usize,
    readback: usize,
    /// The estimated memory of its compiled programs.
    programs: usize,
    total: usize,
    segments: usize,
    operations: usize,
}

/// The groups of a fusion on a device.
#[derive(Serialize)]
struct Fused {
    fusion: &'static str,
    device: String,
    groups: usize,
    nodes: usize,
    /// Results that are never written to memory.
    not_written: usize,
}

#[derive(Serialize)]
struct Reason {
    op: &'static str,
    device: String,
    why: String,
    /// Whether it is nevertheless the fastest device.
    fastest: bool,
    nodes: usize,
    first: String,
}

impl Plan {
    /// Runs the command.
    ///
    /// # Errors
    /// A model that cannot be read, or that the devices cannot run or hold.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        self.run.logit_rows = self.logits as usize;
        let file = load::open(&self.run.model.model)?;
        let target = load::Target::new(&self.run)?;
        let forecast = load::forecast(file, &target, &self.run, self.tokens)?;
        self.run
            .placement
            .check([&forecast.graph], &target.devices, false)?;
        let report = report(&forecast, &target.ids());
        if self.json {
            output::write_json(&report)?;
        } else {
            output::write(&text(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn report(forecast: &ModelForecast, device_ids: &[String]) -> Report {
    let ModelForecast { graph, plan, .. } = forecast;
    let schedule = &plan.schedule;
    let bytes =
        |storage: kovar::StorageId| graph.storage(storage).map_or(0, |storage| storage.bytes);
    let held = forecast.held.iter().zip(&plan.memory);
    let bounds = forecast.arena_lower_bounds.iter().zip(&forecast.programs);
    let held = held.zip(bounds).enumerate();
    let devices = held.map(|(at, ((held, memory), (bound, programs)))| Device {
        id: held.device.clone(),
        weights: held.weights,
        caches: held.states,
        activations: held.arena,
        activations_lower_bound: *bound,
        upload_ring: memory.upload_ring,
        readback: memory.readback,
        programs: *programs,
        total: held.weights
            + held.states
            + held.arena
            + memory.upload_ring
            + memory.readback
            + programs,
        segments: schedule
            .segments
            .iter()
            .filter(|s| s.device.index() == at)
            .count(),
        operations: plan.nodes.iter().filter(|n| n.device.index() == at).count(),
    });
    Report {
        tokens: forecast.shape.n_tokens,
        devices: devices.collect(),
        segments: schedule.segments.len(),
        copies: schedule.copies.len(),
        copied_bytes: forecast.copied_bytes[0],
        copied_bytes_at_most: forecast.copied_bytes[1],
        uploads: schedule.uploads.len(),
        uploaded_bytes: schedule
            .uploads
            .iter()
            .map(|upload| bytes(upload.weight))
            .sum(),
        fused: fused(&plan.nodes, device_ids),
        output_bytes: forecast.output_bytes,
        other_reasons: other_reasons(&plan.nodes, device_ids),
        rejected_pins: plan.rejected_pins.iter().map(ToString::to_string).collect(),
    }
}

/// The fused nodes, by fusion and device.
fn fused(nodes: &[NodeReport], ids: &[String]) -> Vec<Fused> {
    let mut found: Vec<Fused> = Vec::new();
    for node in nodes {
        let Some(group) = node.fused else { continue };
        let device = ids.get(node.device.index()).map_or("?", String::as_str);
        let alike = |other: &Fused| other.fusion == group.fusion && other.device == device;
        let at = found.iter().position(alike).unwrap_or_else(|| {
            found.push(Fused {
                fusion: group.fusion,
                device: device.to_owned(),
                groups: 0,
                nodes: 0,
                not_written: 0,
            });
            found.len() - 1
        });
        let fused = &mut found[at];
        fused.groups += usize::from(group.first == node.node);
        fused.nodes += 1;
        fused.not_written += usize::from(!group.kept);
    }
    found
}

/// The nodes whose device was not chosen by speed, grouped by operation, device and reason.
fn other_reasons(nodes: &[NodeReport], ids: &[String]) -> Vec<Reason> {
    let mut found: Vec<Reason> = Vec::new();
    for node in nodes
        .iter()
        .filter(|node| node.why != PlacementReason::Fastest)
    {
        let device = ids.get(node.device.index()).map_or("?", String::as_str);
        let mut why = node.why.to_string();
        if node.why == PlacementReason::OnlyDevice {
            for refusal in &node.refusals {
                why += &format!("; {}: {}", refusal.device, refusal.reason);
            }
        }
        let alike = |other: &&mut Reason| {
            let fastest = other.fastest == node.is_fastest;
            fastest && other.op == node.op && other.device == device && other.why == why
        };
        match found.iter_mut().find(alike) {
            Some(other) => other.nodes += 1,
            None => found.push(Reason {
                op: node.op,
                device: device.to_owned(),
                why,
                fastest: node.is_fastest,
                nodes: 1,
                first: node.result.clone(),
            }),
        }
    }
    found
}

fn text(report: &Report) -> String {
    let size = |bytes: usize| format::bytes(bytes as u64);
    let mut table = Table::new(&[
        "device",
        ">weights",
        ">caches",
        ">activations",
        ">total",
        ">segments",
        ">operations",
    ]);
    for device in &report.devices {
        table.row([
            device.id.clone(),
            size(device.weights),
            size(device.caches),
            format!(
                "{} (at least {})",
                size(device.activations),
                size(device.activations_lower_bound)
            ),
            size(device.total),
            device.segments.to_string(),
            device.operations.to_string(),
        ]);
    }
    let mut text = table.render("");
    let step = format!("a step of {}", format::plural(report.tokens, "token"));
    let mut copied = size(report.copied_bytes);
    if report.copied_bytes_at_most > report.copied_bytes {
        let most = size(report.copied_bytes_at_most);
        copied += &format!(" (up to {most} as the context fills)");
    }
    text += &format!(
        "\n{step}: {}, {} of {copied} between devices\n",
        format::plural(report.segments, "segment"),
        if report.copies == 1 {
            "1 copy".to_owned()
        } else {
            format!("{} copies", report.copies)
        },
    );
    text += &format!("outputs read back: {}\n", size(report.output_bytes));
    for device in &report.devices {
        if device.programs > 0 {
            text += &format!(
                "the total of {} includes {} for compiled programs\n",
                device.id,
                size(device.programs)
            );
        }
        if device.upload_ring + device.readback > 0 {
            text += &format!(
                "the total of {} includes {} for uploads and {} for reading back\n",
                device.id,
                size(device.upload_ring),
                size(device.readback)
            );
        }
    }
    if report.uploads > 0 {
        text += &format!(
            "{} of streamed weights, {}\n",
            format::plural(report.uploads, "upload"),
            size(report.uploaded_bytes)
        );
    }
    if !report.fused.is_empty() {
        let mut table = Table::new(&[">groups", ">operations", ">not written", "fusion", "device"]);
        for fused in &report.fused {
            table.row([
                fused.groups.to_string(),
                fused.nodes.to_string(),
                fused.not_written.to_string(),
                fused.fusion.to_owned(),
                fused.device.clone(),
            ]);
        }
        text += "\nfused operations:\n";
        text += &table.render("");
    }
    for lost in &report.rejected_pins {
        text += &format!("warning: {lost}\n");
    }
    if report.devices.len() > 1 && !report.other_reasons.is_empty() {
        let mut table = Table::new(&[">nodes", "operation", "first", "device", "fastest", "why"]);
        for other in &report.other_reasons {
            table.row([
                other.nodes.to_string(),
                other.op.to_owned(),
                other.first.clone(),
                other.device.clone(),
                if other.fastest { "yes" } else { "no" }.to_owned(),
                other.why.clone(),
            ]);
        }
        text += "\noperations whose device was not chosen by speed:\n";
        text += &table.render("");
    }
    text
}
