//! Verifies a plan against the graph, independently of the passes that made it.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use kovar_core::backend::{Backend, Support};
use kovar_core::{Graph, NodeId, NodeRef, Value};

use crate::fusion::{accesses, backend_segment};
use crate::liveness::Liveness;
use crate::memory::{MemoryPlan, lies_in_arena};
use crate::placement::Placement;
use crate::segment::Schedule;

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A node that runs on another device than the one that owns what it writes.
    #[error("node {node} runs on device {runs_on} and writes `{storage}` of device {owner:?}")]
    WritesForeign {
        /// The node's index.
        node: usize,
        /// The position of the device that it runs on.
        runs_on: usize,
        /// The storage's name.
        storage: String,
        /// The position of the storage's owner.
        owner: Option<usize>,
    },
    /// A node that reads a storage that is not on its device.
    #[error("node {node} runs on device {runs_on} and reads `{storage}`, which is not there")]
    ReadsForeign {
        /// The node's index.
        node: usize,
        /// The position of the device that it runs on.
        runs_on: usize,
        /// The storage's name.
        storage: String,
    },
    /// Segments that do not run the needed nodes once each, in program order.
    #[error("the segments run node {found:?} where node {expected:?} comes in program order")]
    Order {
        /// The index of the node that should run.
        expected: Option<usize>,
        /// The index of the node that runs.
        found: Option<usize>,
    },
    /// Bytes that are not what program order says.
    #[error(
        "{} finds bytes {bytes:?} of `{storage}` stale on device {device}",
        node.map_or_else(|| "the caller".to_owned(), |node| format!("node {node}"))
    )]
    Stale {
        /// The index of the node that reads them; none after the run.
        node: Option<usize>,
        /// The storage's name.
        storage: String,
        /// The position of the device.
        device: usize,
        /// The bytes, counted from the start of the storage.
        bytes: Range<usize>,
    },
    /// A group of fused nodes that is none.
    #[error("segment {segment} fuses nodes {nodes:?} of it, {reason}")]
    Group {
        /// The segment's index.
        segment: usize,
        /// The positions of the nodes in the segment.
        nodes: Range<usize>,
        /// What is wrong.
        reason: &'static str,
    },
    /// A group of fused nodes that writes bytes which it reads or writes as other elements too, in
    /// no order.
    #[error("{fusion} up to node {node} works on `{touched}` while it writes `{written}` over it")]
    GroupOverlap {
        /// The name of the fusion.
        fusion: &'static str,
        /// The index of the group's last node.
        node: usize,
        /// The name of the storage that it reads or writes.
        touched: String,
        /// The name of the storage that it writes over that.
        written: String,
    },
    /// A copy whose bytes are written before they were read.
    #[error("copy {copy} is written before it is read")]
    NotRead {
        /// The copy's index.
        copy: usize,
    },
    /// A device that the session does not have.
    #[error("the session has no device {device}")]
    NoDevice {
        /// The position of the device.
        device: usize,
    },
    /// A storage without memory, or with less than it needs.
    #[error("`{storage}` has no memory of its size")]
    NoMemory {
        /// The storage's name.
        storage: String,
    },
    /// Two storages that are needed at the same time and share bytes.
    #[error("`{first}` and `{second}` are needed at the same time and share memory")]
    SharedMemory {
        /// The one storage's name.
        first: String,
        /// The other's.
        second: String,
    },
}

/// Verifies that every node runs on the owner of all storages that it writes, that its device has
/// a replica of all that it reads, and that the segments run the needed nodes in program order.
pub fn check_segments(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    schedule: &Schedule,
) -> Result<(), Violation> {
    let replicas = schedule.replicas.iter();
    let held: HashSet<_> = replicas.map(|r| (r.storage, r.device)).collect();
    let mut expected = liveness.nodes().iter().copied().enumerate();
    for segment in &schedule.segments {
        for &id in &segment.nodes {
            let next = expected.next();
            in_order(next.map(|(_, id)| id), Some(id))?;
            let (Some(node), Some((position, _))) = (graph.node(id), next) else {
                continue;
            };
            let runs_on = segment.device;
            let name = |value: &Value| node.storage_of(value).name.clone();
            for value in node.writes() {
                let owner = placement.owner(value.storage, position);
                if owner != Some(runs_on) {
                    return Err(Violation::WritesForeign {
                        node: id.index(),
                        runs_on: runs_on.index(),
                        storage: name(value),
                        owner: owner.map(|device| device.index()),
                    });
                }
            }
        }
        for (id, value) in accesses(graph, segment) {
            if !held.contains(&(value.storage, segment.device)) {
                let storage = graph.storages().get(value.storage.index());
                return Err(Violation::ReadsForeign {
                    node: id.index(),
                    runs_on: segment.device.index(),
                    storage: storage.map_or_else(String::new, |storage| storage.name.clone()),
                });
            }
        }
    }
    in_order(expected.next().map(|(_, id)| id), None)
}

/// Verifies that groups of fused nodes are apart, follow the table, and that their device has a
/// kernel for each. Whether their data are right is for [`check_flow`](crate::flow::check_flow).
pub fn check_groups(
    graph: &Graph,
    schedule: &Schedule,
    devices: &[Arc<dyn Backend>],
) -> Result<(), Violation> {
    for (at, segment) in schedule.segments.iter().enumerate() {
        let mut free_from = 0;
        for group in &segment.groups {
            let nodes = segment.nodes.get(group.nodes.clone());
            let nodes: Vec<NodeRef<'_>> = nodes
                .unwrap_or_default()
                .iter()
                .filter_map(|&id| graph.node(id))
                .collect();
            let fused = backend_segment(graph, segment).group(group);
            let device = devices.get(segment.device.index());
            let reason = if group.nodes.start < free_from {
                "some of which another group has"
            } else if !group.fusion.fits(&nodes) {
                "which are none of its pattern"
            } else if group.kept.len() != nodes.len() || group.kept.last() != Some(&true) {
                "and does not keep the last one's result"
            } else if device.is_none_or(|device| device.fuses(fused) != Support::Yes) {
                "for which its device has no kernel"
            } else {
                free_from = group.nodes.end;
                continue;
            };
            return Err(Violation::Group {
                segment: at,
                nodes: group.nodes.clone(),
                reason,
            });
        }
    }
    Ok(())
}

fn in_order(expected: Option<NodeId>, found: Option<NodeId>) -> Result<(), Violation> {
    if expected == found {
        return Ok(());
    }
    Err(Violation::Order {
        expected: expected.map(NodeId::index),
        found: found.map(NodeId::index),
    })
}

/// Verifies that every replica has memory of its own for as long as it is needed.
pub fn check_memory(
    graph: &Graph,
    placement: &Placement,
    schedule: &Schedule,
    memory: &MemoryPlan,
) -> Result<(), Violation> {
    let mut placed = Vec::new();
    for replica in &schedule.replicas {
        let Some(storage) = graph.storages().get(replica.storage.index()) else {
            continue;
        };
        if !lies_in_arena(graph, placement, replica) {
            continue;
        }
        let arena = memory.arenas().get(replica.device.index());
        let slot = memory.slot(replica.storage, replica.device);
        let slot = slot.filter(|slot| {
            let chunk = arena.and_then(|arena| arena.chunks.get(slot.chunk));
            let end = slot.offset.checked_add(slot.bytes);
            slot.bytes >= storage.bytes && end.is_some_and(|end| chunk.is_some_and(|c| end <= *c))
        });
        let Some(slot) = slot else {
            return Err(Violation::NoMemory {
                storage: storage.name.clone(),
            });
        };
        placed.push((replica, slot, storage));
    }
    // Sorted by place, a conflict can only lie among the neighbours that begin before one's end.
    placed.sort_by_key(|(replica, slot, _)| {
        (replica.device, slot.chunk, slot.offset, replica.storage)
    });
    for (i, (replica, slot, storage)) in placed.iter().enumerate() {
        let neighbours = placed.iter().skip(i + 1).take_while(|(other, at, _)| {
            other.device == replica.device
                && at.chunk == slot.chunk
                && at.offset < slot.offset + slot.bytes
        });
        for (other, at, second) in neighbours {
            if at.overlaps(slot) && other.lifetime.overlaps(&replica.lifetime) {
                return Err(Violation::SharedMemory {
                    first: storage.name.clone(),
                    second: second.name.clone(),
                });
            }
        }
    }
    Ok(())
}
