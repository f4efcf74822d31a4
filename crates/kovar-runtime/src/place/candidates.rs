//! The devices among which the time decides: those that support a unit, narrowed by the user's
//! pins, preferences and budgets.

use kovar_core::backend::DeviceKind;
use kovar_core::{NodeId, NodeRef, Storage, StorageKind};

use super::classes::Unit;
use super::error::{PinConflict, RejectedPin};
use super::homes::Pin;
use super::inputs::Inputs;
use super::liveness::Liveness;
use super::policy::{Preference, Thresholds};
use crate::device::{DeviceId, DeviceSet, Devices};

/// What leaves fewer devices to a unit than support it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    Pin(Pin),
    Preference,
    Thresholds,
}

/// The devices that a unit may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    /// Those that pins, preferences and thresholds leave; never empty.
    pub(crate) wanted: DeviceSet,
    pub(crate) narrowed_by: Option<Narrowing>,
    /// Those among which the time decides: the wanted ones, or others if those would exceed their
    /// budgets.
    pub(crate) devices: DeviceSet,
}

/// The devices that a unit may run on. Pins that cannot be followed are added to `rejected`.
pub(super) fn candidates<'g>(
    inputs: Inputs<'g>,
    liveness: &'g Liveness,
    unit: &'g Unit,
    rejected: &mut Vec<RejectedPin>,
) -> Candidates {
    match pin_of_unit(inputs, liveness, unit, rejected) {
        Some(pin) => Candidates {
            wanted: DeviceSet::only(pin.device),
            narrowed_by: Some(Narrowing::Pin(pin.clone())),
            devices: DeviceSet::only(pin.device),
        },
        None => {
            let (wanted, narrowed_by) = preferred(inputs, liveness, unit);
            Candidates {
                wanted,
                narrowed_by,
                devices: before_cutoffs(inputs, unit, wanted),
            }
        }
    }
}

/// The devices of the preferred kind that support a unit, or all that do if none is of that kind.
fn preferred(
    inputs: Inputs<'_>,
    liveness: &Liveness,
    unit: &Unit,
) -> (DeviceSet, Option<Narrowing>) {
    let thresholds = inputs.policy.thresholds;
    let mut nodes = unit.nodes(inputs.graph, liveness);
    let is_small =
        thresholds != Thresholds::default() && nodes.all(|(_, node)| thresholds.is_small(node));
    let (on_cpu, narrowing) = match inputs.policy.preference {
        _ if is_small => (Some(true), Narrowing::Thresholds),
        Preference::Time => (None, Narrowing::Preference),
        Preference::Cpu => (Some(true), Narrowing::Preference),
        Preference::Gpu => (Some(false), Narrowing::Preference),
    };
    let mut devices = DeviceSet::default();
    for device in unit.devices.iter() {
        let is_cpu = inputs.devices.at(device).info().kind == DeviceKind::Cpu;
        if on_cpu.is_none_or(|on_cpu| on_cpu == is_cpu) {
            devices.insert(device);
        }
    }
    let is_narrowed = !devices.is_empty() && devices != unit.devices;
    if is_narrowed {
        (devices, Some(narrowing))
    } else {
        (unit.devices, None)
    }
}

/// The devices of `preferred`, else those that support the unit, whose cutoffs come after the
/// unit's first node; `preferred` if there are none.
fn before_cutoffs(inputs: Inputs<'_>, unit: &Unit, preferred: DeviceSet) -> DeviceSet {
    let first = unit.positions.first().copied().unwrap_or_default();
    let mut avoided = DeviceSet::default();
    for (device, &cutoff) in DeviceId::all(inputs.cutoffs.len()).zip(inputs.cutoffs) {
        if cutoff <= first {
            avoided.insert(device);
        }
    }
    let kept = [preferred, unit.devices].map(|set| set.without(avoided));
    let mut kept = kept.into_iter().filter(|set| !set.is_empty());
    kept.next().unwrap_or(preferred)
}

/// A pin that applies to a node of a unit, by a storage of the node.
struct PinRequest<'g> {
    pin: &'g Pin,
    storage: &'g Storage,
    id: NodeId,
    node: NodeRef<'g>,
}

/// The pins that apply to a unit's nodes: those of the storages that it writes, then those of the
/// weights that it reads.
fn requests<'g>(inputs: Inputs<'g>, liveness: &'g Liveness, unit: &'g Unit) -> Vec<PinRequest<'g>> {
    if !inputs.homes.has_pins() {
        return Vec::new();
    }
    let nodes = || unit.nodes(inputs.graph, liveness);
    let written = nodes().flat_map(|(id, node)| node.writes().map(move |value| (id, node, value)));
    let read =
        nodes().flat_map(|(id, node)| node.weights().map(move |(_, value)| (id, node, value)));
    let requests = written.chain(read).filter_map(|(id, node, value)| {
        let storage = node.storage_of(value);
        let pin = inputs.homes.pin_of(storage)?;
        Some(PinRequest {
            pin,
            storage,
            id,
            node,
        })
    });
    requests.collect()
}

/// The pin that decides the device of a unit: the first one whose device supports the unit. Pins
/// that cannot be followed are added to `rejected`. The pin of a state is never rejected: the state
/// is at its home, whichever device writes it.
fn pin_of_unit<'g>(
    inputs: Inputs<'g>,
    liveness: &'g Liveness,
    unit: &'g Unit,
    rejected: &mut Vec<RejectedPin>,
) -> Option<&'g Pin> {
    let requests = requests(inputs, liveness, unit);
    let mut pins = requests.iter().map(|request| request.pin);
    let granted = pins.find(|pin| unit.devices.contains(pin.device));
    for request in requests {
        let (pin, storage) = (request.pin, request.storage);
        let is_followed = granted.is_some_and(|granted| granted.device == pin.device);
        let is_known = rejected.iter().any(|other| other.storage == storage.name);
        if is_followed || is_known || storage.kind == StorageKind::State {
            continue;
        }
        let wanted = inputs.devices.at(pin.device);
        let unsupported = unit.unsupported(inputs.graph, liveness, wanted);
        let unsupported =
            unsupported.map(|(id, node, reason)| (id, node, PinConflict::Unsupported(reason)));
        let by_other_pin = || {
            let (node, granted) = (request.node, granted?);
            let conflict = PinConflict::OtherPin {
                storage: node.storage_of(node.output()).name.clone(),
                pattern: granted.pattern.to_string(),
                device: inputs.devices.name(granted.device).to_owned(),
            };
            Some((request.id, node, conflict))
        };
        if let Some((id, node, cause)) = unsupported.or_else(by_other_pin) {
            rejected.push(RejectedPin {
                pattern: pin.pattern.to_string(),
                storage: storage.name.clone(),
                wanted: wanted.info().id.clone(),
                op: node.op().name(),
                node: id.index(),
                cause,
            });
        }
    }
    granted
}
