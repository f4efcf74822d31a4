//! Which kind of device is preferred.

use kovar_core::NodeRef;
use kovar_core::backend::DeviceKind;

use super::classes::Unit;
use super::inputs::Inputs;
use super::liveness::Liveness;
use crate::device::{DeviceSet, Devices};

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
        if node.op().is_product() {
            node.cost().flops < self.min_product_flops
        } else {
            node.output().layout.elements() < self.min_elements
        }
    }
}

/// The devices of the preferred kind that support a unit, or all that do if none is of that kind.
pub(super) fn preferred(inputs: Inputs<'_>, liveness: &Liveness, unit: &Unit) -> DeviceSet {
    let thresholds = inputs.policy.thresholds;
    let mut nodes = unit.nodes(inputs.graph, liveness);
    let is_small =
        thresholds != Thresholds::default() && nodes.all(|(_, node)| thresholds.is_small(node));
    let on_cpu = match inputs.policy.preference {
        _ if is_small => true,
        Preference::Time => return unit.devices,
        Preference::Cpu => true,
        Preference::Gpu => false,
    };
    let mut preferred = DeviceSet::default();
    for (device, backend) in inputs.devices.numbered() {
        if unit.devices.contains(device) && (backend.info().kind == DeviceKind::Cpu) == on_cpu {
            preferred.insert(device);
        }
    }
    if preferred.is_empty() {
        return unit.devices;
    }
    preferred
}
