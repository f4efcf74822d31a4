//! Which kind of device is preferred.

use std::sync::Arc;

use kovar_core::backend::{Backend, DeviceKind};
use kovar_core::ops::Op;
use kovar_core::{Graph, NodeRef};

use super::classes::Unit;
use super::liveness::Liveness;
use super::placement::Rules;
use crate::device::{DeviceId, DeviceSet};

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
    fn is_small(&self, node: NodeRef<'_>) -> bool {
        match node.op() {
            Op::Matmul(_)
            | Op::MatmulId(_)
            | Op::MatmulI8(_)
            | Op::Gemm(_)
            | Op::Conv2d(_)
            | Op::ConvTranspose2d(_)
            | Op::Attention(_) => node.cost().flops < self.min_product_flops,
            _ => node.output().layout.elements() < self.min_elements,
        }
    }
}

/// The devices of the preferred kind that support a unit, or all that do if none is of that kind.
pub(crate) fn preferred(
    graph: &Graph,
    liveness: &Liveness,
    devices: &[Arc<dyn Backend>],
    unit: &Unit,
    rules: &Rules<'_>,
) -> DeviceSet {
    let (set, thresholds) = (unit.devices, rules.thresholds);
    let mut nodes = unit.nodes(graph, liveness);
    let small =
        thresholds != Thresholds::default() && nodes.all(|(_, node)| thresholds.is_small(node));
    let on_cpu = match rules.preference {
        _ if small => true,
        Preference::Time => return set,
        Preference::Cpu => true,
        Preference::Gpu => false,
    };
    let mut kind = DeviceSet::default();
    for (device, backend) in DeviceId::all(devices.len()).zip(devices) {
        if (backend.info().kind == DeviceKind::Cpu) == on_cpu {
            kind.insert(device);
        }
    }
    let preferred = set.and(kind);
    if preferred.is_empty() { set } else { preferred }
}
