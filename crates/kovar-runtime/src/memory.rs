//! Where the storages of a run lie in the arena of each device.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{Graph, StorageId, StorageKind};

use crate::error::CompileError;
use crate::liveness::{Lifetime, Liveness};
use crate::placement::{DeviceId, Placement};
use crate::plural::plural;

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

/// The arenas of a plan and the slots of its inputs, temporaries and outputs in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    arenas: Vec<Arena>,
    slots: Vec<Option<Slot>>,
}

impl MemoryPlan {
    /// The arenas, by device.
    pub fn arenas(&self) -> &[Arena] {
        &self.arenas
    }

    /// The slot of a storage in its owner's arena; `None` for weights, states and storages that
    /// no needed node accesses.
    pub fn slot(&self, storage: StorageId) -> Option<Slot> {
        self.slots.get(storage.index()).copied().flatten()
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
        for (storage, slot) in graph.storages().iter().zip(&self.slots) {
            if let Some(slot) = slot {
                let _ = writeln!(
                    text,
                    "  {} `{}`: buffer {}, bytes {}..{}",
                    storage.kind.name(),
                    storage.name,
                    slot.chunk,
                    slot.offset,
                    slot.offset + slot.bytes
                );
            }
        }
        text
    }
}

/// Whether storages of a kind lie in an arena.
pub(crate) fn lies_in_arena(kind: StorageKind) -> bool {
    match kind {
        StorageKind::Input | StorageKind::Temp | StorageKind::Output => true,
        StorageKind::Weight | StorageKind::State => false,
    }
}

/// Gives a slot to every storage that lives within a run. Without `reuse`, no two storages share
/// bytes.
///
/// # Errors
/// [`CompileError::TooLarge`] for a storage that no buffer of its device can hold.
pub fn plan(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    devices: &[Arc<dyn Backend>],
    reuse: bool,
) -> Result<MemoryPlan, CompileError> {
    let mut slots = vec![None; graph.storages().len()];
    let mut arenas = Vec::with_capacity(devices.len());
    for (owner, device) in DeviceId::all(devices.len()).zip(devices) {
        let info = device.info();
        let alignment = info.alignment.max(1);
        let max = info.max_buffer_bytes / alignment * alignment;
        let mut ids = Vec::new();
        let mut requests = Vec::new();
        for (id, storage) in graph.storage_ids().zip(graph.storages()) {
            let owned = placement.owner(id) == Some(owner);
            let Some(lifetime) = liveness.lifetime(id).filter(|_| owned) else {
                continue;
            };
            if !lies_in_arena(storage.kind) {
                continue;
            }
            let rounded = storage.bytes.checked_next_multiple_of(alignment);
            let Some(bytes) = rounded.filter(|&bytes| bytes <= max) else {
                return Err(CompileError::TooLarge {
                    storage: storage.name.clone(),
                    bytes: rounded.unwrap_or(usize::MAX),
                    device: info.id.clone(),
                    max: info.max_buffer_bytes,
                });
            };
            let whole_run = Lifetime {
                start: 0,
                end: liveness.nodes().len().saturating_sub(1),
            };
            let lifetime = if reuse { lifetime } else { whole_run };
            ids.push(id);
            requests.push(Request { lifetime, bytes });
        }
        let (packed, mut chunks) = pack(&requests, max);
        if chunks.is_empty() && !ids.is_empty() {
            // Storages without bytes still have a place.
            chunks.push(alignment);
        }
        for (id, slot) in ids.into_iter().zip(packed) {
            if let Some(place) = slots.get_mut(id.index()) {
                *place = Some(slot);
            }
        }
        arenas.push(Arena {
            chunks,
            lower_bound: lower_bound(&requests),
        });
    }
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
