//! Which of the user's pins decide the device of a unit.

use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{Backend, Reason, Support};
use kovar_core::{Graph, NodeRef, Storage, StorageKind};

use super::classes::Unit;
use super::homes::{Homes, Pin};
use super::liveness::Liveness;
use crate::device::DeviceId;

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

/// A pin that applies to a node of a unit.
struct PinRequest<'g> {
    pin: &'g Pin,
    storage: &'g Storage,
    op: &'static str,
    node: usize,
    output: &'g Storage,
}

impl<'g> PinRequest<'g> {
    fn of(homes: &'g Homes, index: usize, node: NodeRef<'g>, storage: &'g Storage) -> Option<Self> {
        Some(Self {
            pin: homes.pin_of(storage)?,
            storage,
            op: node.op().name(),
            node: index,
            output: node.storage_of(node.output()),
        })
    }
}

/// The pins that apply to a unit's nodes: those of the storages that it writes, then those of the
/// weights that it reads.
fn requests<'g>(
    graph: &'g Graph,
    liveness: &'g Liveness,
    homes: &'g Homes,
    unit: &'g Unit,
) -> Vec<PinRequest<'g>> {
    let mut requests = Vec::new();
    if !homes.has_pins() {
        return requests;
    }
    for (id, node) in unit.nodes(graph, liveness) {
        let written = node.writes().map(|value| node.storage_of(value));
        requests
            .extend(written.filter_map(|storage| PinRequest::of(homes, id.index(), node, storage)));
    }
    for (id, node) in unit.nodes(graph, liveness) {
        let read = node.inputs().map(|value| node.storage_of(value));
        let weights = read.filter(|storage| storage.kind == StorageKind::Weight);
        requests
            .extend(weights.filter_map(|storage| PinRequest::of(homes, id.index(), node, storage)));
    }
    requests
}

/// The pin that decides the device of a unit.
pub(crate) fn granted<'g>(
    graph: &'g Graph,
    liveness: &'g Liveness,
    homes: &'g Homes,
    unit: &'g Unit,
) -> Option<&'g Pin> {
    let mut pins = requests(graph, liveness, homes, unit)
        .into_iter()
        .map(|request| request.pin);
    pins.find(|pin| unit.devices.contains(pin.device))
}

/// The device to which a unit is pinned, if it supports the unit. Pins that cannot be followed are
/// added to `rejected`. The pin of a state is never rejected: the state is at its home, whichever
/// device writes it.
pub(crate) fn pinned(
    graph: &Graph,
    liveness: &Liveness,
    devices: &[Arc<dyn Backend>],
    homes: &Homes,
    unit: &Unit,
    rejected: &mut Vec<RejectedPin>,
) -> Option<DeviceId> {
    let requests = requests(graph, liveness, homes, unit);
    let mut wanted = requests.iter().map(|request| request.pin.device);
    let granted = wanted.find(|&device| unit.devices.contains(device));
    for request in &requests {
        let known = rejected
            .iter()
            .any(|other| other.storage == request.storage.name);
        if Some(request.pin.device) == granted
            || request.storage.kind == StorageKind::State
            || known
        {
            continue;
        }
        let Some(wanted) = devices.get(request.pin.device.index()) else {
            continue;
        };
        let mut nodes = unit.nodes(graph, liveness);
        let refused = nodes.find_map(|(id, node)| match wanted.supports(node) {
            Support::Yes => None,
            Support::No(reason) => Some((id.index(), node.op().name(), reason)),
        });
        let (node, op, cause) = match refused {
            Some((node, op, reason)) => (node, op, PinConflict::Unsupported(reason)),
            None => {
                let owner = granted.and_then(|device| devices.get(device.index()));
                let owner = owner.map_or_else(String::new, |owner| owner.info().id.clone());
                let storage = request.output.name.clone();
                (
                    request.node,
                    request.op,
                    PinConflict::Owner { storage, owner },
                )
            }
        };
        rejected.push(RejectedPin {
            pattern: request.pin.pattern.to_string(),
            storage: request.storage.name.clone(),
            wanted: wanted.info().id.clone(),
            op,
            node,
            cause,
        });
    }
    granted
}
