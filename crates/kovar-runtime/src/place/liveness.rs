//! Which nodes are needed, and the lifetime of each storage.

use std::fmt::Write as _;

use kovar_core::{Graph, NodeId, NodeRef, StorageKind, Value};

use super::error::PlaceError;
use crate::bytes::RangeSet;

/// The positions of needed nodes, in program order, between which the bytes of a storage are needed,
/// both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first access; 0 for storages that hold bytes before the run.
    pub start: usize,
    /// The last access; the last position for storages that are kept after the run.
    pub end: usize,
}

impl Lifetime {
    /// Whether both include some position.
    pub fn overlaps(&self, other: &Lifetime) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    fn include(slot: &mut Option<Lifetime>, at: usize) {
        let lifetime = slot.get_or_insert(Lifetime { start: at, end: at });
        lifetime.start = lifetime.start.min(at);
        lifetime.end = lifetime.end.max(at);
    }
}

/// The needed nodes of a graph and the lifetimes of its storages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Liveness {
    nodes: Vec<NodeId>,
    /// By storage; `None` if no needed node accesses it.
    lifetimes: Vec<Option<Lifetime>>,
}

impl Liveness {
    /// The nodes whose results or updates reach a state or an output, in program order.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The same with their positions and their graph.
    pub(crate) fn in_order<'g>(
        &self,
        graph: &'g Graph,
    ) -> impl Iterator<Item = (usize, NodeId, NodeRef<'g>)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter_map(|(position, &id)| Some((position, id, graph.node(id)?)))
    }

    /// One line for each needed node with what it reads and writes, and one for each lifetime.
    pub fn dump(&self, graph: &Graph) -> String {
        let mut text = format!(
            "liveness: {} of {} nodes needed\n",
            self.nodes.len(),
            graph.nodes().len()
        );
        for (at, _, node) in self.in_order(graph) {
            let name = |value| node.storage_of(value).name.as_str();
            let inputs: Vec<&str> = node.inputs().map(name).collect();
            let output = name(node.output());
            let span = node.output().byte_span();
            let op = node.op().name();
            let _ = write!(
                text,
                "  {at:4}  {output}[{span:?}] = {op}({})",
                inputs.join(", ")
            );
            for value in node.updates() {
                let _ = write!(text, ", updates {}", name(value));
            }
            text.push('\n');
        }
        for (storage, lifetime) in graph.storages().iter().zip(&self.lifetimes) {
            let Some(Lifetime { start, end }) = lifetime else {
                continue;
            };
            let (kind, name, bytes) = (storage.kind.name(), &storage.name, storage.bytes);
            let _ = writeln!(text, "  {kind} `{name}`, {bytes} bytes: {start}..={end}");
        }
        text
    }
}

/// Whether a node overwrites every byte of its output's span.
pub(crate) fn writes_whole_span(node: NodeRef<'_>) -> bool {
    !node.op().writes_partially() && node.output().layout.is_contiguous()
}

/// Finds the needed nodes and the lifetimes.
///
/// # Errors
/// [`PlaceError::ReadBeforeWrite`] if a needed node reads bytes of a temporary before any of them
/// were written, [`PlaceError::OutputNotWritten`] if no node writes an output.
pub fn analyse(graph: &Graph) -> Result<Liveness, PlaceError> {
    let nodes = needed_nodes(graph);
    check_reads(graph, &nodes)?;
    let mut lifetimes = vec![None; graph.storages().len()];
    for (at, node) in graph.nodes_of(&nodes).enumerate() {
        for value in node.inputs().chain([node.output()]) {
            if let Some(slot) = lifetimes.get_mut(value.storage.index()) {
                Lifetime::include(slot, at);
            }
        }
    }
    let last = nodes.len().saturating_sub(1);
    for (lifetime, storage) in lifetimes.iter_mut().zip(graph.storages()) {
        let Some(lifetime) = lifetime else { continue };
        match storage.kind {
            StorageKind::Temp => {}
            StorageKind::Output => lifetime.end = last,
            StorageKind::Input => lifetime.start = 0,
            StorageKind::State | StorageKind::Weight => {
                *lifetime = Lifetime {
                    start: 0,
                    end: last,
                };
            }
        }
    }
    Ok(Liveness { nodes, lifetimes })
}

/// Walks backwards with the bytes of each storage that later nodes need.
fn needed_nodes(graph: &Graph) -> Vec<NodeId> {
    let mut needed: Vec<RangeSet> = graph
        .storages()
        .iter()
        .map(|storage| {
            let mut bytes = RangeSet::new();
            if matches!(storage.kind, StorageKind::State | StorageKind::Output) {
                bytes.insert(0..storage.bytes);
            }
            bytes
        })
        .collect();
    let mut nodes = Vec::new();
    let all: Vec<_> = graph.node_ids().zip(graph.node_refs()).collect();
    for (id, node) in all.into_iter().rev() {
        let is_wanted = |value: &Value| {
            let wanted = needed.get(value.storage.index());
            wanted.is_some_and(|wanted| wanted.overlaps(&value.byte_span()))
        };
        if !node.writes().any(is_wanted) {
            continue;
        }
        let output = node.output();
        // Updated operands are read as well, so only the output makes earlier writers unneeded.
        if writes_whole_span(node)
            && let Some(wanted) = needed.get_mut(output.storage.index())
        {
            wanted.remove(output.byte_span());
        }
        for input in node.inputs() {
            if let Some(wanted) = needed.get_mut(input.storage.index()) {
                wanted.insert(input.byte_span());
            }
        }
        nodes.push(id);
    }
    nodes.reverse();
    nodes
}

/// A read is an error only if none of its bytes were written: a window may have gaps, and some
/// operations read fewer rows than their operand has.
fn check_reads(graph: &Graph, nodes: &[NodeId]) -> Result<(), PlaceError> {
    let mut written: Vec<RangeSet> = vec![RangeSet::new(); graph.storages().len()];
    let within_a_run = |kind: StorageKind| matches!(kind, StorageKind::Temp | StorageKind::Output);
    for &id in nodes {
        let Some(node) = graph.node(id) else { continue };
        for (i, input) in node.inputs().enumerate() {
            let storage = node.storage_of(input);
            let span = input.byte_span();
            let undefined = written
                .get(input.storage.index())
                .is_some_and(|written| !written.overlaps(&span));
            if within_a_run(storage.kind) && !span.is_empty() && undefined {
                return Err(PlaceError::ReadBeforeWrite {
                    storage: storage.name.clone(),
                    op: node.op().name(),
                    node: id.index(),
                    operand: node.op().operand_name(i),
                });
            }
        }
        for value in node.writes() {
            if let Some(written) = written.get_mut(value.storage.index()) {
                written.insert(value.byte_span());
            }
        }
    }
    for (storage, written) in graph.storages().iter().zip(&written) {
        if storage.kind == StorageKind::Output && storage.bytes > 0 && written.is_empty() {
            return Err(PlaceError::OutputNotWritten {
                name: storage.name.clone(),
            });
        }
    }
    Ok(())
}
