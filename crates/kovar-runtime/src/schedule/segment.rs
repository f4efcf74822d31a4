//! Segments and copies: what each device runs, and when bytes cross between devices.

use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::fusion::Group;
use kovar_core::{Graph, NodeId, StorageId};

use super::transfer::Copy;
use crate::device::{DeviceId, Devices};
use crate::place::liveness::Lifetime;
use crate::plural::plural;

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
    /// The segment before which it is queued: the first of the layer before the one that reads the
    /// weight, so that it crosses while that layer computes.
    pub before: usize,
}

/// What a run queues on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
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
    pub fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::with_capacity(self.segments.len() + 2 * self.copies.len());
        let copies = || self.copies.iter().enumerate();
        // Grouped by segment, so that no search is needed below.
        let mut reads: Vec<Vec<usize>> = vec![Vec::new(); self.segments.len()];
        for (at, copy) in copies() {
            match copy.after.and_then(|segment| reads.get_mut(segment)) {
                Some(reads) => reads.push(at),
                None => actions.push(Action::Read(at)),
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
                actions.push(Action::Write(at));
            }
            let uploads = uploads.next().unwrap_or_default();
            actions.extend(uploads.into_iter().map(Action::Upload));
            actions.push(Action::Launch(segment));
            actions.extend(reads.into_iter().map(Action::Read));
        }
        actions.extend(writes.map(|(at, _)| Action::Write(at)));
        actions
    }

    /// The bytes that cross between devices in a run with these scalars.
    pub fn copied_bytes(&self, scalars: &[i32]) -> usize {
        let copies = self.copies.iter();
        copies.map(|copy| copy.bytes_of(scalars).len()).sum()
    }

    /// One line for each segment and each copy.
    pub fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
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
            let storages =
                uploads.filter_map(|upload| Some((upload, graph.storage(upload.weight)?)));
            let bytes: usize = storages.clone().map(|(_, storage)| storage.bytes).sum();
            let uploads = self.uploads.len();
            let _ = writeln!(text, "uploads: {uploads}, {}", plural(bytes, "byte"));
            for (upload, storage) in storages {
                let (device, before) = (devices.name(upload.device), upload.before);
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
            let storage = graph
                .storage(copy.storage)
                .map_or("?", |storage| storage.name.as_str());
            let after = match copy.after {
                Some(segment) => format!("after {segment}"),
                None => "first".to_owned(),
            };
            let before = match copy.before {
                last if last == self.segments.len() => "last".to_owned(),
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
                devices.name(copy.from),
                devices.name(copy.to)
            );
        }
        text
    }
}
