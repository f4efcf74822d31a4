//! Cuts the needed nodes into segments and plans the copies between devices.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use kovar_core::{Graph, NodeId, NodeRef, StorageId, StorageKind};

use super::memory::lies_in_arena;
use super::segment::{Lifetime, Replica, Schedule, Segment, Upload};
use super::transfer::{Limit, StorageReplicas};
use crate::device::DeviceId;
use crate::place::liveness::{Liveness, writes_whole_span};
use crate::place::placement::Placement;
use crate::place::{Inputs, layer_of};

/// Cuts the needed nodes into the longest segments that the policy allows, and plans the copies.
/// Each segment runs on the device that owns what it writes. A layer of streamed weights begins a
/// segment.
pub(crate) fn schedule(inputs: Inputs<'_>, liveness: &Liveness, placement: &Placement) -> Schedule {
    let (graph, policy) = (inputs.graph, inputs.policy);
    let mut scheduler = Scheduler::new(graph, placement);
    let mut starts = policy.segment_starts.iter().peekable();
    for (position, id, node) in liveness.in_order(graph) {
        // The node of a start may not be needed; then the next one begins a segment.
        let mut starts_here = false;
        while starts.next_if(|&&start| start <= id).is_some() {
            starts_here = true;
        }
        let device = placement.owner(node.output().storage, position);
        let layer = scheduler.streamed_layer(node, device);
        scheduler.add_to_segment(id, position, device, layer, |segment| {
            let most = policy.max_segment_nodes;
            starts_here || most.is_some_and(|most| segment.nodes.len() >= most.get())
        });
        if let Some(layer) = layer {
            scheduler.stream(node, layer, device);
        }
        scheduler.access(node, position, device);
    }
    scheduler.return_home();
    scheduler.finish(liveness.nodes().len().saturating_sub(1))
}

struct Scheduler<'g> {
    graph: &'g Graph,
    placement: &'g Placement,
    schedule: Schedule,
    /// By segment, the positions of its first and last node.
    extents: Vec<(usize, usize)>,
    /// By storage, which bytes are valid on which device.
    storages: Vec<StorageReplicas>,
    /// By storage and device, the index in the schedule's replicas.
    replicas: HashMap<(StorageId, DeviceId), usize>,
    streams: Streams<'g>,
}

/// The streamed weights so far.
#[derive(Default)]
struct Streams<'g> {
    /// The layer that the last segment streams, if it streams any.
    segment_layer: Option<&'g str>,
    /// By device, the previous and the current layer, each with its first segment.
    layers: HashMap<DeviceId, [Option<(&'g str, usize)>; 2]>,
    uploaded: HashSet<(StorageId, DeviceId)>,
}

impl<'g> Scheduler<'g> {
    fn new(graph: &'g Graph, placement: &'g Placement) -> Self {
        let storages = graph.storage_ids().zip(graph.storages());
        let storages = storages.map(|(id, storage)| {
            StorageReplicas::before_run(storage.kind, storage.bytes, placement.home(id))
        });
        Self {
            graph,
            placement,
            schedule: Schedule::default(),
            extents: Vec::new(),
            storages: storages.collect(),
            replicas: HashMap::new(),
            streams: Streams::default(),
        }
    }

    /// The layer whose weights a node streams to its device, if it streams any.
    fn streamed_layer(&self, node: NodeRef<'g>, device: DeviceId) -> Option<&'g str> {
        let mut inputs = node.inputs();
        let streamed = inputs.find(|value| self.placement.is_streamed(value.storage, device))?;
        let name = &node.storage_of(streamed).name;
        Some(layer_of(name).unwrap_or(name))
    }

    /// Adds a node to the last segment, or to a new one if the device changes, `must_end` says so,
    /// or the node streams another layer: a segment streams one layer.
    fn add_to_segment(
        &mut self,
        id: NodeId,
        position: usize,
        device: DeviceId,
        layer: Option<&'g str>,
        must_end: impl Fn(&Segment) -> bool,
    ) {
        let streaming = self.streams.segment_layer;
        let fits_layer = layer.is_none() || streaming.is_none() || layer == streaming;
        let last = self.schedule.segments.last_mut();
        match last.zip(self.extents.last_mut()) {
            Some((segment, extent))
                if segment.device == device && fits_layer && !must_end(segment) =>
            {
                segment.nodes.push(id);
                extent.1 = position;
            }
            _ => {
                self.schedule.segments.push(Segment {
                    device,
                    nodes: vec![id],
                    groups: Vec::new(),
                });
                self.extents.push((position, position));
                self.streams.segment_layer = None;
            }
        }
    }

    /// Plans the uploads of the streamed weights that a node of the last segment reads.
    fn stream(&mut self, node: NodeRef<'g>, layer: &'g str, device: DeviceId) {
        let segment = self.extents.len() - 1;
        self.streams.segment_layer = Some(layer);
        let [before, current] = self.streams.layers.entry(device).or_default();
        if current.is_none_or(|(name, _)| name != layer) {
            *before = current.replace((layer, segment));
        }
        let before = before.map_or(segment, |(_, first)| first);
        for value in node.inputs() {
            let weight = value.storage;
            if self.placement.is_streamed(weight, device)
                && self.streams.uploaded.insert((weight, device))
            {
                self.schedule.uploads.push(Upload {
                    weight,
                    device,
                    before,
                });
            }
        }
    }

    /// Notes what a node of the last segment reads and writes, and plans the copies that it needs.
    fn access(&mut self, node: NodeRef<'g>, position: usize, device: DeviceId) {
        let segment = self.extents.len() - 1;
        for (i, input) in node.inputs().enumerate() {
            self.touch(input.storage, device, position);
            let kind = node.storage_of(input).kind;
            if !matches!(kind, StorageKind::Weight | StorageKind::Input) {
                let needed = (input.byte_span(), Limit::of(node, i, input));
                self.fetch(input.storage, needed, device, segment);
            }
        }
        for value in node.writes() {
            self.touch(value.storage, device, position);
            if !writes_whole_span(node) {
                let needed = (value.byte_span(), None);
                self.fetch(value.storage, needed, device, segment);
            }
            self.storages[value.storage.index()].write(value.byte_span(), device, segment);
        }
    }

    /// Plans the copies that make bytes valid on a device before a segment.
    fn fetch(
        &mut self,
        storage: StorageId,
        needed: (Range<usize>, Option<Limit>),
        device: DeviceId,
        segment: usize,
    ) {
        let copies = &mut self.schedule.copies;
        self.storages[storage.index()].fetch(storage, needed, device, segment, copies);
    }

    /// Plans the copies that bring states and outputs to their homes after the last segment.
    fn return_home(&mut self) {
        let end = self.schedule.segments.len();
        for (id, storage) in self.graph.storage_ids().zip(self.graph.storages()) {
            if matches!(storage.kind, StorageKind::State | StorageKind::Output) {
                self.fetch(id, (0..storage.bytes, None), self.placement.home(id), end);
            }
        }
    }

    /// Extends the lifetime of a replica to a position.
    fn touch(&mut self, storage: StorageId, device: DeviceId, position: usize) {
        let replicas = &mut self.schedule.replicas;
        let at = *self.replicas.entry((storage, device)).or_insert_with(|| {
            let (start, end) = (position, position);
            replicas.push(Replica {
                storage,
                device,
                lifetime: Lifetime { start, end },
            });
            replicas.len() - 1
        });
        replicas[at].lifetime.extend(position, position);
    }

    /// Extends the lifetimes of replicas to the copies, the uploads, and the begin or end of the
    /// run, whose last node is at position `last`.
    fn finish(mut self, last: usize) -> Schedule {
        for at in 0..self.schedule.copies.len() {
            let copy = &self.schedule.copies[at];
            let (storage, from, to) = (copy.storage, copy.from, copy.to);
            let needed = self.extents.get(copy.before);
            let needed = needed.map_or(last, |extent| extent.0);
            let made = copy.after.map_or(0, |segment| self.extents[segment].1);
            self.touch(storage, to, needed);
            self.touch(storage, from, made);
        }
        for at in 0..self.schedule.uploads.len() {
            let upload = self.schedule.uploads[at];
            self.touch(upload.weight, upload.device, self.extents[upload.before].0);
        }
        for replica in &mut self.schedule.replicas {
            let kind = self.graph.storages()[replica.storage.index()].kind;
            let in_arena = lies_in_arena(self.graph, self.placement, replica);
            let at_home = self.placement.home(replica.storage) == replica.device;
            if !in_arena || kind == StorageKind::Input {
                replica.lifetime.start = 0;
            }
            if !in_arena || (kind == StorageKind::Output && at_home) {
                replica.lifetime.end = last;
            }
        }
        self.schedule
    }
}
