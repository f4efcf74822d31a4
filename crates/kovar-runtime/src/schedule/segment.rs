//! Segments and copies: what each device runs, and when bytes cross between devices.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::fusion::Group;
use kovar_core::{Graph, NodeId, StorageId};

use super::transfer::Copy;
use crate::device::{DeviceId, Devices};
use crate::plural::plural;

/// The positions of needed nodes, in program order, between which bytes are needed, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first access; 0 for bytes from before the run.
    pub start: usize,
    /// The last access; the last position for bytes that are kept after the run.
    pub end: usize,
}

impl Lifetime {
    /// Whether both include some position.
    pub fn overlaps(&self, other: &Lifetime) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Extends it to positions.
    pub(crate) fn extend(&mut self, start: usize, end: usize) {
        self.start = self.start.min(start);
        self.end = self.end.max(end);
    }
}

/// Consecutive nodes that one device runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The device.
    pub device: DeviceId,
    /// The nodes, in program order.
    pub nodes: Vec<NodeId>,
    /// Groups of them that run as one kernel each, in program order; the fusion pass fills them in.
    pub groups: Vec<Group>,
}

/// Memory of one device for one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The storage.
    pub storage: StorageId,
    /// The device.
    pub device: DeviceId,
    /// The positions of needed nodes between which it holds bytes that matter.
    pub lifetime: Lifetime,
}

/// The transfer of a streamed weight from the host to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The weight.
    pub weight: StorageId,
    /// The device.
    pub device: DeviceId,
    /// The segment before which it is queued: the first segment of the streamed layer before its
    /// own, so that it crosses while that layer computes.
    pub before: usize,
}

/// What a run queues on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
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
/// order, so only the write of a copy waits: for the bytes of its read. The read is queued as soon
/// as the bytes are computed, and waited for when they are needed.
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
    /// What a run queues after the inputs were written, in order.
    pub(crate) fn actions(&self) -> Vec<Action> {
        // By segment, what comes just before it and just after it.
        let mut before = vec![Vec::new(); self.segments.len() + 1];
        let mut after = vec![Vec::new(); self.segments.len()];
        let mut actions = Vec::with_capacity(self.segments.len() + 2 * self.copies.len());
        for (at, copy) in self.copies.iter().enumerate() {
            before[copy.before].push(Action::Write(at));
            let reads = copy
                .after
                .map_or(&mut actions, |segment| &mut after[segment]);
            reads.push(Action::Read(at));
        }
        for (at, upload) in self.uploads.iter().enumerate() {
            before[upload.before].push(Action::Upload(at));
        }
        let mut before = before.into_iter();
        for (segment, after) in after.into_iter().enumerate() {
            actions.extend(before.next().into_iter().flatten());
            actions.push(Action::Launch(segment));
            actions.extend(after);
        }
        actions.extend(before.flatten());
        actions
    }

    /// The bytes that cross between devices in a run with these scalars.
    pub fn copied_bytes(&self, scalars: &[i32]) -> usize {
        let copies = self.copies.iter();
        copies.map(|copy| copy.bytes_of(scalars).len()).sum()
    }

    /// One line for each segment, upload, copy and replica.
    pub(crate) fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
        let mut text = format!("segments: {}\n", self.segments.len());
        for (i, segment) in self.segments.iter().enumerate() {
            let first = segment.nodes.first().map_or(0, |id| id.index());
            let last = segment.nodes.last().map_or(0, |id| id.index());
            let nodes = graph.nodes_of(&segment.nodes);
            let flops: u64 = nodes.map(|node| node.cost().flops).sum();
            let _ = writeln!(
                text,
                "  {i}: {}, {} ({first} to {last}), {flops} operations",
                devices.name(segment.device),
                plural(segment.nodes.len(), "node")
            );
        }
        if !self.uploads.is_empty() {
            let uploads = self.uploads.iter();
            let storages = uploads.map(|upload| (upload, &graph.storages()[upload.weight.index()]));
            let bytes: usize = storages.clone().map(|(_, storage)| storage.bytes).sum();
            let uploads = self.uploads.len();
            let _ = writeln!(text, "uploads: {uploads}, {}", plural(bytes, "byte"));
            for (upload, storage) in storages {
                let (device, before) = (devices.name(upload.device), upload.before);
                let _ = writeln!(text, "  {} to {device} before {before}", storage.name);
            }
        }
        if !self.copies.is_empty() {
            let bytes: usize = self.copies.iter().map(|copy| copy.bytes.len()).sum();
            let copies = self.copies.len();
            let _ = writeln!(text, "copies: {copies}, {}", plural(bytes, "byte"));
        }
        for copy in &self.copies {
            let storage = &graph.storages()[copy.storage.index()].name;
            let after = match copy.after {
                Some(segment) => format!("after {segment}"),
                None => "first".to_owned(),
            };
            let before = match copy.before {
                last if last == self.segments.len() => "last".to_owned(),
                segment => format!("before {segment}"),
            };
            let rows = copy.limit.map_or_else(String::new, |limit| {
                format!(", {} rows,", graph.scalars()[limit.rows.index()].name)
            });
            let _ = writeln!(
                text,
                "  {storage}[{:?}]{rows} from {} {after} to {} {before}",
                copy.bytes,
                devices.name(copy.from),
                devices.name(copy.to)
            );
        }
        let _ = writeln!(text, "replicas: {}", self.replicas.len());
        for replica in &self.replicas {
            let storage = &graph.storages()[replica.storage.index()];
            let (kind, name, bytes) = (storage.kind.name(), &storage.name, storage.bytes);
            let (device, Lifetime { start, end }) = (replica.device, replica.lifetime);
            let device = devices.name(device);
            let _ = writeln!(
                text,
                "  {kind} `{name}`, {bytes} bytes on {device}: {start}..={end}"
            );
        }
        text
    }
}
