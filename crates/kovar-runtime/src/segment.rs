//! Segments and copy steps: what each device runs and when bytes cross between devices.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::fusion::Group;
use kovar_core::{Graph, NodeId, StorageId, StorageKind, Value};

use crate::device::DeviceId;
use crate::liveness::{Lifetime, Liveness, writes_whole_span};
use crate::placement::Placement;
use crate::plural::plural;
use crate::spread::layer_of;
use crate::transfer::{Copy, Holders, Limit};

/// Neighbouring nodes that one device runs one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The device.
    pub device: DeviceId,
    /// The nodes, in program order.
    pub nodes: Vec<NodeId>,
    /// Which of them run as one kernel each, in program order; none before
    /// [`fuse`](crate::fusion::fuse).
    pub groups: Vec<Group>,
}

/// Memory of one device for one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The storage.
    pub storage: StorageId,
    /// The device.
    pub device: DeviceId,
    /// The positions in [`Liveness::nodes`] between which it holds bytes that matter there.
    pub lifetime: Lifetime,
}

/// A streamed weight that crosses from the host to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The weight.
    pub weight: StorageId,
    /// The device.
    pub device: DeviceId,
    /// The segment before which it is queued: the first of the layer before the one that reads it,
    /// so that it can cross while that layer computes.
    pub before: usize,
}

/// A part of a run, in the order in which they are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Queue a copy's read on the device that has the bytes.
    Read(usize),
    /// Wait for a copy's bytes and queue their write on the device that needs them.
    Write(usize),
    /// Queue the write of a streamed weight.
    Upload(usize),
    /// Launch a segment.
    Launch(usize),
}

/// Segments, the copies between them, and the replicas that both use. Each device's queue is in
/// order, so nothing waits but a write for the bytes of its own read, which is queued as soon as
/// the bytes are there and waited for when they are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// In program order.
    pub segments: Vec<Segment>,
    /// In the order in which they are needed.
    pub copies: Vec<Copy>,
    /// In the order in which they are needed.
    pub uploads: Vec<Upload>,
    /// In the order of their first use.
    pub replicas: Vec<Replica>,
}

impl Schedule {
    /// What a run does behind writing the inputs.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::with_capacity(self.segments.len() + 2 * self.copies.len());
        let copies = || self.copies.iter().enumerate();
        // By segment, so that finding the reads takes no search.
        let mut reads: Vec<Vec<usize>> = vec![Vec::new(); self.segments.len()];
        for (at, copy) in copies() {
            match copy.after.and_then(|segment| reads.get_mut(segment)) {
                Some(reads) => reads.push(at),
                None => steps.push(Step::Read(at)),
            }
        }
        let mut uploads: Vec<Vec<usize>> = vec![Vec::new(); self.segments.len()];
        for (at, upload) in self.uploads.iter().enumerate() {
            if let Some(uploads) = uploads.get_mut(upload.before) {
                uploads.push(at);
            }
        }
        let mut uploads = uploads.into_iter();
        let mut writes = copies().peekable();
        for (segment, reads) in reads.into_iter().enumerate() {
            while let Some((at, _)) = writes.next_if(|(_, copy)| copy.before <= segment) {
                steps.push(Step::Write(at));
            }
            let uploads = uploads.next().unwrap_or_default();
            steps.extend(uploads.into_iter().map(Step::Upload));
            steps.push(Step::Launch(segment));
            steps.extend(reads.into_iter().map(Step::Read));
        }
        steps.extend(writes.map(|(at, _)| Step::Write(at)));
        steps
    }

    /// The bytes that cross between devices in a run with these scalars.
    pub fn copied_bytes(&self, scalars: &[i32]) -> usize {
        let copies = self.copies.iter();
        copies.map(|copy| copy.bytes_of(scalars).len()).sum()
    }

    /// One line for each segment and each copy.
    pub fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
        let name = |device: DeviceId| {
            let device = devices.get(device.index());
            device.map_or("?", |device| device.info().id.as_str())
        };
        let mut text = format!("segments: {}\n", self.segments.len());
        for (i, segment) in self.segments.iter().enumerate() {
            let first = segment.nodes.first().map_or(0, |id| id.index());
            let last = segment.nodes.last().map_or(0, |id| id.index());
            let nodes = segment.nodes.iter().filter_map(|&id| graph.node(id));
            let flops: u64 = nodes.map(|node| node.cost().flops).sum();
            let _ = writeln!(
                text,
                "  {i}: {}, {} ({first} to {last}), {flops} operations",
                name(segment.device),
                plural(segment.nodes.len(), "node")
            );
        }
        if !self.uploads.is_empty() {
            let storages = self.uploads.iter().filter_map(|upload| {
                let storage = graph.storages().get(upload.weight.index())?;
                Some((upload, storage))
            });
            let bytes: usize = storages.clone().map(|(_, storage)| storage.bytes).sum();
            let uploads = self.uploads.len();
            let _ = writeln!(text, "uploads: {uploads}, {}", plural(bytes, "byte"));
            for (upload, storage) in storages {
                let (device, before) = (name(upload.device), upload.before);
                let _ = writeln!(text, "  {} to {device} before {before}", storage.name);
            }
        }
        if self.copies.is_empty() {
            return text;
        }
        let bytes: usize = self.copies.iter().map(|copy| copy.bytes.len()).sum();
        let copies = self.copies.len();
        let _ = writeln!(text, "copies: {copies}, {}", plural(bytes, "byte"));
        for copy in &self.copies {
            let storage = graph.storages().get(copy.storage.index());
            let storage = storage.map_or("?", |storage| storage.name.as_str());
            let after = match copy.after {
                Some(segment) => format!("behind {segment}"),
                None => "at first".to_owned(),
            };
            let before = match copy.before {
                last if last == self.segments.len() => "at last".to_owned(),
                segment => format!("before {segment}"),
            };
            let rows = copy.limit.map_or_else(String::new, |limit| {
                let rows = graph.scalars().get(limit.rows.index());
                rows.map_or_else(String::new, |rows| format!(", {} rows,", rows.name))
            });
            let _ = writeln!(
                text,
                "  {storage}[{:?}]{rows} from {} {after} to {} {before}",
                copy.bytes,
                name(copy.from),
                name(copy.to)
            );
        }
        text
    }
}

/// The replicas in the making.
#[derive(Default)]
struct Replicas {
    found: Vec<Replica>,
    by_place: HashMap<(StorageId, DeviceId), usize>,
}

impl Replicas {
    fn touch(&mut self, storage: StorageId, device: DeviceId, position: usize) {
        let at = *self.by_place.entry((storage, device)).or_insert_with(|| {
            self.found.push(Replica {
                storage,
                device,
                lifetime: Lifetime {
                    start: position,
                    end: position,
                },
            });
            self.found.len() - 1
        });
        if let Some(replica) = self.found.get_mut(at) {
            replica.lifetime.start = replica.lifetime.start.min(position);
            replica.lifetime.end = replica.lifetime.end.max(position);
        }
    }
}

/// The streamed weights in the making.
#[derive(Default)]
struct Streams<'g> {
    /// The layer that the last segment streams, if it streams any.
    segment_layer: Option<&'g str>,
    /// By device, the layers before and at this point, each with its first segment.
    layers: HashMap<DeviceId, [Option<(&'g str, usize)>; 2]>,
    uploaded: HashSet<(StorageId, DeviceId)>,
}

impl<'g> Streams<'g> {
    /// Whether a node that reads weights of `layer` can join the last segment: a segment streams
    /// one layer.
    fn fits_segment(&self, layer: Option<&'g str>) -> bool {
        layer.is_none() || self.segment_layer.is_none() || layer == self.segment_layer
    }

    fn read(
        &mut self,
        layer: &'g str,
        weights: impl Iterator<Item = StorageId>,
        device: DeviceId,
        segment: usize,
        uploads: &mut Vec<Upload>,
    ) {
        self.segment_layer = Some(layer);
        let [before, at] = self.layers.entry(device).or_default();
        if at.is_none_or(|(name, _)| name != layer) {
            *before = at.replace((layer, segment));
        }
        let before = before.map_or(segment, |(_, first)| first);
        for weight in weights {
            if self.uploaded.insert((weight, device)) {
                uploads.push(Upload {
                    weight,
                    device,
                    before,
                });
            }
        }
    }
}

/// Where segments end that could be longer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cuts<'c> {
    /// The most nodes of a segment.
    pub max_nodes: Option<NonZeroUsize>,
    /// Nodes that begin a segment, in program order.
    pub starts: &'c [NodeId],
}

/// [`schedule_with`] no more than `max_nodes` nodes in a segment.
pub fn schedule(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    max_nodes: Option<NonZeroUsize>,
) -> Schedule {
    let cuts = Cuts {
        max_nodes,
        ..Cuts::default()
    };
    schedule_with(graph, liveness, placement, cuts)
}

/// Cuts the needed nodes into the longest segments that `cuts` allows, each run by the owner of what
/// it writes, and plans the copies. A layer of streamed weights begins a segment of its own.
pub fn schedule_with(
    graph: &Graph,
    liveness: &Liveness,
    placement: &Placement,
    cuts: Cuts<'_>,
) -> Schedule {
    let max_nodes = cuts.max_nodes;
    let mut starts = cuts.starts.iter().peekable();
    let mut schedule = Schedule::default();
    let mut replicas = Replicas::default();
    // By segment, the positions of its first and last node.
    let mut extents: Vec<(usize, usize)> = Vec::new();
    let mut streams = Streams::default();
    let home = |id: StorageId| placement.home(id).unwrap_or(DeviceId::FIRST);
    let storages = || graph.storage_ids().zip(graph.storages());
    let mut holders: Vec<Holders> = storages()
        .map(|(id, storage)| Holders::before(storage.kind, storage.bytes, home(id)))
        .collect();
    for (position, &id) in liveness.nodes().iter().enumerate() {
        let Some(node) = graph.node(id) else { continue };
        let device = placement.owner(node.output().storage, position);
        let device = device.unwrap_or(DeviceId::FIRST);
        let streamed = |value: &&Value| placement.is_streamed(value.storage, device);
        let read = node
            .inputs()
            .find(streamed)
            .map(|value| node.storage_of(value));
        let layer = read.map(|weight| layer_of(&weight.name).unwrap_or(&weight.name));
        // The node of a start may not be needed; then the next one begins a segment.
        let mut starts_here = false;
        while starts.next_if(|&&start| start <= id).is_some() {
            starts_here = true;
        }
        match schedule.segments.last_mut().zip(extents.last_mut()) {
            Some((segment, extent))
                if segment.device == device
                    && !starts_here
                    && max_nodes.is_none_or(|most| segment.nodes.len() < most.get())
                    && streams.fits_segment(layer) =>
            {
                segment.nodes.push(id);
                extent.1 = position;
            }
            _ => {
                let nodes = vec![id];
                let groups = Vec::new();
                schedule.segments.push(Segment {
                    device,
                    nodes,
                    groups,
                });
                extents.push((position, position));
                streams.segment_layer = None;
            }
        }
        let segment = extents.len() - 1;
        if let Some(layer) = layer {
            let weights = node.inputs().filter(streamed).map(|value| value.storage);
            streams.read(layer, weights, device, segment, &mut schedule.uploads);
        }
        let copied_in = |value: &Value| {
            let kind = node.storage_of(value).kind;
            !matches!(kind, StorageKind::Weight | StorageKind::Input)
        };
        for (i, input) in node.inputs().enumerate() {
            replicas.touch(input.storage, device, position);
            let holders = holders.get_mut(input.storage.index());
            if let Some(holders) = holders.filter(|_| copied_in(input)) {
                let copies = &mut schedule.copies;
                let needed = (input.byte_span(), Limit::of(node, i, input));
                holders.fetch(input.storage, needed, device, segment, copies);
            }
        }
        for value in node.writes() {
            replicas.touch(value.storage, device, position);
            let Some(holders) = holders.get_mut(value.storage.index()) else {
                continue;
            };
            let span = value.byte_span();
            if !writes_whole_span(node) {
                let copies = &mut schedule.copies;
                let needed = (span.clone(), None);
                holders.fetch(value.storage, needed, device, segment, copies);
            }
            holders.write(span, device, segment);
        }
    }
    let end = schedule.segments.len();
    for ((id, storage), holders) in storages().zip(&mut holders) {
        if matches!(storage.kind, StorageKind::State | StorageKind::Output) {
            let needed = (0..storage.bytes, None);
            holders.fetch(id, needed, home(id), end, &mut schedule.copies);
        }
    }
    let last = liveness.nodes().len().saturating_sub(1);
    for copy in &schedule.copies {
        let first_needed = extents.get(copy.before).map_or(last, |extent| extent.0);
        let extent = copy.after.and_then(|segment| extents.get(segment));
        replicas.touch(copy.storage, copy.to, first_needed);
        replicas.touch(copy.storage, copy.from, extent.map_or(0, |extent| extent.1));
    }
    for upload in &schedule.uploads {
        let queued = extents.get(upload.before).map_or(0, |extent| extent.0);
        replicas.touch(upload.weight, upload.device, queued);
    }
    for replica in &mut replicas.found {
        let storage = graph.storages().get(replica.storage.index());
        let kind = storage.map(|storage| storage.kind);
        let at_home = home(replica.storage) == replica.device;
        let whole_run = match kind {
            Some(StorageKind::Weight) => !placement.is_streamed(replica.storage, replica.device),
            Some(StorageKind::State) => at_home,
            _ => false,
        };
        if whole_run || kind == Some(StorageKind::Input) {
            replica.lifetime.start = 0;
        }
        if whole_run || (kind == Some(StorageKind::Output) && at_home) {
            replica.lifetime.end = last;
        }
    }
    schedule.replicas = replicas.found;
    schedule
}
