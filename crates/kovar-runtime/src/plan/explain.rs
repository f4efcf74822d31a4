//! Why each node runs where it does.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{Backend, Reason};
use kovar_core::{Graph, NodeId};

use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::place::Refusal;
use crate::place::candidates::Narrowing;
use crate::place::classes::supporting;
use crate::schedule::fusion::groups;

/// Why a node runs on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementReason {
    /// It is the fastest device for the node.
    Fastest,
    /// No other device supports the node.
    OnlyDevice,
    /// A pin of the user's.
    Pinned {
        /// The pin's pattern.
        pattern: String,
    },
    /// The policy prefers this kind of device.
    Preferred,
    /// It is below the policy's thresholds, so it stays on the CPU.
    BelowThresholds,
    /// It would not fit into the budget of another device.
    Budget,
    /// The node writes a storage that the fastest device cannot own, because it does not support
    /// another of its writers.
    Owner {
        /// The other writer's operation.
        op: &'static str,
        /// Its index.
        node: usize,
        /// Why the fastest device does not support it.
        reason: Reason,
    },
    /// The whole run is estimated to take less time, since this saves copies.
    SavesCopies,
}

impl fmt::Display for PlacementReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementReason::Fastest => f.write_str("fastest"),
            PlacementReason::OnlyDevice => f.write_str("the only device that can"),
            PlacementReason::Pinned { pattern } => write!(f, "pinned by `{pattern}`"),
            PlacementReason::Preferred => f.write_str("preferred by the policy"),
            PlacementReason::BelowThresholds => f.write_str("too small to leave the CPU"),
            PlacementReason::Budget => f.write_str("keeps the budget of another device"),
            PlacementReason::Owner { op, node, reason } => {
                write!(
                    f,
                    "the owner of what it writes, for {op} (node {node}): {reason}"
                )
            }
            PlacementReason::SavesCopies => f.write_str("saves copies"),
        }
    }
}

/// Where a node runs and why.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReport {
    /// The node.
    pub node: NodeId,
    /// Its operation.
    pub op: &'static str,
    /// The name of the storage that it writes.
    pub result: String,
    /// The device that runs it.
    pub device: DeviceId,
    /// The estimated time there, in nanoseconds.
    pub estimate_ns: f64,
    /// Whether no device that supports it is estimated to be faster.
    pub is_fastest: bool,
    /// What decided.
    pub why: PlacementReason,
    /// The devices that cannot run it, and why.
    pub refusals: Vec<Refusal>,
    /// The group that it runs in, if it is fused with others.
    pub fused: Option<FusedIn>,
}

/// The place of a node in a group of fused nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FusedIn {
    /// The name of the fusion.
    pub fusion: &'static str,
    /// The group's first node.
    pub first: NodeId,
    /// Whether the node's result is written to memory.
    pub kept: bool,
}

/// A report of each needed node, in program order.
pub(crate) fn explain(
    graph: &Graph,
    passes: &Passes,
    devices: &[Arc<dyn Backend>],
) -> Vec<NodeReport> {
    let fused = fused_in(graph, passes);
    let mut reports = Vec::new();
    for (position, id, node) in passes.liveness.in_order(graph) {
        let device = passes.placement.owner(node.output().storage, position);
        let estimate = |device: DeviceId| passes.times.node(device, devices.at(device), node);
        let (supporting, refusals) = supporting(devices, node);
        let by_time = |a: &DeviceId, b: &DeviceId| estimate(*a).total_cmp(&estimate(*b));
        let fastest = supporting.iter().min_by(by_time).unwrap_or(device);
        let is_fastest = estimate(device) <= estimate(fastest);
        let why = if refusals.len() + 1 == devices.len() && devices.len() > 1 {
            PlacementReason::OnlyDevice
        } else {
            let unit = passes.classes.unit_at(position);
            let fastest = (!is_fastest).then(|| (fastest, devices.at(fastest)));
            placed_by(graph, passes, unit, fastest)
        };
        reports.push(NodeReport {
            node: id,
            op: node.op().name(),
            result: node.storage_of(node.output()).name.clone(),
            device,
            estimate_ns: estimate(device),
            is_fastest,
            why,
            refusals,
            fused: fused.get(&id).copied(),
        });
    }
    reports
}

/// Why a unit is where it is, rather than on the device that is `fastest` for one of its nodes;
/// `None` if it is on that device.
fn placed_by(
    graph: &Graph,
    passes: &Passes,
    unit: usize,
    fastest: Option<(DeviceId, &dyn Backend)>,
) -> PlacementReason {
    let candidates = passes.placement.candidates(unit);
    if let Some(Narrowing::Pin(pin)) = &candidates.narrowed_by {
        let pattern = pin.pattern.to_string();
        return PlacementReason::Pinned { pattern };
    }
    let Some((fastest, backend)) = fastest else {
        return PlacementReason::Fastest;
    };
    let unit = &passes.classes.units()[unit];
    if let Some((id, node, reason)) = unit.unsupported(graph, &passes.liveness, backend) {
        return PlacementReason::Owner {
            op: node.op().name(),
            node: id.index(),
            reason,
        };
    }
    match &candidates.narrowed_by {
        _ if candidates.devices.contains(fastest) => PlacementReason::SavesCopies,
        Some(Narrowing::Preference) if !candidates.wanted.contains(fastest) => {
            PlacementReason::Preferred
        }
        Some(Narrowing::Thresholds) if !candidates.wanted.contains(fastest) => {
            PlacementReason::BelowThresholds
        }
        _ => PlacementReason::Budget,
    }
}

/// The group of each fused node.
fn fused_in(graph: &Graph, passes: &Passes) -> HashMap<NodeId, FusedIn> {
    let mut fused = HashMap::new();
    for (_, group) in groups(graph, &passes.schedule) {
        let Some(&first) = group.nodes.first() else {
            continue;
        };
        for (&id, &kept) in group.nodes.iter().zip(group.kept) {
            let fusion = group.fusion.name();
            let place = FusedIn {
                fusion,
                first,
                kept,
            };
            fused.insert(id, place);
        }
    }
    fused
}
