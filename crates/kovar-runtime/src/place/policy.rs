//! How a graph is compiled.

use std::num::NonZeroUsize;

use kovar_core::{NodeId, NodeRef};

use crate::rates::Rates;

/// Which kind of device is preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preference {
    /// The kind that takes less time.
    #[default]
    Time,
    /// The CPU, wherever it supports the operation.
    Cpu,
    /// Devices other than the CPU, wherever they support the operation.
    Gpu,
}

/// Sizes below which an operation stays on the CPU, whatever the estimates say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// For products, convolutions and attention: floating-point operations.
    pub min_product_flops: u64,
    /// For all other operations: elements of the result.
    pub min_elements: usize,
}

impl Thresholds {
    pub(super) fn is_small(&self, node: NodeRef<'_>) -> bool {
        if node.op().is_product() {
            node.cost().flops < self.min_product_flops
        } else {
            node.output().layout.elements() < self.min_elements
        }
    }
}

/// How a graph is compiled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Policy {
    /// Whether storages that are not needed at the same time may share memory.
    pub reuse_memory: bool,
    /// Whether the checker verifies the plan; by default in builds with debug assertions.
    pub check_plan: bool,
    /// Whether a pin that cannot be followed is an error rather than a warning.
    pub strict: bool,
    /// How fast the devices and the links to them are.
    pub rates: Rates,
    /// Which kind of device is preferred where no pin decides.
    pub preference: Preference,
    /// What is too small to leave the CPU.
    pub thresholds: Thresholds,
    /// Whether devices may run several nodes as one kernel where they have one.
    pub fuse: bool,
    /// The most nodes in a segment; with 1, an observed run shows the result of each node.
    pub max_segment_nodes: Option<NonZeroUsize>,
    /// Nodes that begin a segment, in program order. A run can be cancelled between segments.
    pub segment_starts: Vec<NodeId>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            reuse_memory: true,
            check_plan: cfg!(debug_assertions),
            strict: false,
            rates: Rates::default(),
            preference: Preference::default(),
            thresholds: Thresholds::default(),
            fuse: true,
            max_segment_nodes: None,
            segment_starts: Vec::new(),
        }
    }
}
