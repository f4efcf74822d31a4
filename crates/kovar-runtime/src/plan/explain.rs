//! Why each node runs where it does.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{Backend, Reason};
use kovar_core::{Graph, NodeId};

use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::place::Refusal;
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
    let (classes, liveness) = (&passes.classes, &passes.liveness);
    for (position, id, node) in liveness.in_order(graph) {
        let at = classes.unit_at(position);
        let Some((at, unit)) = at.and_then(|at| Some((at, classes.units().get(at)?))) else {
            continue;
        };
        let storage = node.output().storage;
        let device = passes.placement.owner(storage, position);
        let device = device.unwrap_or(DeviceId::FIRST);
        let estimate = |device: DeviceId| {
            let backend = devices.at(device);
            backend.map_or(f64::INFINITY, |backend| {
                passes.times.node(device, backend, node)
            })
        };
        let (supporting, refusals) = supporting(devices, node);
        let by_time = |a: &DeviceId, b: &DeviceId| estimate(*a).total_cmp(&estimate(*b));
        let fastest = supporting.iter().min_by(by_time);
        let is_fastest = fastest.is_none_or(|fastest| estimate(device) <= estimate(fastest));
        let pin = passes.placement.pin(at);
        let why = if refusals.len() + 1 == devices.len() && devices.len() > 1 {
            PlacementReason::OnlyDevice
        } else if let Some(pin) = pin.filter(|pin| pin.device == device) {
            PlacementReason::Pinned {
                pattern: pin.pattern.to_string(),
            }
        } else if is_fastest {
            PlacementReason::Fastest
        } else {
            let fastest = fastest.and_then(|fastest| devices.at(fastest));
            let refused = fastest.and_then(|device| unit.unsupported(graph, liveness, device));
            refused.map_or(PlacementReason::SavesCopies, |(id, node, reason)| {
                PlacementReason::Owner {
                    op: node.op().name(),
                    node: id.index(),
                    reason,
                }
            })
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

/// The group of each fused node.
fn fused_in(graph: &Graph, passes: &Passes) -> HashMap<NodeId, FusedIn> {
    let mut fused = HashMap::new();
    for (_, group) in groups(graph, &passes.schedule) {
        let Some(&first) = group.nodes.first() else {
            continue;
        };
        for (&id, &kept) in group.nodes.iter().zip(group.kept) {
            let fusion = group.fusion.name();
            fused.insert(
                id,
                FusedIn {
                    fusion,
                    first,
                    kept,
                },
            );
        }
    }
    fused
}
