//! The offsets of the storages of a run in the arena of each device.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{Graph, StorageId, StorageKind};

use super::packing::{Request, Slot, lower_bound, pack};
use super::segment::{Lifetime, Replica, Schedule};
use crate::device::{DeviceId, Devices};
use crate::place::liveness::Liveness;
use crate::place::placement::Placement;
use crate::place::{Inputs, PlaceError};
use crate::plural::plural;

/// The activation memory of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arena {
    /// The sizes of its buffers.
    pub chunks: Vec<usize>,
    /// A lower bound of any arrangement: the most bytes that are needed at one time.
    pub lower_bound: usize,
}

impl Arena {
    /// The size of all its buffers.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().sum()
    }
}

/// The arenas of a plan and the slots in them: of inputs, temporaries and outputs, of states away
/// from their homes, and of streamed weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaPlan {
    arenas: Vec<Arena>,
    /// Sorted by storage and device.
    slots: Vec<(StorageId, DeviceId, Slot)>,
}

impl ArenaPlan {
    /// The arenas, by device.
    pub fn arenas(&self) -> &[Arena] {
        &self.arenas
    }

    /// The slot of a storage in a device's arena; `None` for prepared weights, states at home, and
    /// storages that no node accesses on the device.
    pub fn slot(&self, storage: StorageId, device: DeviceId) -> Option<Slot> {
        let key = (storage, device);
        let at = self.slots.binary_search_by_key(&key, |&(s, d, _)| (s, d));
        at.ok().and_then(|at| Some(self.slots.get(at)?.2))
    }

    /// All slots, by storage and device.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = (StorageId, DeviceId, Slot)> + '_ {
        self.slots.iter().copied()
    }

    /// One line for each arena and each slot.
    pub fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
        let mut text = String::from("memory:\n");
        for (arena, device) in self.arenas.iter().zip(devices) {
            let _ = writeln!(
                text,
                "  {}: {} in {}, the lower bound is {}",
                device.info().id,
                plural(arena.bytes(), "byte"),
                plural(arena.chunks.len(), "buffer"),
                arena.lower_bound
            );
        }
        for (id, device, slot) in &self.slots {
            let storage = &graph.storages()[id.index()];
            let _ = write!(text, "  {} `{}`", storage.kind.name(), storage.name);
            if devices.len() > 1 {
                let _ = write!(text, " on {}", devices.name(*device));
            }
            let end = slot.offset + slot.bytes;
            let _ = writeln!(
                text,
                ": buffer {}, bytes {}..{end}",
                slot.chunk, slot.offset
            );
        }
        text
    }
}

/// Whether a replica lies in its device's arena: prepared weights and states at home have memory of
/// their own.
pub(crate) fn lies_in_arena(graph: &Graph, placement: &Placement, replica: &Replica) -> bool {
    match graph.storages()[replica.storage.index()].kind {
        StorageKind::Input | StorageKind::Temp | StorageKind::Output => true,
        StorageKind::State => placement.home(replica.storage) != replica.device,
        StorageKind::Weight => placement.is_streamed(replica.storage, replica.device),
    }
}

/// Gives a slot to every replica that lives within a run.
///
/// # Errors
/// [`PlaceError::TooLarge`] for a storage that no buffer of its device can hold.
pub(crate) fn plan(
    inputs: Inputs<'_>,
    liveness: &Liveness,
    placement: &Placement,
    schedule: &Schedule,
) -> Result<ArenaPlan, PlaceError> {
    let (graph, devices) = (inputs.graph, inputs.devices);
    let whole_run = Lifetime {
        start: 0,
        end: liveness.nodes().len().saturating_sub(1),
    };
    let mut in_arenas: Vec<&Replica> = schedule.replicas.iter().collect();
    in_arenas.retain(|replica| lies_in_arena(graph, placement, replica));
    in_arenas.sort_by_key(|replica| (replica.storage, replica.device));
    let mut slots = Vec::with_capacity(in_arenas.len());
    let mut arenas = Vec::with_capacity(devices.len());
    for (device, backend) in devices.numbered() {
        let info = backend.info();
        let alignment = info.alignment.max(1);
        let max = info.max_buffer_bytes / alignment * alignment;
        let mut ids = Vec::new();
        let mut requests = Vec::new();
        for replica in in_arenas.iter().filter(|replica| replica.device == device) {
            let storage = &graph.storages()[replica.storage.index()];
            let rounded = storage.bytes.checked_next_multiple_of(alignment);
            let Some(bytes) = rounded.filter(|&bytes| bytes <= max) else {
                return Err(PlaceError::TooLarge {
                    storage: storage.name.clone(),
                    bytes: rounded.unwrap_or(usize::MAX),
                    device: info.id.clone(),
                    max: info.max_buffer_bytes,
                });
            };
            let reuse = inputs.policy.reuse_memory;
            let lifetime = if reuse { replica.lifetime } else { whole_run };
            ids.push(replica.storage);
            requests.push(Request { lifetime, bytes });
        }
        let (packed, mut chunks) = pack(&requests, max);
        if chunks.is_empty() && !ids.is_empty() {
            // Storages without bytes still need a slot.
            chunks.push(alignment);
        }
        slots.extend(
            ids.into_iter()
                .zip(packed)
                .map(|(id, slot)| (id, device, slot)),
        );
        arenas.push(Arena {
            chunks,
            lower_bound: lower_bound(&requests),
        });
    }
    slots.sort_by_key(|&(storage, device, _)| (storage, device));
    Ok(ArenaPlan { arenas, slots })
}

/// Makes the buffers of an arena, given by their sizes, as large as another plan needs them.
pub(crate) fn grow_arena(arena: &mut Vec<usize>, sizes: &[usize]) {
    arena.resize(arena.len().max(sizes.len()), 0);
    let both = arena.iter_mut().zip(sizes);
    both.for_each(|(chunk, &size)| *chunk = size.max(*chunk));
}

/// Memory that a device's queue holds for transfers, in bytes.
pub(crate) fn staging_bytes(backend: &dyn Backend) -> u64 {
    (backend.upload_ring_bytes() as u64).saturating_add(backend.readback_bytes() as u64)
}
