//! The order that program order imposes on accesses to the same bytes.

use std::collections::HashMap;
use std::ops::Range;

use kovar_core::{Graph, NodeId, StorageId};

use crate::liveness::writes_whole_span;

/// Why one node has to come after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hazard {
    /// The later node reads what the earlier one wrote.
    ReadAfterWrite,
    /// The later node overwrites what the earlier one read.
    WriteAfterRead,
    /// The later node overwrites what the earlier one wrote.
    WriteAfterWrite,
}

/// A node that has to come after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The earlier node.
    pub before: NodeId,
    /// The later node.
    pub after: NodeId,
    /// Why.
    pub hazard: Hazard,
    /// Where the bytes lie.
    pub storage: StorageId,
    /// The bytes that both access.
    pub bytes: Range<usize>,
}

struct Access {
    node: NodeId,
    writes: bool,
    bytes: Range<usize>,
}

/// The dependencies between `nodes`, which are in program order. What follows from others through
/// a node that overwrites all the bytes in question is left out.
pub fn dependencies(graph: &Graph, nodes: &[NodeId]) -> Vec<Dependency> {
    let mut earlier: HashMap<StorageId, Vec<Access>> = HashMap::new();
    let mut found = Vec::new();
    for &id in nodes {
        let Some(node) = graph.node(id) else { continue };
        let reads = node.inputs().map(|value| (value, false));
        let writes = node.writes().map(|value| (value, true));
        for (value, writes) in reads.chain(writes) {
            let bytes = value.byte_span();
            let accesses = earlier.entry(value.storage).or_default();
            for access in accesses.iter().filter(|access| access.node != id) {
                let hazard = match (access.writes, writes) {
                    (true, false) => Hazard::ReadAfterWrite,
                    (false, true) => Hazard::WriteAfterRead,
                    (true, true) => Hazard::WriteAfterWrite,
                    (false, false) => continue,
                };
                let common = access.bytes.start.max(bytes.start)..access.bytes.end.min(bytes.end);
                let dependency = Dependency {
                    before: access.node,
                    after: id,
                    hazard,
                    storage: value.storage,
                    bytes: common,
                };
                if !dependency.bytes.is_empty() && !is_known(&found, &dependency) {
                    found.push(dependency);
                }
            }
            if writes && writes_whole_span(node) {
                accesses.retain(|access| {
                    access.bytes.start < bytes.start || access.bytes.end > bytes.end
                });
            }
            accesses.push(Access {
                node: id,
                writes,
                bytes,
            });
        }
    }
    found
}

/// Whether a dependency was found already, through another operand of the same node.
fn is_known(found: &[Dependency], dependency: &Dependency) -> bool {
    found
        .iter()
        .rev()
        .take_while(|known| known.after == dependency.after)
        .any(|known| known == dependency)
}
