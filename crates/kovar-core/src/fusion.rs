//! Which consecutive nodes may run as one kernel: the table of fusions, and the groups of nodes
//! that a backend is asked to fuse.
//!
//! In a group, every node but the first reads the result of the node before it, its *link*. A
//! result that no node outside the group needs is not kept: it is never written, and its storage
//! may have no memory. All other operands are read from memory as it was before the group.

use std::ops::Range;

use crate::graph::{Graph, NodeId, NodeRef, Value};
use crate::ops::OpClass;

/// A row of the table: a pattern of consecutive nodes.
#[derive(Debug, PartialEq, Eq)]
pub struct Fusion {
    name: &'static str,
    classes: &'static [OpClass],
}

/// The table. The first row that fits is taken, so of two rows with a common beginning the longer
/// one comes first.
static FUSIONS: &[Fusion] = {
    use OpClass::{Add, Elementwise, Mul, Norm, Rope, SetRows, Unary};
    const fn row(name: &'static str, classes: &'static [OpClass]) -> Fusion {
        Fusion { name, classes }
    }
    &[
        // What a block adds to the hidden state, the norm before the next block, and the
        // modulation by a condition in diffusion transformers.
        row(
            "gate+residual+norm+scale+shift",
            &[Mul, Add, Norm, Mul, Add],
        ),
        row("residual+norm+scale+shift", &[Add, Norm, Mul, Add]),
        row("gate+residual+norm", &[Mul, Add, Norm]),
        row("residual+norm", &[Add, Norm]),
        row("norm+scale+shift", &[Norm, Mul, Add]),
        row("norm+scale", &[Norm, Mul]),
        row("norm+activation", &[Norm, Unary]),
        row("elementwise", &[Elementwise; 4]),
        row("elementwise", &[Elementwise; 3]),
        row("bias+activation", &[Add, Unary]),
        row("gate*up", &[Unary, Mul]),
        row("elementwise", &[Elementwise; 2]),
        row("rope+cache write", &[Rope, SetRows]),
    ]
};

impl Fusion {
    /// All rows of the table, in the order in which they are tried.
    pub fn all() -> &'static [Fusion] {
        FUSIONS
    }

    /// The name, as plans show it; several patterns may share one.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.classes.len()
    }

    /// Whether nodes have the pattern's operations, each linked to the one before.
    pub fn fits(&self, nodes: &[NodeRef<'_>]) -> bool {
        let mut of_class = self.classes.iter().zip(nodes);
        nodes.len() == self.n_nodes()
            && of_class.all(|(&class, node)| node.op().is(class))
            && nodes
                .windows(2)
                .all(|pair| link(pair[0], pair[1]).is_some())
    }
}

/// The operand of `next` that is the result of `node`, if one kernel can run both and keep it in
/// registers: it is the same window and, for an elementwise operation, has the dims of its result.
pub fn link(node: NodeRef<'_>, next: NodeRef<'_>) -> Option<usize> {
    let result = node.output();
    let at = next.inputs().position(|value| value == result)?;
    let fits = if next.op().is(OpClass::Elementwise) {
        result.dims() == next.output().dims()
    } else {
        at == 0
    };
    fits.then_some(at)
}

/// Consecutive nodes of a segment that one kernel runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The row of the table.
    pub fusion: &'static Fusion,
    /// The positions in the segment's nodes.
    pub nodes: Range<usize>,
    /// By node, whether its result is written to memory. The last one's is.
    pub kept: Vec<bool>,
}

/// The nodes of a [`Group`].
#[derive(Clone, Copy, Debug)]
pub struct FusedNodes<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// The row of the table.
    pub fusion: &'static Fusion,
    /// The nodes, in program order.
    pub nodes: &'g [NodeId],
    /// By node, whether its result is written to memory. The last one's is.
    pub kept: &'g [bool],
}

impl<'g> FusedNodes<'g> {
    /// The nodes, in program order.
    pub fn iter(&self) -> impl Iterator<Item = NodeRef<'g>> + use<'g> {
        let graph = self.graph;
        self.nodes.iter().filter_map(move |&id| graph.node(id))
    }

    /// The nodes, each with the operand that is its link (the first has none) and whether its
    /// result is kept.
    pub fn linked(&self) -> impl Iterator<Item = (NodeRef<'g>, Option<usize>, bool)> + use<'g> {
        let before = std::iter::once(None).chain(self.iter().map(Some));
        let each = self.iter().zip(before).zip(self.kept);
        each.map(|((node, before), &kept)| {
            (node, before.and_then(|before| link(before, node)), kept)
        })
    }

    /// The values that are read from memory: all operands but the links.
    pub fn reads(&self) -> impl Iterator<Item = &'g Value> + use<'g> {
        self.linked().flat_map(|(node, link, _)| {
            let inputs = node.inputs().enumerate();
            inputs
                .filter(move |&(i, _)| Some(i) != link)
                .map(|(_, value)| value)
        })
    }

    /// The values that are written to memory.
    pub fn writes(&self) -> impl Iterator<Item = &'g Value> + use<'g> {
        let kept = self.linked().filter(|&(_, _, kept)| kept);
        kept.map(|(node, ..)| node.output())
    }
}
