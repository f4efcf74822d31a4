//! The homes of weights and states under the devices' budgets.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, WeightUse};
use kovar_core::{Graph, StorageId, StorageKind};

use crate::arena::grow_sizes;
use crate::compile::{Policy, place_and_plan};
use crate::device::DeviceId;
use crate::error::CompileError;
use crate::forecast::staging;
use crate::homes::Homes;
use crate::weights::weight_uses;

/// The layer that a tensor belongs to: its name up to the first part that is a number, such as
/// `blk.3` of `blk.3.ffn_up.weight`; `None` for tensors outside layers.
pub fn layer_of(name: &str) -> Option<&str> {
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return name.get(..end);
        }
        end += 1;
    }
    None
}

/// Times that homes are chosen anew. What is reserved only grows, and nearly always suffices the second
/// time.
const ROUNDS: usize = 8;

/// The weights and states that share a home.
struct Group<'g> {
    layer: Option<&'g str>,
    members: Vec<StorageId>,
}

/// What a device needs beside the weights and states that have their homes there.
#[derive(Clone, Debug, Default)]
struct Reserved {
    /// The buffers of the arena that serves all graphs.
    arena: Vec<usize>,
    /// Weights that are read there all the same, by name, in bytes.
    replicas: HashMap<String, usize>,
}

impl Reserved {
    fn bytes(&self) -> u64 {
        let sizes = self.arena.iter().chain(self.replicas.values());
        sizes.map(|&size| size as u64).sum()
    }
}

/// Chooses homes for the weights and states of `graphs` where a device has a budget: layer by
/// layer in the order of their use, each layer whole on the first device that has room for it
/// beside the activation memory of all graphs and the weights that are read on several devices. When a device is full, the layers that follow go to
/// the next. Pinned tensors are where their pins want them and count there. What fits nowhere
/// stays with the default. The first graph names the weights and states; streamed weights take
/// activation memory only.
///
/// # Errors
/// Those of [`compile`](crate::compile()) that a graph alone can cause.
pub fn spread(
    graphs: &[&Graph],
    devices: &[Arc<dyn Backend>],
    homes: Homes,
    policy: &Policy,
) -> Result<Homes, CompileError> {
    let Some(first) = graphs.first().filter(|_| homes.has_budgets()) else {
        return Ok(homes);
    };
    let mut reserved = vec![Reserved::default(); devices.len()];
    let mut chosen = homes.clone();
    // What lies where decides how much activation memory each device takes, and the other way.
    for _ in 0..ROUNDS {
        chosen = fill(first, devices, homes.clone(), &reserved);
        let mut enough = true;
        for graph in graphs {
            let passes = place_and_plan(graph, devices, &chosen, policy, &[])?;
            for (reserved, arena) in reserved.iter_mut().zip(passes.memory.arenas()) {
                let before = reserved.arena.clone();
                grow_sizes(&mut reserved.arena, &arena.chunks);
                enough &= before == reserved.arena;
            }
            for weight in weight_uses(graph, &passes) {
                let (at, storage) = (weight.device.index(), weight.storage);
                let (Some(reserved), Some(backend)) = (reserved.get_mut(at), devices.get(at))
                else {
                    continue;
                };
                if chosen.of(storage) != weight.device {
                    let bytes = backend.prepared_bytes(storage, &weight.uses);
                    let known = reserved.replicas.insert(storage.name.clone(), bytes);
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

/// The homes that fit beside `reserved` bytes of each device.
fn fill(
    graph: &Graph,
    devices: &[Arc<dyn Backend>],
    mut homes: Homes,
    reserved: &[Reserved],
) -> Homes {
    let mut room: Vec<Option<u64>> = DeviceId::all(devices.len())
        .map(|device| {
            let taken = reserved.get(device.index()).map_or(0, Reserved::bytes);
            let budget = homes.budget_of(device)?.saturating_sub(taken);
            let backend = devices.get(device.index())?;
            Some(budget.saturating_sub(staging(backend.as_ref())))
        })
        .collect();
    let (uses, rules) = (uses(graph), homes.clone());
    let bytes_on = |id: StorageId, backend: &Arc<dyn Backend>| -> u64 {
        let storage = graph.storages().get(id.index());
        let uses = uses.get(&id).map_or(&[][..], Vec::as_slice);
        storage.map_or(0, |storage| match storage.kind {
            StorageKind::Weight if rules.is_streamed(storage) => 0,
            StorageKind::Weight => backend.prepared_bytes(storage, uses) as u64,
            _ => storage.bytes.max(1) as u64,
        })
    };
    let mut groups: Vec<Group<'_>> = Vec::new();
    for id in in_order_of_use(graph) {
        let Some(storage) = graph.storages().get(id.index()) else {
            continue;
        };
        if let Some(pin) = homes.pin_of(storage) {
            let at = pin.device.index();
            if let (Some(Some(room)), Some(backend)) = (room.get_mut(at), devices.get(at)) {
                *room = room.saturating_sub(bytes_on(id, backend));
            }
            continue;
        }
        let layer = layer_of(&storage.name);
        let same = layer.and_then(|_| groups.iter_mut().find(|group| group.layer == layer));
        match same {
            Some(group) => group.members.push(id),
            None => groups.push(Group {
                layer,
                members: vec![id],
            }),
        }
    }
    let mut first = 0;
    for group in groups {
        let size = |backend: &Arc<dyn Backend>| -> u64 {
            group.members.iter().map(|&id| bytes_on(id, backend)).sum()
        };
        let from = if group.layer.is_some() { first } else { 0 };
        let candidates = DeviceId::all(devices.len()).zip(devices).skip(from);
        let mut fitting = candidates.filter(|(device, backend)| {
            let room = room.get(device.index()).copied().flatten();
            room.is_none_or(|room| size(backend) <= room)
        });
        let Some((device, backend)) = fitting.next() else {
            continue;
        };
        if group.layer.is_some() {
            first = device.index();
        }
        if let Some(Some(room)) = room.get_mut(device.index()) {
            *room -= size(backend);
        }
        for id in group.members {
            if let Some(storage) = graph.storages().get(id.index()) {
                homes.choose(storage.kind, &storage.name, device);
            }
        }
    }
    homes
}

fn uses(graph: &Graph) -> HashMap<StorageId, Vec<WeightUse<'_>>> {
    let mut uses: HashMap<StorageId, Vec<WeightUse<'_>>> = HashMap::new();
    for node in graph.node_ids().filter_map(|id| graph.node(id)) {
        for (operand, value) in node.inputs().enumerate() {
            if node.storage_of(value).kind == StorageKind::Weight {
                uses.entry(value.storage)
                    .or_default()
                    .push(WeightUse { node, operand });
            }
        }
    }
    uses
}

/// The weights and states that nodes access, by first access.
fn in_order_of_use(graph: &Graph) -> Vec<StorageId> {
    let mut seen = vec![false; graph.storages().len()];
    let nodes = graph.node_ids().filter_map(|id| graph.node(id));
    let accessed = nodes.flat_map(|node| {
        let values = node.inputs().chain(node.writes());
        values.map(move |value| (value.storage, node.storage_of(value).kind))
    });
    let kept =
        accessed.filter(|(_, kind)| matches!(kind, StorageKind::Weight | StorageKind::State));
    let mut order = Vec::new();
    for (id, _) in kept {
        if let Some(seen) = seen.get_mut(id.index())
            && !std::mem::replace(seen, true)
        {
            order.push(id);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::layer_of;

    #[test]
    fn a_layer_is_the_name_up_to_its_number() {
        let table = [
            ("blk.3.ffn_up.weight", Some("blk.3")),
            ("blk.13.cache.k", Some("blk.13")),
            (
                "model.layers.0.self_attn.q_proj.weight",
                Some("model.layers.0"),
            ),
            (
                "down_blocks.1.attentions.0.proj.weight",
                Some("down_blocks.1"),
            ),
            ("token_embd.weight", None),
            ("conv2d.weight", None),
            ("", None),
            ("..", None),
        ];
        for (name, layer) in table {
            assert_eq!(layer_of(name), layer, "{name}");
        }
    }
}
