//! Violations that the checkers report: a plan that breaks an invariant has a defect of a pass.

use std::ops::Range;

/// A broken invariant of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A node that runs on another device than the one that owns what it writes.
    #[error("node {node} runs on device {runs_on} and writes `{storage}` of device {owner}")]
    WritesForeign {
        /// The node's index.
        node: usize,
        /// The position of the device that it runs on.
        runs_on: usize,
        /// The storage's name.
        storage: String,
        /// The position of the storage's owner.
        owner: usize,
    },
    /// A node that reads a storage that is not on its device.
    #[error("node {node} runs on device {runs_on} and reads `{storage}`, which is not there")]
    ReadsForeign {
        /// The node's index.
        node: usize,
        /// The position of the device that it runs on.
        runs_on: usize,
        /// The storage's name.
        storage: String,
    },
    /// Segments that do not run the needed nodes once each, in program order.
    #[error("the segments run node {found:?} where node {expected:?} comes in program order")]
    Order {
        /// The index of the node that should run.
        expected: Option<usize>,
        /// The index of the node that runs.
        found: Option<usize>,
    },
    /// Bytes that differ from those that program order gives.
    #[error(
        "{} finds bytes {bytes:?} of `{storage}` stale on device {device}",
        node.map_or_else(|| "the caller".to_owned(), |node| format!("node {node}"))
    )]
    Stale {
        /// The index of the node that reads them; none after the run.
        node: Option<usize>,
        /// The storage's name.
        storage: String,
        /// The position of the device.
        device: usize,
        /// The bytes, counted from the start of the storage.
        bytes: Range<usize>,
    },
    /// An invalid group of fused nodes.
    #[error("segment {segment} fuses nodes {nodes:?} of it, {reason}")]
    Group {
        /// The segment's index.
        segment: usize,
        /// The positions of the nodes in the segment.
        nodes: Range<usize>,
        /// What is wrong.
        reason: &'static str,
    },
    /// A group of fused nodes that writes bytes which it also reads or writes as other elements, in
    /// undefined order.
    #[error("{fusion} up to node {node} accesses `{touched}` while it writes `{written}` over it")]
    GroupOverlap {
        /// The name of the fusion.
        fusion: &'static str,
        /// The index of the group's last node.
        node: usize,
        /// The name of the storage that it reads or writes.
        touched: String,
        /// The name of the storage that it writes over that.
        written: String,
    },
    /// A copy that is written before it was read.
    #[error("copy {copy} is written before it is read")]
    NotRead {
        /// The copy's index.
        copy: usize,
    },
    /// A storage without memory, or with less than it needs.
    #[error("`{storage}` has no memory of its size")]
    NoMemory {
        /// The storage's name.
        storage: String,
    },
    /// Two storages that are needed at the same time and share bytes.
    #[error("`{first}` and `{second}` are needed at the same time and share memory")]
    SharedMemory {
        /// The one storage's name.
        first: String,
        /// The other's.
        second: String,
    },
}
