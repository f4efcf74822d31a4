//! Follows every byte through a plan. The actions run on marks in place of data, in the memory of
//! the plan, and the marks that each node finds are compared with those that program order gives.

use std::collections::HashMap;
use std::ops::Range;

use kovar_core::backend::SegmentItem;
use kovar_core::fusion::FusedNodes;
use kovar_core::{Graph, NodeRef, StorageId, StorageKind, Value};

use crate::device::DeviceId;
use crate::intervals::Intervals;
use crate::place::liveness::{Liveness, writes_whole_span};
use crate::place::placement::Placement;
use crate::schedule::fusion::{backend_segment, is_same_window};
use crate::schedule::memory::ArenaPlan;
use crate::schedule::{Action, Limit, Schedule};
use crate::violation::Violation;

/// The writer of a byte: the node at a position, or `None` for bytes from before the run.
type Writer = Option<usize>;

/// The content of a byte of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    storage: StorageId,
    writer: Writer,
    /// The limit of the copy that brought it, if it had one.
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

/// A read of bytes of a storage, and the limit within which they are needed, if there is one.
type Read = (StorageId, Range<usize>, Option<Limit>);

/// A buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Region {
    Chunk(DeviceId, usize),
    State(StorageId),
}

struct Simulation<'g> {
    graph: &'g Graph,
    placement: &'g Placement,
    memory: &'g ArenaPlan,
    /// The writers in each storage by program order.
    expected: Vec<Intervals<Writer>>,
    /// The marks that the actions left in memory.
    found: HashMap<Region, Intervals<Mark>>,
}

/// Verifies that every node reads, in the memory of its device, the bytes that program order gives,
/// and that states and outputs are complete at their homes after the run.
///
/// # Errors
/// [`Violation::NoMemory`], [`Violation::Stale`], [`Violation::NotRead`].
pub fn check_flow(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    schedule: &Schedule,
    memory: &ArenaPlan,
) -> Result<(), Violation> {
    let mut run = Simulation {
        graph,
        placement,
        memory,
        expected: vec![Intervals::default(); graph.storages().len()],
        found: HashMap::new(),
    };
    run.begin(schedule)?;
    // By copy, the marks that its read found.
    let mut read: HashMap<usize, Vec<(Range<usize>, Mark)>> = HashMap::new();
    let mut position = 0;
    for action in schedule.actions() {
        match action {
            Action::Read(at) | Action::Write(at) => {
                let Some(copy) = schedule.copies.get(at) else {
                    continue;
                };
                let from = matches!(action, Action::Read(_));
                let device = if from { copy.from } else { copy.to };
                let (region, base) = run.place(copy.storage, device)?;
                let marks = run.found.entry(region).or_default();
                let bytes = base + copy.bytes.start..base + copy.bytes.end;
                if from {
                    let parts = marks.within(bytes);
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
            Action::Upload(at) => {
                if let Some(upload) = schedule.uploads.get(at) {
                    run.fill(upload.weight, upload.device)?;
                }
            }
            Action::Launch(at) => {
                let Some(segment) = schedule.segments.get(at) else {
                    continue;
                };
                for item in backend_segment(graph, segment).items() {
                    match item {
                        SegmentItem::Node(id) => {
                            if let Some(node) = graph.node(id) {
                                run.run(node, liveness, position, segment.device)?;
                            }
                            position += 1;
                        }
                        SegmentItem::Group(group) => {
                            run.run_group(&group, liveness, position, segment.device)?;
                            position += group.nodes.len();
                        }
                    }
                }
            }
        }
    }
    run.end()
}

impl Simulation<'_> {
    /// The buffer of a storage on a device, and the storage's offset there.
    fn place(&self, storage: StorageId, device: DeviceId) -> Result<(Region, usize), Violation> {
        let found = &self.graph.storages()[storage.index()];
        if found.kind == StorageKind::State && self.placement.home(storage) == device {
            return Ok((Region::State(storage), 0));
        }
        let slot = self.memory.slot(storage, device);
        let slot = slot.ok_or_else(|| Violation::NoMemory {
            storage: found.name.clone(),
        })?;
        Ok((Region::Chunk(device, slot.chunk), slot.offset))
    }

    fn name(&self, storage: StorageId) -> String {
        self.graph.storages()[storage.index()].name.clone()
    }

    /// Inputs are written to all their replicas, states are at their homes.
    fn begin(&mut self, schedule: &Schedule) -> Result<(), Violation> {
        for (id, storage) in self.graph.storage_ids().zip(self.graph.storages()) {
            let before = !matches!(storage.kind, StorageKind::Temp | StorageKind::Output);
            if before {
                self.expected[id.index()].set(0..storage.bytes, None);
            }
            if storage.kind == StorageKind::State {
                let marks = self.found.entry(Region::State(id)).or_default();
                marks.set(0..storage.bytes, Mark::new(id, None));
            }
        }
        for replica in &schedule.replicas {
            let storage = &self.graph.storages()[replica.storage.index()];
            if storage.kind == StorageKind::Input {
                self.fill(replica.storage, replica.device)?;
            }
        }
        Ok(())
    }

    /// The host writes a whole input or weight.
    fn fill(&mut self, id: StorageId, device: DeviceId) -> Result<(), Violation> {
        let bytes = self.graph.storages()[id.index()].bytes;
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

    /// Runs the nodes of a group as one kernel: bytes that a node reads from memory are there
    /// before any node writes, and no written byte is read or written as another element.
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

    /// Verifies that a group writes none of the bytes of `read`, unless as the same elements.
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

    /// Whether the bytes of a storage are followed; those of weights that stay on a device are not.
    fn is_in_memory(&self, storage: StorageId, device: DeviceId) -> bool {
        let kind = self.graph.storages()[storage.index()].kind;
        kind != StorageKind::Weight || self.placement.is_streamed(storage, device)
    }

    /// Verifies the bytes of an operand that a node reads.
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
        let limit = Limit::of(node, operand, value);
        self.expect(index, (value.storage, value.byte_span(), limit), device)
    }

    /// Verifies the bytes within a written span that the node does not write.
    fn expect_rest(
        &self,
        index: Option<usize>,
        node: NodeRef<'_>,
        value: &Value,
        device: DeviceId,
    ) -> Result<(), Violation> {
        if writes_whole_span(node) {
            return Ok(());
        }
        self.expect(index, (value.storage, value.byte_span(), None), device)
    }

    /// Notes that the node at a position writes a value by program order.
    fn advance(&mut self, value: &Value, position: usize) {
        self.expected[value.storage.index()].set(value.byte_span(), Some(position));
    }

    /// Notes that a kernel writes the value of the node at a position.
    fn write(&mut self, value: &Value, position: usize, device: DeviceId) -> Result<(), Violation> {
        let (region, base) = self.place(value.storage, device)?;
        let (span, mark) = (value.byte_span(), Mark::new(value.storage, Some(position)));
        let marks = self.found.entry(region).or_default();
        marks.set(base + span.start..base + span.end, mark);
        Ok(())
    }

    /// Compares the bytes that a node, or the caller after the run, reads with the expected ones.
    fn expect(
        &self,
        node: Option<usize>,
        (storage, bytes, limit): Read,
        device: DeviceId,
    ) -> Result<(), Violation> {
        let (region, base) = self.place(storage, device)?;
        for (part, writer) in self.expected[storage.index()].within(bytes) {
            let found = self.found.get(&region).into_iter();
            let found = found.flat_map(|f| f.within(base + part.start..base + part.end));
            let right = found.filter(|(_, mark)| {
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
            let kept = matches!(storage.kind, StorageKind::State | StorageKind::Output);
            if kept && storage.bytes > 0 {
                self.expect(None, (id, 0..storage.bytes, None), self.placement.home(id))?;
            }
        }
        Ok(())
    }
}
