//! Which of the user's pins a unit follows.

use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{Backend, Reason, Support};
use kovar_core::{Graph, NodeRef, Storage, StorageKind};

use crate::alias::Unit;
use crate::device::DeviceId;
use crate::homes::{Homes, Pin};
use crate::liveness::Liveness;

/// A pin that could not be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{pattern}` pins `{storage}` to {wanted}, but {op} (node {node}) cannot be there: {cause}"
)]
pub struct LostPin {
    /// The pin's pattern.
    pub pattern: String,
    /// The name of the storage that it matches.
    pub storage: String,
    /// The id of the device that it asks for.
    pub wanted: String,
    /// The operation of a node that has to run elsewhere.
    pub op: &'static str,
    /// The node's index.
    pub node: usize,
    /// Why.
    pub cause: LostTo,
}

/// What kept a pin from being followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostTo {
    /// The device does not support the node.
    Unsupported(Reason),
    /// The node writes a storage that has its owner elsewhere.
    Owner {
        /// The storage's name.
        storage: String,
        /// The owner's id.
        owner: String,
    },
}

impl fmt::Display for LostTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LostTo::Unsupported(reason) => reason.fmt(f),
            LostTo::Owner { storage, owner } => {
                write!(f, "it writes `{storage}`, which {owner} owns")
            }
        }
    }
}

/// A pin that speaks for a node of a unit.
struct Wish<'g> {
    pin: &'g Pin,
    storage: &'g Storage,
    op: &'static str,
    node: usize,
    output: &'g Storage,
}

impl<'g> Wish<'g> {
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

/// The pins that speak for a unit's nodes: those of what it writes come before those of the
/// weights that it reads.
fn wishes<'g>(
    graph: &'g Graph,
    liveness: &'g Liveness,
    homes: &'g Homes,
    unit: &'g Unit,
) -> Vec<Wish<'g>> {
    let mut wishes = Vec::new();
    if !homes.has_pins() {
        return wishes;
    }
    for (id, node) in unit.nodes(graph, liveness) {
        let written = node.writes().map(|value| node.storage_of(value));
        wishes.extend(written.filter_map(|storage| Wish::of(homes, id.index(), node, storage)));
    }
    for (id, node) in unit.nodes(graph, liveness) {
        let read = node.inputs().map(|value| node.storage_of(value));
        let weights = read.filter(|storage| storage.kind == StorageKind::Weight);
        wishes.extend(weights.filter_map(|storage| Wish::of(homes, id.index(), node, storage)));
    }
    wishes
}

/// The pin that decides where a unit is.
pub(crate) fn granted<'g>(
    graph: &'g Graph,
    liveness: &'g Liveness,
    homes: &'g Homes,
    unit: &'g Unit,
) -> Option<&'g Pin> {
    let mut pins = wishes(graph, liveness, homes, unit)
        .into_iter()
        .map(|wish| wish.pin);
    pins.find(|pin| unit.devices.contains(pin.device))
}

/// The device where a unit's pins want it, if that is possible. A pinned state is at its home
/// whoever writes it, so its pin is a wish that is never lost.
pub(crate) fn pinned(
    graph: &Graph,
    liveness: &Liveness,
    devices: &[Arc<dyn Backend>],
    homes: &Homes,
    unit: &Unit,
    lost: &mut Vec<LostPin>,
) -> Option<DeviceId> {
    let wishes = wishes(graph, liveness, homes, unit);
    let mut wanted = wishes.iter().map(|wish| wish.pin.device);
    let granted = wanted.find(|&device| unit.devices.contains(device));
    for wish in &wishes {
        let known = lost.iter().any(|lost| lost.storage == wish.storage.name);
        if Some(wish.pin.device) == granted || wish.storage.kind == StorageKind::State || known {
            continue;
        }
        let Some(wanted) = devices.get(wish.pin.device.index()) else {
            continue;
        };
        let mut nodes = unit.nodes(graph, liveness);
        let refused = nodes.find_map(|(id, node)| match wanted.supports(node) {
            Support::Yes => None,
            Support::No(reason) => Some((id.index(), node.op().name(), reason)),
        });
        let (node, op, cause) = match refused {
            Some((node, op, reason)) => (node, op, LostTo::Unsupported(reason)),
            None => {
                let owner = granted.and_then(|device| devices.get(device.index()));
                let owner = owner.map_or_else(String::new, |owner| owner.info().id.clone());
                let storage = wish.output.name.clone();
                (wish.node, wish.op, LostTo::Owner { storage, owner })
            }
        };
        lost.push(LostPin {
            pattern: wish.pin.pattern.to_string(),
            storage: wish.storage.name.clone(),
            wanted: wanted.info().id.clone(),
            op,
            node,
            cause,
        });
    }
    granted
}
