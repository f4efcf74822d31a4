//! Packs requests for memory, each for some time, into few bytes.

use super::segment::Lifetime;

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
    /// Whether they have a byte in common.
    pub fn overlaps(&self, other: &Slot) -> bool {
        self.chunk == other.chunk
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

/// A request for bytes during a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When they are needed.
    pub lifetime: Lifetime,
    /// How many, rounded up to the device's alignment.
    pub bytes: usize,
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

/// Finds slots for `requests`, none of which is larger than `max_chunk`. Tries two orders, the
/// larger first and the earlier first, and takes the one that needs fewer bytes. Returns the slots
/// and the sizes of the chunks.
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
    /// The placed requests, by offset.
    placed: Vec<(usize, Request)>,
}

impl Chunk {
    /// The smallest gap within the chunk that fits `request`, as (gap, offset), and the first byte
    /// after all requests that live at the same time.
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
