//! Preferences between kinds of devices.

use std::sync::Arc;

use kovar_core::backend::{Backend, DeviceKind};
use kovar_core::ops::Op;
use kovar_core::{Graph, NodeRef};

use crate::alias::Unit;
use crate::device::{DeviceId, DeviceSet};
use crate::liveness::Liveness;
use crate::placement::Rules;

/// Which kind of device is to do the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Favour {
    /// Whichever takes less time.
    #[default]
    Time,
    /// The CPU, wherever it can.
    Cpu,
    /// Other devices than the CPU, wherever they can.
    Gpu,
}

/// What is too small to leave the CPU, however the estimates are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// A product, convolution or attention of fewer floating-point operations.
    pub min_product_flops: u64,
    /// Any other operation with a result of fewer elements.
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

/// The devices of the favoured kind that support a unit; all that do if none is of that kind.
pub(crate) fn favoured(
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
    let on_cpu = match rules.favour {
        _ if small => true,
        Favour::Time => return set,
        Favour::Cpu => true,
        Favour::Gpu => false,
    };
    let mut kind = DeviceSet::default();
    for (device, backend) in DeviceId::all(devices.len()).zip(devices) {
        if (backend.info().kind == DeviceKind::Cpu) == on_cpu {
            kind.insert(device);
        }
    }
    let favoured = set.and(kind);
    if favoured.is_empty() { set } else { favoured }
}
