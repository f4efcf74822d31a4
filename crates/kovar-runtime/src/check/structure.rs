//! Verifies segments, fused groups and memory.

use std::collections::HashSet;
use std::sync::Arc;

use kovar_core::backend::{Backend, Support};
use kovar_core::{Graph, NodeId, NodeRef, Value};

use crate::device::Devices;
use crate::place::liveness::Liveness;
use crate::place::placement::Placement;
use crate::schedule::Schedule;
use crate::schedule::fusion::{accesses, backend_segment};
use crate::schedule::memory::{ArenaPlan, lies_in_arena};
use crate::violation::Violation;

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
                if owner != runs_on {
                    return Err(Violation::WritesForeign {
                        node: id.index(),
                        runs_on: runs_on.index(),
                        storage: name(value),
                        owner: owner.index(),
                    });
                }
            }
        }
        for (id, value) in accesses(graph, segment) {
            if !held.contains(&(value.storage, segment.device)) {
                return Err(Violation::ReadsForeign {
                    node: id.index(),
                    runs_on: segment.device.index(),
                    storage: graph.storages()[value.storage.index()].name.clone(),
                });
            }
        }
    }
    in_order(expected.next().map(|(_, id)| id), None)
}

/// Verifies that groups of fused nodes are disjoint and match the table of fusions, and that their
/// device has a kernel for each. Their data are verified by [`check_flow`](super::check_flow).
pub fn check_groups(
    graph: &Graph,
    schedule: &Schedule,
    devices: &[Arc<dyn Backend>],
) -> Result<(), Violation> {
    for (at, segment) in schedule.segments.iter().enumerate() {
        let mut free_from = 0;
        for group in &segment.groups {
            let nodes = segment.nodes.get(group.nodes.clone()).unwrap_or_default();
            let nodes: Vec<NodeRef<'_>> = graph.nodes_of(nodes).collect();
            let fused = backend_segment(graph, segment).group(group);
            let device = devices.at(segment.device);
            let reason = if group.nodes.start < free_from {
                "some of which belong to another group"
            } else if !group.fusion.fits(&nodes) {
                "which do not match its pattern"
            } else if group.kept.len() != nodes.len() || group.kept.last() != Some(&true) {
                "and does not keep the result of the last one"
            } else if device.fuses(fused) != Support::Yes {
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

/// Verifies that every replica has memory that it shares with no other during its lifetime.
pub fn check_memory(
    graph: &Graph,
    placement: &Placement,
    schedule: &Schedule,
    memory: &ArenaPlan,
) -> Result<(), Violation> {
    let mut placed = Vec::new();
    for replica in &schedule.replicas {
        if !lies_in_arena(graph, placement, replica) {
            continue;
        }
        let storage = &graph.storages()[replica.storage.index()];
        let arena = &memory.arenas()[replica.device.index()];
        let slot = memory.slot(replica.storage, replica.device);
        let slot = slot.filter(|slot| {
            let chunk = arena.chunks.get(slot.chunk);
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
    // Sorted by offset, a replica can only overlap those after it that begin before its end.
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
