//! Fusion: which nodes of a segment run as one kernel.
//!
//! kovar-core has the table of fusions ([`Fusion`]), and the backend says which groups it has a
//! kernel for. The nodes of a group run at the same time: their operands live until all of them are
//! done, and they write over no other operand. A result that only the group reads is never written
//! and takes no memory.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use kovar_core::backend::{Backend, Segment, SegmentItem, Support};
use kovar_core::fusion::{FusedNodes, Fusion, Group, link};
use kovar_core::{Graph, NodeId, NodeRef, StorageKind, Value};

use super::segment::{self, Schedule};
use crate::device::{DeviceId, Devices};
use crate::intervals::ByteSet;
use crate::place::Inputs;
use crate::place::liveness::{Liveness, writes_whole_span};
use crate::plural::plural;

/// Finds the groups for which the devices have kernels, and adjusts the lifetimes of the replicas.
/// Each node is in one group at most. The first node that can begin a group begins one, with the
/// first row of the table that matches.
pub(crate) fn fuse(inputs: Inputs<'_>, liveness: &Liveness, schedule: &mut Schedule) {
    let graph = inputs.graph;
    let finder = Finder {
        graph,
        accesses: Accesses::of(graph, liveness),
    };
    let mut first = 0;
    for segment in &mut schedule.segments {
        segment.groups = finder.groups(segment, inputs.devices.at(segment.device), first);
        first += segment.nodes.len();
    }
    if schedule.segments.iter().any(|s| !s.groups.is_empty()) {
        adjust_replicas(graph, schedule);
    }
}

/// One line for each group.
pub fn dump(graph: &Graph, schedule: &Schedule) -> String {
    let groups = || groups(graph, schedule);
    let fused: usize = groups().map(|(_, nodes)| nodes.nodes.len()).sum();
    let mut text = format!(
        "fusion: {} of {}\n",
        plural(groups().count(), "group"),
        plural(fused, "node")
    );
    for (_, group) in groups() {
        let ids = group.nodes.iter().map(|id| id.index().to_string());
        let ids: Vec<String> = ids.collect();
        let _ = write!(text, "  {}: {}", group.fusion.name(), ids.join(", "));
        let names = |kept: bool| {
            let of = group.linked().filter(move |&(_, _, k)| k == kept);
            let names = of.map(|(node, ..)| node.storage_of(node.output()).name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let _ = write!(text, ", writes {}", names(true));
        let within = names(false);
        if !within.is_empty() {
            let _ = write!(text, ", not {within}");
        }
        text.push('\n');
    }
    text
}

/// All groups with their devices, in program order.
pub(crate) fn groups<'g>(
    graph: &'g Graph,
    schedule: &'g Schedule,
) -> impl Iterator<Item = (DeviceId, FusedNodes<'g>)> {
    schedule.segments.iter().flat_map(move |segment| {
        let of = backend_segment(graph, segment);
        let groups = segment.groups.iter();
        groups.map(move |group| (segment.device, of.group(group)))
    })
}

/// A segment in the form that the backend takes.
pub(crate) fn backend_segment<'g>(graph: &'g Graph, segment: &'g segment::Segment) -> Segment<'g> {
    Segment {
        graph,
        nodes: &segment.nodes,
        groups: &segment.groups,
    }
}

/// The values that each node of a segment reads from and writes to memory.
pub(crate) fn accesses<'g>(
    graph: &'g Graph,
    segment: &'g segment::Segment,
) -> impl Iterator<Item = (NodeId, &'g Value)> {
    let items = backend_segment(graph, segment).items();
    let each = items.flat_map(move |item| match item {
        SegmentItem::Node(id) => vec![(id, None, true)],
        SegmentItem::Group(group) => {
            let linked = group.nodes.iter().zip(group.linked());
            linked
                .map(|(&id, (_, link, kept))| (id, link, kept))
                .collect()
        }
    });
    each.flat_map(move |(id, link, kept)| {
        let node = graph.node(id);
        let reads = node.into_iter().flat_map(|node| node.inputs().enumerate());
        let reads = reads
            .filter(move |&(i, _)| Some(i) != link)
            .map(|(_, read)| read);
        let writes = node
            .filter(|_| kept)
            .into_iter()
            .flat_map(|node| node.writes());
        reads.chain(writes).map(move |value| (id, value))
    })
}

/// Whether a value is read and written as the same elements, so that a kernel can read each element
/// before it writes it.
pub(crate) fn is_same_window(read: &Value, written: &Value, writer: NodeRef<'_>) -> bool {
    let same = read.dtype == written.dtype && read.layout == written.layout;
    same && read.storage == written.storage && !writer.op().writes_partially()
}

/// A node's access to a storage.
struct Access<'g> {
    position: usize,
    value: &'g Value,
    /// Whether it needs the bytes of earlier writers, as reads and partial writes do.
    keeps: bool,
}

/// By storage, the accesses in program order.
struct Accesses<'g>(Vec<Vec<Access<'g>>>);

impl<'g> Accesses<'g> {
    fn of(graph: &'g Graph, liveness: &Liveness) -> Self {
        let mut all: Vec<Vec<Access<'g>>> = Vec::new();
        all.resize_with(graph.storages().len(), Vec::new);
        for (position, _, node) in liveness.in_order(graph) {
            let reads = node.inputs().map(|value| (value, true));
            let writes = node.writes().map(|value| (value, !writes_whole_span(node)));
            for (value, keeps) in reads.chain(writes) {
                all[value.storage.index()].push(Access {
                    position,
                    value,
                    keeps,
                });
            }
        }
        Self(all)
    }

    /// Whether bytes of `value` are needed after position `last`.
    fn are_needed_after(&self, value: &Value, kind: StorageKind, last: usize) -> bool {
        let mut rest = ByteSet::default();
        rest.set(value.byte_span(), ());
        let accesses = &self.0[value.storage.index()];
        let later = accesses.partition_point(|access| access.position <= last);
        for access in &accesses[later..] {
            let span = access.value.byte_span();
            if access.keeps && rest.overlaps(span.clone()) {
                return true;
            }
            if !access.keeps {
                rest.clear(span);
            }
        }
        let outlives = matches!(kind, StorageKind::State | StorageKind::Output);
        outlives && !rest.is_empty()
    }
}

struct Finder<'g> {
    graph: &'g Graph,
    accesses: Accesses<'g>,
}

impl<'g> Finder<'g> {
    /// The groups of a segment whose first node is at position `first`.
    fn groups(&self, segment: &segment::Segment, device: &dyn Backend, first: usize) -> Vec<Group> {
        let nodes: Vec<NodeRef<'_>> = self.graph.nodes_of(&segment.nodes).collect();
        let mut groups = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            let group = Fusion::all().iter().find_map(|fusion| {
                let range = at..at + fusion.n_nodes();
                let of_group = nodes
                    .get(range.clone())
                    .filter(|nodes| fusion.fits(nodes))?;
                let group = Group {
                    fusion,
                    kept: self.kept(of_group, first + range.end - 1)?,
                    nodes: range,
                };
                let fused = backend_segment(self.graph, segment).group(&group);
                (device.fuses(fused) == Support::Yes).then_some(group)
            });
            at = group.as_ref().map_or(at + 1, |group| group.nodes.end);
            groups.extend(group);
        }
        groups
    }

    /// By node of a group that ends at position `last`, whether its result has to be written;
    /// `None` if the nodes cannot run as one kernel.
    fn kept(&self, nodes: &[NodeRef<'g>], last: usize) -> Option<Vec<bool>> {
        let mut kept = Vec::with_capacity(nodes.len());
        for (i, &node) in nodes.iter().enumerate() {
            let result = node.output();
            let later = nodes.get(i + 1..).unwrap_or_default();
            let mut over = later.iter().filter(|later| later.output().overlaps(result));
            kept.push(match over.next() {
                // A later node of the group must overwrite all of it, or a part would be lost.
                Some(&over) if is_same_window(result, over.output(), over) => false,
                Some(_) => return None,
                None if later.is_empty() => true,
                None => {
                    let kind = node.storage_of(result).kind;
                    self.accesses.are_needed_after(result, kind, last)
                }
            });
        }
        let mut before: Option<NodeRef<'_>> = None;
        for (i, &node) in nodes.iter().enumerate() {
            let linked = before.and_then(|before| link(before, node));
            before = Some(node);
            for (_, read) in node
                .inputs()
                .enumerate()
                .filter(|&(at, _)| Some(at) != linked)
            {
                let (earlier, later) = nodes.split_at_checked(i)?;
                let in_order = earlier.iter().all(|node| !node.output().overlaps(read));
                let written = later.iter().zip(kept.get(i..)?).filter(|&(_, &kept)| kept);
                let mut over = written.filter(|(node, _)| node.output().overlaps(read));
                if !in_order || !over.all(|(&node, _)| is_same_window(read, node.output(), node)) {
                    return None;
                }
            }
        }
        Some(kept)
    }
}

/// Extends the lifetimes of a group's operands to the whole group, and removes the replicas of
/// temporaries that only exist within groups.
fn adjust_replicas(graph: &Graph, schedule: &mut Schedule) {
    let mut touched = HashSet::new();
    let mut extents = Vec::new();
    let mut position = 0;
    for segment in &schedule.segments {
        let place = |value: &Value| (value.storage, segment.device);
        touched.extend(accesses(graph, segment).map(|(_, value)| place(value)));
        let of = backend_segment(graph, segment);
        for group in &segment.groups {
            let (first, end) = (position + group.nodes.start, position + group.nodes.end);
            let group = of.group(group);
            let values = group.reads().chain(group.writes());
            extents.extend(values.map(|value| (place(value), first, end - 1)));
        }
        position += segment.nodes.len();
    }
    for copy in &schedule.copies {
        touched.insert((copy.storage, copy.from));
        touched.insert((copy.storage, copy.to));
    }
    schedule.replicas.retain(|replica| {
        let kind = graph.storages()[replica.storage.index()].kind;
        kind != StorageKind::Temp || touched.contains(&(replica.storage, replica.device))
    });
    let replicas = schedule.replicas.iter_mut();
    let mut by_place: HashMap<_, _> = replicas
        .map(|replica| ((replica.storage, replica.device), replica))
        .collect();
    for (place, first, last) in extents {
        if let Some(replica) = by_place.get_mut(&place) {
            replica.lifetime.extend(first, last);
        }
    }
}
