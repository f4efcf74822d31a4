//! Follows every byte through a plan, independently of the passes that made it: runs the steps on
//! marks in place of data, in the memory that the plan gives, and compares what each node finds
//! with what program order says.

use std::collections::HashMap;
use std::ops::Range;

use kovar_core::backend::SegmentPart;
use kovar_core::fusion::FusedNodes;
use kovar_core::{Graph, NodeRef, StorageId, StorageKind, Value};

use crate::check::Violation;
use crate::device::DeviceId;
use crate::fusion::{backend_segment, is_same_window};
use crate::intervals::Intervals;
use crate::liveness::{Liveness, writes_whole_span};
use crate::memory::MemoryPlan;
use crate::placement::Placement;
use crate::segment::{Schedule, Step};
use crate::transfer::Limit;

/// Who wrote a byte: the node at a position, or the world before the run.
type Writer = Option<usize>;

/// What is in a byte of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    storage: StorageId,
    writer: Writer,
    /// Within which it is there, if the copy that brought it has one.
    limit: Option<Limit>,
}

impl Mark {
    fn new(storage: StorageId, writer: Writer) -> Self {
        Self {
            storage,
            writer,
            limit: None,
        }
    }
}

/// What is read of a storage.
#[derive(Clone)]
struct Read {
    storage: StorageId,
    bytes: Range<usize>,
    /// Within which it matters, if not everywhere.
    limit: Option<Limit>,
}

/// Memory that is not shared with other memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Region {
    Chunk(DeviceId, usize),
    State(StorageId),
}

struct Flow<'g> {
    graph: &'g Graph,
    placement: &'g Placement,
    memory: &'g MemoryPlan,
    /// What program order says is in each storage.
    expected: Vec<Intervals<Writer>>,
    /// What the steps left in the memory.
    found: HashMap<Region, Intervals<Mark>>,
}

/// Verifies that every node reads, in the memory of its device, the bytes that program order says,
/// and that states and outputs are complete at their homes after the run.
///
/// # Errors
/// [`Violation::NoMemory`], [`Violation::Stale`], [`Violation::NotRead`].
pub fn check_flow(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    schedule: &Schedule,
    memory: &MemoryPlan,
) -> Result<(), Violation> {
    let mut flow = Flow {
        graph,
        placement,
        memory,
        expected: vec![Intervals::default(); graph.storages().len()],
        found: HashMap::new(),
    };
    flow.begin(schedule)?;
    // By copy, what its read found.
    let mut read: HashMap<usize, Vec<(Range<usize>, Mark)>> = HashMap::new();
    let mut position = 0;
    for step in schedule.steps() {
        match step {
            Step::Read(at) | Step::Write(at) => {
                let Some(copy) = schedule.copies.get(at) else {
                    continue;
                };
                let from = matches!(step, Step::Read(_));
                let device = if from { copy.from } else { copy.to };
                let (region, base) = flow.place(copy.storage, device)?;
                let marks = flow.found.entry(region).or_default();
                let bytes = base + copy.bytes.start..base + copy.bytes.end;
                if from {
                    let parts = marks.within(bytes).into_iter();
                    let parts =
                        parts.map(|(part, mark)| (part.start - base..part.end - base, mark));
                    read.insert(at, parts.collect());
                    continue;
                }
                marks.clear(bytes);
                for (part, mark) in read.remove(&at).ok_or(Violation::NotRead { copy: at })? {
                    let limit = mark.limit.or(copy.limit);
                    let mark = Mark { limit, ..mark };
                    marks.set(base + part.start..base + part.end, mark);
                }
            }
            Step::Upload(at) => {
                if let Some(upload) = schedule.uploads.get(at) {
                    flow.fill(upload.weight, upload.device)?;
                }
            }
            Step::Launch(at) => {
                let Some(segment) = schedule.segments.get(at) else {
                    continue;
                };
                for part in backend_segment(graph, segment).parts() {
                    match part {
                        SegmentPart::Node(id) => {
                            if let Some(node) = graph.node(id) {
                                flow.run(node, liveness, position, segment.device)?;
                            }
                            position += 1;
                        }
                        SegmentPart::Group(group) => {
                            flow.run_group(&group, liveness, position, segment.device)?;
                            position += group.nodes.len();
                        }
                    }
                }
            }
        }
    }
    flow.end()
}

impl Read {
    fn all(storage: StorageId, bytes: Range<usize>) -> Self {
        Self {
            storage,
            bytes,
            limit: None,
        }
    }
}

impl Flow<'_> {
    /// The memory of a storage on a device, and where in it the storage begins.
    fn place(&self, storage: StorageId, device: DeviceId) -> Result<(Region, usize), Violation> {
        let kind = self.graph.storages().get(storage.index()).map(|s| s.kind);
        if kind == Some(StorageKind::State) && self.placement.home(storage) == Some(device) {
            return Ok((Region::State(storage), 0));
        }
        let slot = self.memory.slot(storage, device);
        let slot = slot.ok_or_else(|| Violation::NoMemory {
            storage: self.name(storage),
        })?;
        Ok((Region::Chunk(device, slot.chunk), slot.offset))
    }

    fn name(&self, storage: StorageId) -> String {
        let storage = self.graph.storages().get(storage.index());
        storage.map_or_else(String::new, |storage| storage.name.clone())
    }

    /// Inputs are written to all their replicas, states are at their homes.
    fn begin(&mut self, schedule: &Schedule) -> Result<(), Violation> {
        for (id, storage) in self.graph.storage_ids().zip(self.graph.storages()) {
            let before = !matches!(storage.kind, StorageKind::Temp | StorageKind::Output);
            if before && let Some(expected) = self.expected.get_mut(id.index()) {
                expected.set(0..storage.bytes, None);
            }
            if storage.kind == StorageKind::State {
                let marks = self.found.entry(Region::State(id)).or_default();
                marks.set(0..storage.bytes, Mark::new(id, None));
            }
        }
        for replica in &schedule.replicas {
            let storage = self.graph.storages().get(replica.storage.index());
            if storage.is_some_and(|storage| storage.kind == StorageKind::Input) {
                self.fill(replica.storage, replica.device)?;
            }
        }
        Ok(())
    }

    /// The host writes a whole input or weight.
    fn fill(&mut self, id: StorageId, device: DeviceId) -> Result<(), Violation> {
        let bytes = self.graph.storages().get(id.index()).map_or(0, |s| s.bytes);
        let (region, base) = self.place(id, device)?;
        let marks = self.found.entry(region).or_default();
        marks.set(base..base + bytes, Mark::new(id, None));
        Ok(())
    }

    fn run(
        &mut self,
        node: NodeRef<'_>,
        liveness: &Liveness,
        position: usize,
        device: DeviceId,
    ) -> Result<(), Violation> {
        let index = liveness.nodes().get(position).map(|id| id.index());
        for (i, input) in node.inputs().enumerate() {
            self.read(index, (node, i), input, device)?;
        }
        for value in node.writes() {
            self.expect_rest(index, node, value, device)?;
            self.write(value, position, device)?;
            self.advance(value, position);
        }
        Ok(())
    }

    /// The nodes of a group at one time: what one of them reads from memory is there before any of
    /// them writes, and no written byte is read or written as another element.
    fn run_group(
        &mut self,
        group: &FusedNodes<'_>,
        liveness: &Liveness,
        first: usize,
        device: DeviceId,
    ) -> Result<(), Violation> {
        let index = |position: usize| liveness.nodes().get(position).map(|id| id.index());
        for ((node, _, kept), position) in group.linked().zip(first..) {
            for value in node.writes().filter(|_| kept) {
                self.expect_rest(index(position), node, value, device)?;
            }
        }
        for (i, node) in group.iter().enumerate() {
            let result = node.output();
            let mut later = group.iter().skip(i + 1);
            let cut = later.find(|later| {
                let written = later.output();
                written.overlaps(result) && !is_same_window(result, written, *later)
            });
            if let Some(later) = cut {
                return Err(self.overlap(group, result, later.output()));
            }
        }
        for ((node, link, _), position) in group.linked().zip(first..) {
            for (i, input) in node.inputs().enumerate() {
                if Some(i) != link {
                    self.read(index(position), (node, i), input, device)?;
                    self.check_apart(group, input, device)?;
                }
            }
            for value in node.writes() {
                self.advance(value, position);
            }
        }
        for ((node, _, kept), position) in group.linked().zip(first..) {
            for value in node.writes().filter(|_| kept) {
                self.write(value, position, device)?;
            }
        }
        Ok(())
    }

    /// Verifies that a group writes no byte of what it reads, except for elements over themselves.
    fn check_apart(
        &self,
        group: &FusedNodes<'_>,
        read: &Value,
        device: DeviceId,
    ) -> Result<(), Violation> {
        let bytes = |value: &Value| {
            let (region, base) = self.place(value.storage, device)?;
            let span = value.byte_span();
            Ok::<_, Violation>((region, base + span.start..base + span.end))
        };
        if !self.is_in_memory(read.storage, device) {
            return Ok(());
        }
        let (region, span) = bytes(read)?;
        for (node, ..) in group.linked().filter(|&(_, _, kept)| kept) {
            let written = node.output();
            let (other, over) = bytes(written)?;
            let overlap = other == region && over.start < span.end && span.start < over.end;
            if overlap && !is_same_window(read, written, node) {
                return Err(self.overlap(group, read, written));
            }
        }
        Ok(())
    }

    fn overlap(&self, group: &FusedNodes<'_>, touched: &Value, written: &Value) -> Violation {
        Violation::GroupOverlap {
            fusion: group.fusion.name(),
            node: group.nodes.last().map_or(0, |id| id.index()),
            touched: self.name(touched.storage),
            written: self.name(written.storage),
        }
    }

    /// Whether a storage is followed: weights that stay on a device are not.
    fn is_in_memory(&self, storage: StorageId, device: DeviceId) -> bool {
        let kind = self.graph.storages().get(storage.index()).map(|s| s.kind);
        kind != Some(StorageKind::Weight) || self.placement.is_streamed(storage, device)
    }

    /// The bytes of an operand that a node reads must be right.
    fn read(
        &self,
        index: Option<usize>,
        (node, operand): (NodeRef<'_>, usize),
        value: &Value,
        device: DeviceId,
    ) -> Result<(), Violation> {
        if !self.is_in_memory(value.storage, device) {
            return Ok(());
        }
        let read = Read {
            storage: value.storage,
            bytes: value.byte_span(),
            limit: Limit::of(node, operand, value),
        };
        self.expect(index, read, device)
    }

    /// The bytes that a node leaves alone must be right.
    fn expect_rest(
        &self,
        index: Option<usize>,
        node: NodeRef<'_>,
        value: &Value,
        device: DeviceId,
    ) -> Result<(), Violation> {
        match writes_whole_span(node) {
            true => Ok(()),
            false => self.expect(index, Read::all(value.storage, value.byte_span()), device),
        }
    }

    /// Program order has the node at a position write a value.
    fn advance(&mut self, value: &Value, position: usize) {
        if let Some(expected) = self.expected.get_mut(value.storage.index()) {
            expected.set(value.byte_span(), Some(position));
        }
    }

    /// A kernel writes the value of the node at a position.
    fn write(&mut self, value: &Value, position: usize, device: DeviceId) -> Result<(), Violation> {
        let (region, base) = self.place(value.storage, device)?;
        let (span, mark) = (value.byte_span(), Mark::new(value.storage, Some(position)));
        let marks = self.found.entry(region).or_default();
        marks.set(base + span.start..base + span.end, mark);
        Ok(())
    }

    /// Compares the bytes that a node, or the caller after the run, reads with those expected.
    fn expect(&self, node: Option<usize>, read: Read, device: DeviceId) -> Result<(), Violation> {
        let Read {
            storage,
            bytes,
            limit,
        } = read;
        let (region, base) = self.place(storage, device)?;
        let expected = self.expected.get(storage.index());
        for (part, writer) in expected.map_or_else(Vec::new, |e| e.within(bytes)) {
            let found = self.found.get(&region);
            let found =
                found.map_or_else(Vec::new, |f| f.within(base + part.start..base + part.end));
            let right = found.iter().filter(|(_, mark)| {
                let limited = mark.limit.is_none() || mark.limit == limit;
                limited && (mark.storage, mark.writer) == (storage, writer)
            });
            if right.map(|(part, _)| part.len()).sum::<usize>() != part.len() {
                return Err(Violation::Stale {
                    node,
                    storage: self.name(storage),
                    device: device.index(),
                    bytes: part,
                });
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<(), Violation> {
        for (id, storage) in self.graph.storage_ids().zip(self.graph.storages()) {
            let Some(home) = self.placement.home(id) else {
                continue;
            };
            let kept = matches!(storage.kind, StorageKind::State | StorageKind::Output);
            if kept && storage.bytes > 0 {
                self.expect(None, Read::all(id, 0..storage.bytes), home)?;
            }
        }
        Ok(())
    }
}
