//! Runs of nodes on one device.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{Graph, NodeId};

use crate::liveness::Liveness;
use crate::placement::{DeviceId, Placement};

/// Neighbouring nodes that one device runs one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The device.
    pub device: DeviceId,
    /// The nodes, in program order.
    pub nodes: Vec<NodeId>,
}

/// Cuts the needed nodes into the longest segments; each runs where the storage lies that it
/// writes.
pub fn cut(graph: &Graph, liveness: &Liveness, placement: &Placement) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for &id in liveness.nodes() {
        let Some(node) = graph.node(id) else { continue };
        let Some(device) = placement.owner(node.output().storage) else {
            continue;
        };
        match segments.last_mut() {
            Some(segment) if segment.device == device => segment.nodes.push(id),
            _ => segments.push(Segment {
                device,
                nodes: vec![id],
            }),
        }
    }
    segments
}

/// One line for each segment.
pub fn dump(segments: &[Segment], graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
    let mut text = format!("segments: {}\n", segments.len());
    for (i, segment) in segments.iter().enumerate() {
        let device = devices
            .get(segment.device.index())
            .map_or("?", |device| device.info().id.as_str());
        let first = segment.nodes.first().map_or(0, |id| id.index());
        let last = segment.nodes.last().map_or(0, |id| id.index());
        let flops: u64 = segment
            .nodes
            .iter()
            .filter_map(|&id| graph.node(id))
            .map(|node| node.cost().flops)
            .sum();
        let _ = writeln!(
            text,
            "  {i}: {device}, {} nodes ({first} to {last}), {flops} operations",
            segment.nodes.len()
        );
    }
    text
}
