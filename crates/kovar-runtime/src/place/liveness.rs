//! Which nodes are needed.

use std::fmt::Write as _;

use kovar_core::{Graph, NodeId, NodeRef, StorageKind, Value};

use super::error::PlaceError;
use crate::intervals::ByteSet;

/// The needed nodes of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Liveness {
    nodes: Vec<NodeId>,
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

    /// One line for each needed node with what it reads and writes.
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
        text
    }
}

/// Whether a node overwrites every byte of its output's span.
pub(crate) fn writes_whole_span(node: NodeRef<'_>) -> bool {
    !node.op().writes_partially() && node.output().layout.is_contiguous()
}

/// Finds the needed nodes.
///
/// # Errors
/// [`PlaceError::ReadBeforeWrite`] if a needed node reads bytes of a temporary before any of them
/// were written, [`PlaceError::OutputNotWritten`] if no node writes an output.
pub fn analyse(graph: &Graph) -> Result<Liveness, PlaceError> {
    let nodes = needed_nodes(graph);
    check_reads(graph, &nodes)?;
    Ok(Liveness { nodes })
}

/// Walks backwards with the bytes of each storage that later nodes need.
fn needed_nodes(graph: &Graph) -> Vec<NodeId> {
    let whole_if_kept = graph.storages().iter().map(|storage| {
        let mut bytes = ByteSet::default();
        if matches!(storage.kind, StorageKind::State | StorageKind::Output) {
            bytes.set(0..storage.bytes, ());
        }
        bytes
    });
    let mut needed: Vec<ByteSet> = whole_if_kept.collect();
    let mut nodes = Vec::new();
    let all: Vec<_> = graph.node_ids().zip(graph.node_refs()).collect();
    for (id, node) in all.into_iter().rev() {
        let is_wanted = |value: &Value| needed[value.storage.index()].overlaps(value.byte_span());
        if !node.writes().any(is_wanted) {
            continue;
        }
        let output = node.output();
        // Updated operands are read as well, so only the output makes earlier writers unneeded.
        if writes_whole_span(node) {
            needed[output.storage.index()].clear(output.byte_span());
        }
        for input in node.inputs() {
            needed[input.storage.index()].set(input.byte_span(), ());
        }
        nodes.push(id);
    }
    nodes.reverse();
    nodes
}

/// A read is an error only if none of its bytes were written: a window may have gaps, and some
/// operations read fewer rows than their operand has.
fn check_reads(graph: &Graph, nodes: &[NodeId]) -> Result<(), PlaceError> {
    let mut written = vec![ByteSet::default(); graph.storages().len()];
    let within_a_run = |kind: StorageKind| matches!(kind, StorageKind::Temp | StorageKind::Output);
    for (&id, node) in nodes.iter().zip(graph.nodes_of(nodes)) {
        for (i, input) in node.inputs().enumerate() {
            let storage = node.storage_of(input);
            let span = input.byte_span();
            let is_undefined = !span.is_empty() && !written[input.storage.index()].overlaps(span);
            if within_a_run(storage.kind) && is_undefined {
                return Err(PlaceError::ReadBeforeWrite {
                    storage: storage.name.clone(),
                    op: node.op().name(),
                    node: id.index(),
                    operand: node.op().operand_name(i),
                });
            }
        }
        for value in node.writes() {
            written[value.storage.index()].set(value.byte_span(), ());
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
