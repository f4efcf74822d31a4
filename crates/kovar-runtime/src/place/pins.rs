//! Which of the user's pins decide the device of a unit.

use std::fmt;

use kovar_core::backend::Reason;
use kovar_core::{NodeId, NodeRef, Storage, StorageKind};

use super::classes::Unit;
use super::homes::Pin;
use super::inputs::Inputs;
use super::liveness::Liveness;
use crate::device::Devices;

/// A pin that could not be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{pattern}` pins `{storage}` to {wanted}, but {op} (node {node}) cannot run there: {cause}"
)]
pub struct RejectedPin {
    /// The pin's pattern.
    pub pattern: String,
    /// The name of the storage that it matches.
    pub storage: String,
    /// The id of the device that it names.
    pub wanted: String,
    /// The operation of a node that has to run elsewhere.
    pub op: &'static str,
    /// The node's index.
    pub node: usize,
    /// Why.
    pub cause: PinConflict,
}

/// Why a pin cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinConflict {
    /// The device does not support the node.
    Unsupported(Reason),
    /// The node writes a storage that another device owns.
    Owner {
        /// The storage's name.
        storage: String,
        /// The owner's id.
        owner: String,
    },
}

impl fmt::Display for PinConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinConflict::Unsupported(reason) => reason.fmt(f),
            PinConflict::Owner { storage, owner } => {
                write!(f, "it writes `{storage}`, which {owner} owns")
            }
        }
    }
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
pub(super) fn pin_of_unit<'g>(
    inputs: Inputs<'g>,
    liveness: &'g Liveness,
    unit: &'g Unit,
    rejected: &mut Vec<RejectedPin>,
) -> Option<&'g Pin> {
    let requests = requests(inputs, liveness, unit);
    let mut pins = requests.iter().map(|request| request.pin);
    let granted = pins.find(|pin| unit.devices.contains(pin.device));
    for PinRequest {
        pin,
        storage,
        id,
        node,
    } in requests
    {
        let is_followed = granted.is_some_and(|granted| granted.device == pin.device);
        let is_known = rejected.iter().any(|other| other.storage == storage.name);
        let wanted = inputs.devices.at(pin.device);
        let Some(wanted) =
            wanted.filter(|_| !is_followed && !is_known && storage.kind != StorageKind::State)
        else {
            continue;
        };
        let (id, node, cause) = match unit.unsupported(inputs.graph, liveness, wanted) {
            Some((id, node, reason)) => (id, node, PinConflict::Unsupported(reason)),
            None => {
                let owner = granted.map_or("", |granted| inputs.devices.name(granted.device));
                let conflict = PinConflict::Owner {
                    storage: node.storage_of(node.output()).name.clone(),
                    owner: owner.to_owned(),
                };
                (id, node, conflict)
            }
        };
        rejected.push(RejectedPin {
            pattern: pin.pattern.to_string(),
            storage: storage.name.clone(),
            wanted: wanted.info().id.clone(),
            op: node.op().name(),
            node: id.index(),
            cause,
        });
    }
    granted
}
