//! Verifies a plan against the graph, independently of the passes that made it.

use kovar_core::{Graph, NodeId, Value};

use crate::liveness::Liveness;
use crate::memory::{MemoryPlan, lies_in_arena};
use crate::placement::Placement;
use crate::segment::Segment;

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

/// Verifies that every node runs on the owner of all storages that it writes, that all it reads is
/// there, and that the segments run the needed nodes in program order.
pub fn check_segments(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    segments: &[Segment],
) -> Result<(), Violation> {
    let mut expected = liveness.nodes().iter().copied();
    for segment in segments {
        for &id in &segment.nodes {
            in_order(expected.next(), Some(id))?;
            let Some(node) = graph.node(id) else { continue };
            let runs_on = segment.device;
            let name = |value: &Value| node.storage_of(value).name.clone();
            for value in node.writes() {
                let owner = placement.owner(value.storage);
                if owner != Some(runs_on) {
                    return Err(Violation::WritesForeign {
                        node: id.index(),
                        runs_on: runs_on.index(),
                        storage: name(value),
                        owner: owner.map(|device| device.index()),
                    });
                }
            }
            for input in node.inputs() {
                if !placement.holds(runs_on, input.storage) {
                    return Err(Violation::ReadsForeign {
                        node: id.index(),
                        runs_on: runs_on.index(),
                        storage: name(input),
                    });
                }
            }
        }
    }
    in_order(expected.next(), None)
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

/// Verifies that every needed storage has memory of its own for as long as it is needed.
pub fn check_memory(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    memory: &MemoryPlan,
) -> Result<(), Violation> {
    let mut placed = Vec::new();
    for (id, storage) in graph.storage_ids().zip(graph.storages()) {
        let Some(lifetime) = liveness.lifetime(id) else {
            continue;
        };
        if !lies_in_arena(storage.kind) {
            continue;
        }
        let owner = placement.owner(id);
        let arena = owner.and_then(|device| memory.arenas().get(device.index()));
        let slot = memory.slot(id).filter(|slot| {
            let chunk = arena.and_then(|arena| arena.chunks.get(slot.chunk));
            let end = slot.offset.checked_add(slot.bytes);
            slot.bytes >= storage.bytes && end.is_some_and(|end| chunk.is_some_and(|c| end <= *c))
        });
        let Some(slot) = slot else {
            return Err(Violation::NoMemory {
                storage: storage.name.clone(),
            });
        };
        placed.push((owner, slot, lifetime, storage));
    }
    // Sorted by place, a conflict can only lie among the neighbours that begin before one's end.
    placed.sort_by_key(|(owner, slot, ..)| (*owner, slot.chunk, slot.offset));
    for (i, (owner, slot, lifetime, storage)) in placed.iter().enumerate() {
        let neighbours = placed.iter().skip(i + 1).take_while(|(other, at, ..)| {
            other == owner && at.chunk == slot.chunk && at.offset < slot.offset + slot.bytes
        });
        for (_, at, other, second) in neighbours {
            if at.overlaps(slot) && other.overlaps(lifetime) {
                return Err(Violation::SharedMemory {
                    first: storage.name.clone(),
                    second: second.name.clone(),
                });
            }
        }
    }
    Ok(())
}
