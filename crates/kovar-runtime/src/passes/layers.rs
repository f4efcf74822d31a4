//! Layer placement: the homes of weights and states under the devices' budgets.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, WeightUse};
use kovar_core::{Graph, StorageId, StorageKind};

use super::Passes;
use crate::device::{DeviceId, DeviceSet, Devices};
use crate::place::classes::supporting;
use crate::place::{Homes, Inputs, PlaceError, Policy, layer_of};
use crate::schedule::memory::{grow_arena, staging_bytes};

/// The most rounds of choosing homes. Reserved bytes only grow; two rounds nearly always suffice.
const ROUNDS: usize = 8;

/// The weights and states that share a home.
struct Layer<'g> {
    /// `None` for a tensor outside layers.
    name: Option<&'g str>,
    /// The devices that support the nodes that read them.
    readers: DeviceSet,
    members: Vec<StorageId>,
}

/// What a device needs besides the weights and states that have their homes there.
#[derive(Clone, Debug, Default)]
struct Reserved {
    /// The buffers of the arena that serves all graphs.
    arena: Vec<usize>,
    /// Weights that are read there and have their homes elsewhere, by name, in bytes.
    replicas: HashMap<String, usize>,
}

impl Reserved {
    fn bytes(&self) -> u64 {
        let sizes = self.arena.iter().chain(self.replicas.values());
        sizes.map(|&size| size as u64).sum()
    }
}

/// Chooses homes for the weights and states of `graphs` if a device has a budget.
///
/// Layers are placed in the order of their use. Each layer goes as a whole to the first device that
/// has room for it besides the activation memory of all graphs and the weights that several devices
/// read. When a device is full, the layers that follow go to the next one. Tensors of a layer that
/// some device cannot read go together to the first device that can read them and has room. Pinned
/// tensors go where they are pinned, and count there. Layers that fit nowhere stay on the default
/// device. The first graph names the weights and states. Streamed weights take activation memory
/// only.
///
/// # Errors
/// See [`PlaceError`].
pub fn place_layers(
    graphs: &[&Graph],
    devices: &[Arc<dyn Backend>],
    homes: Homes,
    policy: &Policy,
) -> Result<Homes, PlaceError> {
    homes.check(devices.len())?;
    let Some(first) = graphs.first().filter(|_| homes.has_budgets()) else {
        return Ok(homes);
    };
    let mut reserved = vec![Reserved::default(); devices.len()];
    let mut chosen = homes.clone();
    // The homes decide how much activation memory each device takes, and with it which homes fit.
    for _ in 0..ROUNDS {
        chosen = fill(first, devices, homes.clone(), &reserved);
        let mut enough = true;
        for graph in graphs {
            let passes = Passes::run(Inputs {
                graph,
                devices,
                homes: &chosen,
                policy,
                cutoffs: &[],
            })?;
            for (reserved, arena) in reserved.iter_mut().zip(passes.memory.arenas()) {
                let before = reserved.arena.clone();
                grow_arena(&mut reserved.arena, &arena.chunks);
                enough &= before == reserved.arena;
            }
            for weight in passes.weight_uses(graph) {
                let (device, storage) = (weight.device, weight.storage);
                if chosen.of(storage) != device {
                    let bytes = devices.at(device).prepared_bytes(storage, &weight.uses);
                    let replicas = &mut reserved[device.index()].replicas;
                    let known = replicas.insert(storage.name.clone(), bytes);
                    enough &= known.is_some();
                }
            }
        }
        if enough {
            break;
        }
    }
    Ok(chosen)
}

/// Chooses homes that fit besides the reserved bytes of each device.
fn fill(
    graph: &Graph,
    devices: &[Arc<dyn Backend>],
    mut homes: Homes,
    reserved: &[Reserved],
) -> Homes {
    let mut room: Vec<Option<u64>> = DeviceId::all(devices.len())
        .map(|device| {
            let taken = reserved[device.index()].bytes();
            let budget = homes.budget_of(device)?.saturating_sub(taken);
            Some(budget.saturating_sub(staging_bytes(devices.at(device))))
        })
        .collect();
    let (uses, rules) = (WeightUse::all(graph), homes.clone());
    let bytes_on = |id: StorageId, backend: &dyn Backend| -> u64 {
        let uses = uses.get(&id).map_or(&[][..], Vec::as_slice);
        let storage = &graph.storages()[id.index()];
        match storage.kind {
            StorageKind::Weight if rules.is_streamed(storage) => 0,
            StorageKind::Weight => backend.prepared_bytes(storage, uses) as u64,
            _ => storage.bytes.max(1) as u64,
        }
    };
    let (all, readers) = (all_devices(devices.len()), readers(graph, devices));
    let mut layers: Vec<Layer<'_>> = Vec::new();
    for id in in_order_of_use(graph) {
        let storage = &graph.storages()[id.index()];
        if let Some(pin) = homes.pin_of(storage) {
            if let Some(room) = &mut room[pin.device.index()] {
                *room = room.saturating_sub(bytes_on(id, devices.at(pin.device)));
            }
            continue;
        }
        let (name, readers) = (layer_of(&storage.name), readers[id.index()]);
        let mut known = layers.iter_mut();
        let same = known.find(|layer| (layer.name, layer.readers) == (name, readers));
        match same.filter(|_| name.is_some()) {
            Some(layer) => layer.members.push(id),
            None => layers.push(Layer {
                name,
                readers,
                members: vec![id],
            }),
        }
    }
    let mut first = 0;
    for layer in layers {
        let size = |device: DeviceId| -> u64 {
            let sizes = layer.members.iter();
            sizes.map(|&id| bytes_on(id, devices.at(device))).sum()
        };
        let in_order = layer.name.is_some() && layer.readers == all;
        let from = if in_order { first } else { 0 };
        let readers = layer.readers.iter();
        let mut candidates = readers.filter(|device| device.index() >= from);
        let fits =
            |device: &DeviceId| room[device.index()].is_none_or(|room| size(*device) <= room);
        let Some(device) = candidates.find(fits) else {
            continue;
        };
        if in_order {
            first = device.index();
        }
        if let Some(room) = &mut room[device.index()] {
            *room -= size(device);
        }
        for id in layer.members {
            let storage = &graph.storages()[id.index()];
            homes.choose(storage.kind, &storage.name, device);
        }
    }
    homes
}

fn all_devices(n: usize) -> DeviceSet {
    let mut all = DeviceSet::default();
    DeviceId::all(n).for_each(|device| all.insert(device));
    all
}

/// By storage, the devices that support all nodes that read it; all devices if there are none.
fn readers(graph: &Graph, devices: &[Arc<dyn Backend>]) -> Vec<DeviceSet> {
    let all = all_devices(devices.len());
    let mut readers = vec![all; graph.storages().len()];
    for node in graph.node_refs() {
        let (supporting, _) = supporting(devices, node);
        for input in node.inputs() {
            let readers = &mut readers[input.storage.index()];
            *readers = readers.and(supporting);
        }
    }
    let or_all = |set: DeviceSet| if set.is_empty() { all } else { set };
    readers.into_iter().map(or_all).collect()
}

/// The weights and states that nodes access, by first access.
fn in_order_of_use(graph: &Graph) -> Vec<StorageId> {
    let mut seen = vec![false; graph.storages().len()];
    let accessed = graph.node_refs().flat_map(|node| {
        let values = node.inputs().chain(node.writes());
        values.map(move |value| (value.storage, node.storage_of(value).kind))
    });
    let kept =
        accessed.filter(|(_, kind)| matches!(kind, StorageKind::Weight | StorageKind::State));
    let mut order = Vec::new();
    for (id, _) in kept {
        if !std::mem::replace(&mut seen[id.index()], true) {
            order.push(id);
        }
    }
    order
}
