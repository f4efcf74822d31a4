//! Observers, which read values while a plan runs.

use std::ops::ControlFlow;

use kovar_core::backend::{Backend, Binding, Fence, Program};
use kovar_core::{Graph, NodeId, Value};

use super::error::RunError;
use crate::device::DeviceId;
use crate::run::Bound;
use crate::schedule::Segment;
use crate::schedule::fusion::backend_segment;

/// A segment that was just queued.
pub struct ObservedSegment<'r> {
    pub(crate) graph: &'r Graph,
    pub(crate) segment: &'r Segment,
    pub(crate) backend: &'r dyn Backend,
    pub(crate) program: &'r dyn Program,
    pub(crate) bound: &'r Bound,
}

/// A function that is called after each segment of an observed run. A break ends the run with
/// [`RunError::Cancelled`] and leaves the states as the segments so far left them at their homes.
pub type Observer<'o> = dyn FnMut(&ObservedSegment<'_>) -> ControlFlow<()> + 'o;

impl<'r> ObservedSegment<'r> {
    /// The graph.
    pub fn graph(&self) -> &'r Graph {
        self.graph
    }

    /// The segment's nodes, in program order.
    pub fn nodes(&self) -> &'r [NodeId] {
        &self.segment.nodes
    }

    /// The device that runs them.
    pub fn device(&self) -> DeviceId {
        self.segment.device
    }

    /// The kernel that runs each node.
    pub fn kernels(&self) -> Vec<&'static str> {
        self.program.kernels()
    }

    /// Waits for the segment.
    ///
    /// # Errors
    /// The device's.
    pub fn wait(&self) -> Result<(), RunError> {
        let queue = self.backend.queue();
        Ok(queue.wait(queue.fence()?)?)
    }

    /// The point after the segment in its device's queue.
    ///
    /// # Errors
    /// The device's.
    pub fn fence(&self) -> Result<Fence, RunError> {
        Ok(self.backend.queue().fence()?)
    }

    /// Waits for the work before a fence of the segment's device.
    ///
    /// # Errors
    /// The device's.
    pub fn wait_for(&self, fence: Fence) -> Result<(), RunError> {
        Ok(self.backend.queue().wait(fence)?)
    }

    /// Waits for the segment and reads the elements of a value that one of its nodes read or
    /// wrote, row-major without gaps. A later node of the segment may have overwritten the value of
    /// an earlier one, and a value within a group of fused nodes may never be in memory; segments
    /// of one node have neither problem.
    ///
    /// # Errors
    /// [`RunError::NotInMemory`], a device's.
    pub fn read(&self, value: &Value) -> Result<Vec<u8>, RunError> {
        self.check_written(value)?;
        let bytes = self.read_span(value)?;
        if value.layout.is_contiguous() {
            return Ok(bytes);
        }
        let (unit, start) = (value.dtype.block_bytes(), value.byte_span().start);
        let mut gathered = Vec::with_capacity(bytes.len());
        for at in value.block_offsets() {
            gathered.extend_from_slice(&bytes[at - start..at - start + unit]);
        }
        Ok(gathered)
    }

    /// Waits for the segment and replaces the elements of a value that it wrote, in the order of
    /// [`read`](Self::read). Later segments use the new elements.
    ///
    /// # Errors
    /// [`RunError::NotInMemory`], [`RunError::OutputSize`], a device's.
    pub fn replace(&self, value: &Value, elements: &[u8]) -> Result<(), RunError> {
        self.check_written(value)?;
        let (span, unit) = (value.byte_span(), value.dtype.block_bytes());
        let expected = value.block_offsets().len() * unit;
        if elements.len() != expected {
            return Err(RunError::OutputSize {
                name: self.name(value),
                expected,
                found: elements.len(),
            });
        }
        if span.is_empty() {
            return Ok(());
        }
        let scattered;
        let bytes = if value.layout.is_contiguous() {
            elements
        } else {
            let mut bytes = self.read_span(value)?;
            for (at, block) in value.block_offsets().zip(elements.chunks_exact(unit)) {
                bytes[at - span.start..at - span.start + unit].copy_from_slice(block);
            }
            scattered = bytes;
            &scattered
        };
        let binding = self.binding(value)?;
        let (queue, offset) = (self.backend.queue(), binding.offset + span.start);
        Ok(queue.write(&binding.buffer, offset, bytes)?)
    }

    /// Refuses a value that overlaps a fused node's result which is not written to memory.
    fn check_written(&self, value: &Value) -> Result<(), RunError> {
        let segment = backend_segment(self.graph, self.segment);
        let mut groups = self.segment.groups.iter().map(|group| segment.group(group));
        let missing = groups.any(|group| {
            let mut results = group.iter().map(|node| node.output());
            results.any(|result| {
                result.overlaps(value) && !group.writes().any(|written| written == result)
            })
        });
        if missing {
            return Err(RunError::NotInMemory {
                name: self.name(value),
                reason: "it only exists within a group of fused nodes",
            });
        }
        Ok(())
    }

    /// Where the storage of a value lies.
    fn binding(&self, value: &Value) -> Result<&'r Binding, RunError> {
        let binding = self.bound.binding(self.device(), value.storage);
        binding.ok_or_else(|| RunError::NotInMemory {
            name: self.name(value),
            reason: "its storage has no plain memory on the device",
        })
    }

    fn name(&self, value: &Value) -> String {
        let storage = self.graph.storage(value.storage);
        storage.map_or_else(String::new, |storage| storage.name.clone())
    }

    /// The bytes from a value's first element to its last.
    fn read_span(&self, value: &Value) -> Result<Vec<u8>, RunError> {
        let span = value.byte_span();
        if span.is_empty() {
            return Ok(Vec::new());
        }
        let binding = self.binding(value)?;
        let (queue, offset) = (self.backend.queue(), binding.offset + span.start);
        Ok(queue.read(&binding.buffer, offset, span.len())?.wait()?)
    }
}
