//! Alias classes: the storages that must be on one device at the same time, and the devices that
//! support the nodes that write them.
//!
//! A node that writes several storages (its output, and states that it updates) needs all of them
//! on its device. So they belong to one class, and the class has one owner at a time. The writers
//! of a class, in program order, are cut into as few units as possible, so that some device
//! supports all nodes of a unit. A class with one unit has one owner for the whole run; each
//! further unit makes a new version of the class's storages.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::{Backend, Reason, Support};
use kovar_core::{Graph, NodeId, NodeRef, StorageId};

use super::error::{PlaceError, Refusal, Refusals};
use super::inputs::Inputs;
use super::liveness::Liveness;
use crate::device::{DeviceSet, Devices};

/// Consecutive writers of one class that one device runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Which class.
    pub class: usize,
    /// The positions of the writers in [`Liveness::nodes`], in order.
    pub positions: Vec<usize>,
    /// The devices that support all of them; never empty.
    pub devices: DeviceSet,
}

impl Unit {
    /// The nodes, in program order.
    pub(crate) fn nodes<'g>(
        &'g self,
        graph: &'g Graph,
        liveness: &'g Liveness,
    ) -> impl Iterator<Item = (NodeId, NodeRef<'g>)> {
        let ids = self.positions.iter();
        let ids = ids.filter_map(|&position| liveness.nodes().get(position));
        ids.filter_map(|&id| Some((id, graph.node(id)?)))
    }

    /// The first node that a device does not support, and why.
    pub(crate) fn unsupported<'g>(
        &'g self,
        graph: &'g Graph,
        liveness: &'g Liveness,
        device: &dyn Backend,
    ) -> Option<(NodeId, NodeRef<'g>, Reason)> {
        let mut nodes = self.nodes(graph, liveness);
        nodes.find_map(|(id, node)| match device.supports(node) {
            Support::Yes => None,
            Support::No(reason) => Some((id, node, reason)),
        })
    }
}

/// The alias classes of a graph and their units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// By storage; a storage that no needed node writes is a class of its own.
    of_storage: Vec<usize>,
    units: Vec<Unit>,
    /// By position.
    unit_at: Vec<usize>,
}

impl Classes {
    /// The class of a storage; `None` for an id of another graph.
    pub fn of(&self, storage: StorageId) -> Option<usize> {
        self.of_storage.get(storage.index()).copied()
    }

    /// The units, in the order of their first writers.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The index of the unit of the node at a position.
    pub fn unit_at(&self, position: usize) -> usize {
        self.unit_at[position]
    }

    /// One line for each unit with the storages of its class, its nodes by position, and the
    /// devices that support them all.
    pub fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
        let mut text = format!("units: {}\n", self.units.len());
        for (i, unit) in self.units.iter().enumerate() {
            let storages = graph.storages().iter().zip(&self.of_storage);
            let members = storages.filter(|(_, class)| **class == unit.class);
            let members: Vec<&str> = members.map(|(storage, _)| storage.name.as_str()).collect();
            let able: Vec<&str> = unit.devices.iter().map(|id| devices.name(id)).collect();
            let _ = writeln!(
                text,
                "  {i}: {} by {:?} on {}",
                members.join(", "),
                unit.positions,
                able.join(" or ")
            );
        }
        text
    }
}

/// Finds the classes and units of the needed nodes.
///
/// # Errors
/// [`PlaceError::Unsupported`] for the first needed node that no device supports, with the
/// reasons of all devices.
pub(crate) fn classify(inputs: Inputs<'_>, liveness: &Liveness) -> Result<Classes, PlaceError> {
    let graph = inputs.graph;
    let mut parents: Vec<usize> = (0..graph.storages().len()).collect();
    for node in graph.nodes_of(liveness.nodes()) {
        let output = root(&mut parents, node.output().storage.index());
        for updated in node.updates() {
            let updated = root(&mut parents, updated.storage.index());
            parents[updated] = output;
        }
    }
    let of_storage: Vec<usize> = (0..parents.len()).map(|i| root(&mut parents, i)).collect();
    let mut units: Vec<Unit> = Vec::new();
    let mut unit_at = Vec::with_capacity(liveness.nodes().len());
    // By class, its last unit.
    let mut open: Vec<Option<usize>> = vec![None; of_storage.len()];
    for (position, id, node) in liveness.in_order(graph) {
        let (supporting, refusals) = supporting(inputs.devices, node);
        if supporting.is_empty() {
            return Err(PlaceError::Unsupported {
                op: node.op().name(),
                node: id.index(),
                result: node.storage_of(node.output()).name.clone(),
                refusals: Refusals(refusals),
            });
        }
        let class = of_storage[node.output().storage.index()];
        let common = |at: usize| units[at].devices.and(supporting);
        let at = match open[class].filter(|&at| !common(at).is_empty()) {
            Some(at) => {
                units[at].devices = common(at);
                units[at].positions.push(position);
                at
            }
            None => {
                units.push(Unit {
                    class,
                    positions: vec![position],
                    devices: supporting,
                });
                units.len() - 1
            }
        };
        open[class] = Some(at);
        unit_at.push(at);
    }
    Ok(Classes {
        of_storage,
        units,
        unit_at,
    })
}

/// The representative of a class, with the path to it halved.
fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

/// The devices that support a node, and the others with their reasons.
pub(crate) fn supporting(
    devices: &[Arc<dyn Backend>],
    node: NodeRef<'_>,
) -> (DeviceSet, Vec<Refusal>) {
    let mut supporting = DeviceSet::default();
    let mut refusals = Vec::new();
    for (device, backend) in devices.numbered() {
        match backend.supports(node) {
            Support::Yes => supporting.insert(device),
            Support::No(reason) => refusals.push(Refusal {
                device: backend.info().id.clone(),
                reason,
            }),
        }
    }
    (supporting, refusals)
}
