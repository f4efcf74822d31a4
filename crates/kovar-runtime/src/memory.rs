//! Where the storages of a run lie in the arena of each device.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{Graph, StorageId, StorageKind};

use crate::device::DeviceId;
use crate::error::CompileError;
use crate::liveness::{Lifetime, Liveness};
use crate::placement::Placement;
use crate::plural::plural;
use crate::segment::{Replica, Schedule};

/// A range of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Which of the arena's buffers.
    pub chunk: usize,
    /// The first byte, a multiple of the device's alignment.
    pub offset: usize,
    /// The size, rounded up to the device's alignment.
    pub bytes: usize,
}

impl Slot {
    /// Whether both have a byte in common.
    pub fn overlaps(&self, other: &Slot) -> bool {
        self.chunk == other.chunk
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

/// Bytes that are needed for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When.
    pub lifetime: Lifetime,
    /// How many, rounded up to the device's alignment.
    pub bytes: usize,
}

/// The activation memory of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arena {
    /// The sizes of its buffers.
    pub chunks: Vec<usize>,
    /// What no arrangement can go below: the most bytes that are needed at one time.
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
pub struct MemoryPlan {
    arenas: Vec<Arena>,
    /// Sorted by storage and device.
    slots: Vec<(StorageId, DeviceId, Slot)>,
}

impl MemoryPlan {
    /// The arenas, by device.
    pub fn arenas(&self) -> &[Arena] {
        &self.arenas
    }

    /// The slot of a storage in a device's arena; `None` for prepared weights, for states at home and for
    /// what no node accesses on the device.
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
            let Some(storage) = graph.storages().get(id.index()) else {
                continue;
            };
            let _ = write!(text, "  {} `{}`", storage.kind.name(), storage.name);
            if let Some(device) = devices.get(device.index()).filter(|_| devices.len() > 1) {
                let _ = write!(text, " on {}", device.info().id);
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
    let storage = graph.storages().get(replica.storage.index());
    match storage.map(|storage| storage.kind) {
        Some(StorageKind::Input | StorageKind::Temp | StorageKind::Output) => true,
        Some(StorageKind::State) => placement.home(replica.storage) != Some(replica.device),
        Some(StorageKind::Weight) => placement.is_streamed(replica.storage, replica.device),
        None => false,
    }
}

/// Gives a slot to every replica that lives within a run. Without `reuse`, no two share bytes.
///
/// # Errors
/// [`CompileError::TooLarge`] for a storage that no buffer of its device can hold.
pub fn plan(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    schedule: &Schedule,
    devices: &[Arc<dyn Backend>],
    reuse: bool,
) -> Result<MemoryPlan, CompileError> {
    let whole_run = Lifetime {
        start: 0,
        end: liveness.nodes().len().saturating_sub(1),
    };
    let mut in_arenas: Vec<&Replica> = schedule.replicas.iter().collect();
    in_arenas.retain(|replica| lies_in_arena(graph, placement, replica));
    in_arenas.sort_by_key(|replica| (replica.storage, replica.device));
    let mut slots = Vec::with_capacity(in_arenas.len());
    let mut arenas = Vec::with_capacity(devices.len());
    for (device, backend) in DeviceId::all(devices.len()).zip(devices) {
        let info = backend.info();
        let alignment = info.alignment.max(1);
        let max = info.max_buffer_bytes / alignment * alignment;
        let mut ids = Vec::new();
        let mut requests = Vec::new();
        for replica in in_arenas.iter().filter(|replica| replica.device == device) {
            let Some(storage) = graph.storages().get(replica.storage.index()) else {
                continue;
            };
            let rounded = storage.bytes.checked_next_multiple_of(alignment);
            let Some(bytes) = rounded.filter(|&bytes| bytes <= max) else {
                return Err(CompileError::TooLarge {
                    storage: storage.name.clone(),
                    bytes: rounded.unwrap_or(usize::MAX),
                    device: info.id.clone(),
                    max: info.max_buffer_bytes,
                });
            };
            let lifetime = if reuse { replica.lifetime } else { whole_run };
            ids.push(replica.storage);
            requests.push(Request { lifetime, bytes });
        }
        let (packed, mut chunks) = pack(&requests, max);
        if chunks.is_empty() && !ids.is_empty() {
            // Storages without bytes still have a place.
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
    Ok(MemoryPlan { arenas, slots })
}

/// The most bytes that are needed at one time.
pub fn lower_bound(requests: &[Request]) -> usize {
    let end = requests.iter().map(|r| r.lifetime.end + 1).max();
    let mut starts = vec![0usize; end.unwrap_or(0) + 1];
    let mut ends = starts.clone();
    for request in requests {
        if let Some(bytes) = starts.get_mut(request.lifetime.start) {
            *bytes += request.bytes;
        }
        if let Some(bytes) = ends.get_mut(request.lifetime.end + 1) {
            *bytes += request.bytes;
        }
    }
    let mut live = 0;
    let positions = starts.iter().zip(&ends);
    positions
        .map(|(start, end)| {
            live = live + start - end;
            live
        })
        .max()
        .unwrap_or(0)
}

/// Finds slots for `requests`, none larger than `max_chunk`, in as few bytes as two orders give:
/// the larger first, and the earlier first. Returns the slots and the sizes of the chunks.
///
/// Greedy best fit: a request goes into the smallest gap that no request of an overlapping
/// lifetime uses (Pisarchyk and Lee 2020, "greedy by size").
pub fn pack(requests: &[Request], max_chunk: usize) -> (Vec<Slot>, Vec<usize>) {
    let mut by_size: Vec<usize> = (0..requests.len()).collect();
    by_size.sort_by_key(|&i| {
        let r = &requests[i];
        (std::cmp::Reverse(r.bytes), r.lifetime.start)
    });
    let mut by_start: Vec<usize> = (0..requests.len()).collect();
    by_start.sort_by_key(|&i| {
        let r = &requests[i];
        (r.lifetime.start, std::cmp::Reverse(r.bytes))
    });
    let larger_first = pack_in_order(requests, &by_size, max_chunk);
    let earlier_first = pack_in_order(requests, &by_start, max_chunk);
    let total = |packed: &(Vec<Slot>, Vec<usize>)| packed.1.iter().sum::<usize>();
    if total(&earlier_first) < total(&larger_first) {
        earlier_first
    } else {
        larger_first
    }
}

#[derive(Default)]
struct Chunk {
    bytes: usize,
    /// What was placed, by offset.
    placed: Vec<(usize, Request)>,
}

impl Chunk {
    /// The smallest gap within the chunk that holds `request`, as (gap, offset), and the first
    /// byte behind everything that lives at the same time.
    fn best_gap(&self, request: &Request) -> (Option<(usize, usize)>, usize) {
        let mut best: Option<(usize, usize)> = None;
        let mut free_from = 0;
        let mut offer = |from: usize, to: usize| {
            let gap = to.saturating_sub(from);
            if gap >= request.bytes && best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, from));
            }
        };
        for (offset, other) in &self.placed {
            if other.lifetime.overlaps(&request.lifetime) {
                offer(free_from, *offset);
                free_from = free_from.max(offset + other.bytes);
            }
        }
        offer(free_from, self.bytes);
        (best, free_from)
    }

    fn place(&mut self, offset: usize, request: Request) {
        let at = self.placed.partition_point(|(other, _)| *other < offset);
        self.placed.insert(at, (offset, request));
        self.bytes = self.bytes.max(offset + request.bytes);
    }
}

fn pack_in_order(
    requests: &[Request],
    order: &[usize],
    max_chunk: usize,
) -> (Vec<Slot>, Vec<usize>) {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut slots = vec![
        Slot {
            chunk: 0,
            offset: 0,
            bytes: 0
        };
        requests.len()
    ];
    for &i in order {
        let request = requests[i];
        if request.bytes == 0 {
            continue;
        }
        let mut gap: Option<(usize, usize, usize)> = None;
        let mut growth: Option<(usize, usize, usize)> = None;
        for (at, chunk) in chunks.iter().enumerate() {
            let (best, free_from) = chunk.best_gap(&request);
            if let Some((size, offset)) = best
                && gap.is_none_or(|(smallest, ..)| size < smallest)
            {
                gap = Some((size, at, offset));
            }
            let grows_by = (free_from + request.bytes).saturating_sub(chunk.bytes);
            if free_from + request.bytes <= max_chunk
                && growth.is_none_or(|(least, ..)| grows_by < least)
            {
                growth = Some((grows_by, at, free_from));
            }
        }
        let (_, at, offset) = gap.or(growth).unwrap_or((0, chunks.len(), 0));
        if at == chunks.len() {
            chunks.push(Chunk::default());
        }
        chunks[at].place(offset, request);
        slots[i] = Slot {
            chunk: at,
            offset,
            bytes: request.bytes,
        };
    }
    (slots, chunks.iter().map(|chunk| chunk.bytes).collect())
}
