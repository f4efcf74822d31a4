//! Programs of a simulated device: the oracle, node by node.
//!
//! A group of fused nodes uses all freedom that a kernel has: what it writes is undefined until its
//! end, unless the group reads the same window.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{
    Binding, Kernel, MemoryMap, OwnedSegment, Program, Segment, SegmentItem, check_scalars,
};
use kovar_core::error::DeviceError;
use kovar_core::fusion::FusedNodes;
use kovar_core::ops::OpClass;
use kovar_core::{NodeRef, StorageKind, Value};

use super::memory::{Device, SimulatedMemory};
use super::options::Executor;
use crate::oracle::{Activations, Output, run_node};
use crate::tensor::{TensorData, TensorError, read_units, read_value, write_units, write_value};

#[derive(Clone, Debug)]
pub(super) struct SimulatedKernel {
    pub(super) device: Arc<Device>,
    pub(super) segment: OwnedSegment,
}

impl Kernel for SimulatedKernel {
    fn bind(&self, memory: &MemoryMap) -> Result<Arc<dyn Program>, DeviceError> {
        Ok(Arc::new(SimulatedProgram::new(self.clone(), memory)?))
    }
}

#[derive(Clone, Debug)]
pub(super) struct SimulatedProgram(Arc<Bound>);

#[derive(Debug)]
struct Bound {
    kernel: SimulatedKernel,
    memory: MemoryMap,
}

impl SimulatedProgram {
    /// Checks that everything the nodes touch is bound to memory of the device.
    fn new(kernel: SimulatedKernel, memory: &MemoryMap) -> Result<Self, DeviceError> {
        let memory = memory.clone();
        let program = Self(Arc::new(Bound { kernel, memory }));
        for item in program.segment().items() {
            for (node, link, is_kept) in program.linked(item) {
                let read = node.inputs().enumerate().filter(|&(i, _)| Some(i) != link);
                for (_, value) in read {
                    program.bound(node, value)?;
                }
                for value in node.writes().filter(|_| is_kept) {
                    let (memory, _) = program.bound(node, value)?;
                    if memory.is_prepared() {
                        return Err(program.device().foreign("bind"));
                    }
                }
            }
        }
        Ok(program)
    }

    fn segment(&self) -> Segment<'_> {
        self.0.kernel.segment.get()
    }

    fn device(&self) -> &Arc<Device> {
        &self.0.kernel.device
    }

    /// The nodes of an item of the segment, with the operand that the node before hands over and
    /// whether the result is written to memory.
    fn linked<'s>(&'s self, item: SegmentItem<'s>) -> Vec<(NodeRef<'s>, Option<usize>, bool)> {
        match item {
            SegmentItem::Node(id) => {
                let node = self.segment().graph.node(id);
                node.into_iter().map(|node| (node, None, true)).collect()
            }
            SegmentItem::Group(group) => group.linked().collect(),
        }
    }

    fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        let Segment { graph, nodes, .. } = self.segment();
        graph.nodes_of(nodes)
    }

    /// The memory of a value's storage, and the storage's first byte in it.
    fn bound(
        &self,
        node: NodeRef<'_>,
        value: &Value,
    ) -> Result<(&SimulatedMemory, usize), DeviceError> {
        let storage = node.storage_of(value);
        let unbound = || DeviceError::Unbound {
            device: self.device().id(),
            storage: storage.name.clone(),
        };
        let Binding { buffer, offset } = self.0.memory.get(value.storage).ok_or_else(unbound)?;
        let memory = self.device().own(buffer, "bind")?;
        if memory.is_prepared() && storage.kind != StorageKind::Weight {
            return Err(self.device().foreign("bind"));
        }
        let range = buffer.range(&self.device().id(), "bind", *offset, storage.bytes);
        range
            .map(|range| (memory, range.start))
            .map_err(|_| unbound())
    }

    /// Calls `access` with the bytes of a value's storage.
    fn with<T>(
        &self,
        node: NodeRef<'_>,
        value: &Value,
        access: impl FnOnce(&mut [u8]) -> Result<T, TensorError>,
    ) -> Result<T, DeviceError> {
        let (memory, offset) = self.bound(node, value)?;
        let end = offset + node.storage_of(value).bytes;
        let done = memory.with(|bytes| access(&mut bytes[offset..end]));
        done.map_err(|error| self.broken(error))
    }

    /// Checks the run-time scalars of a launch.
    pub(super) fn check(&self, device: &Arc<Device>, scalars: &[i32]) -> Result<(), DeviceError> {
        if !Arc::ptr_eq(device, self.device()) {
            return Err(device.foreign("launch"));
        }
        let max = self.segment().graph.scalars().iter();
        check_scalars(&device.id(), scalars, max.map(|scalar| scalar.max))
    }

    pub(super) fn run(&self, scalars: &[i32]) -> Result<(), DeviceError> {
        let device = self.device();
        let Executor::Oracle(activations) = device.options.executor else {
            return Ok(());
        };
        let run = Run {
            program: self,
            scalars,
            activations,
        };
        for item in self.segment().items() {
            match item {
                SegmentItem::Node(id) => {
                    let node = self.segment().graph.node(id);
                    node.map_or(Ok(()), |node| run.node(node))?;
                }
                SegmentItem::Group(group) => run.group(&group)?,
            }
        }
        if let Some(after_launch) = &device.options.after_launch {
            let nth = device.faults.count(super::Call::Launch).saturating_sub(1);
            after_launch(&Launched {
                program: self,
                nth,
                scalars,
            });
        }
        Ok(())
    }

    /// The oracle failed, though the graph has been checked.
    fn broken(&self, error: impl fmt::Display) -> DeviceError {
        DeviceError::Lost {
            device: self.device().id(),
            reason: error.to_string(),
        }
    }
}

/// A run of a program by the oracle.
struct Run<'p> {
    program: &'p SimulatedProgram,
    scalars: &'p [i32],
    activations: Activations,
}

impl Run<'_> {
    fn group(&self, group: &FusedNodes<'_>) -> Result<(), DeviceError> {
        for (node, ..) in group.linked().filter(|&(_, _, is_kept)| is_kept) {
            let output = node.output();
            let is_read = group.reads().any(|read| read == output);
            if !is_read && !node.op().writes_partially() {
                self.program.with(node, output, |bytes| {
                    for unit in output.block_offsets() {
                        bytes[unit..unit + output.dtype.block_bytes()].fill(0xff);
                    }
                    Ok(())
                })?;
            }
        }
        let mut handed: Option<TensorData> = None;
        let mut results = Vec::new();
        for (node, link, is_kept) in group.linked() {
            let output = self.compute(node, link.zip(handed.take()))?;
            let rounded = output.data.rounded_to(node.output().dtype);
            handed = Some(rounded.map_err(|error| self.program.broken(error))?);
            if is_kept {
                results.push((node, output));
            }
        }
        for (node, output) in results {
            self.store(node, &output)?;
        }
        Ok(())
    }

    fn node(&self, node: NodeRef<'_>) -> Result<(), DeviceError> {
        let (program, output) = (self.program, node.output());
        // A copy in one dtype moves the stored bytes: encoding blocks again would change them.
        if node.op().is(OpClass::Copy)
            && let Some(x) = node.input(0)
            && x.dtype == output.dtype
        {
            let units = program.with(node, x, |bytes| read_units(x, bytes))?;
            return program.with(node, output, |bytes| {
                write_units(output, &units, None, bytes)
            });
        }
        self.store(node, &self.compute(node, None)?)
    }

    /// The result of a node for its operands in memory; one operand may be `given`.
    fn compute(
        &self,
        node: NodeRef<'_>,
        mut given: Option<(usize, TensorData)>,
    ) -> Result<Output, DeviceError> {
        let mut inputs: Vec<TensorData> = Vec::new();
        for (i, value) in node.inputs().enumerate() {
            inputs.push(match given.take_if(|(at, _)| *at == i) {
                Some((_, data)) => data,
                None => self
                    .program
                    .with(node, value, |bytes| read_value(value, bytes))?,
            });
        }
        let output = run_node(node, &inputs, self.scalars, self.activations);
        output.map_err(|error| self.program.broken(error))
    }

    /// Writes the result of a node to memory.
    fn store(&self, node: NodeRef<'_>, output: &Output) -> Result<(), DeviceError> {
        let result = (node.output(), &output.data, output.written.as_deref());
        let updates = node.updates().zip(&output.updates);
        let updates = updates.map(|(value, data)| (value, data, None));
        for (value, data, written) in std::iter::once(result).chain(updates) {
            let write = |bytes: &mut [u8]| write_value(value, data, written, bytes);
            self.program.with(node, value, write)?;
        }
        Ok(())
    }
}

/// A launch that has run, as [`SimulatedOptions::after_launch`](super::SimulatedOptions) sees it.
pub struct Launched<'p> {
    program: &'p SimulatedProgram,
    nth: usize,
    scalars: &'p [i32],
}

impl<'p> Launched<'p> {
    /// Which launch of the device it was, counted from 0.
    pub fn nth(&self) -> usize {
        self.nth
    }

    /// The run-time scalars.
    pub fn scalars(&self) -> &'p [i32] {
        self.scalars
    }

    /// The nodes that ran.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef<'p>> + use<'p> {
        self.program.nodes()
    }

    /// Calls `access` with all bytes of the buffer that holds a value's storage, and the storage's
    /// first byte in it.
    pub fn with<T>(
        &self,
        node: NodeRef<'_>,
        value: &Value,
        access: impl FnOnce(&mut [u8], usize) -> T,
    ) -> Result<T, DeviceError> {
        let (memory, offset) = self.program.bound(node, value)?;
        Ok(memory.with(|bytes| access(bytes, offset)))
    }
}

impl Program for SimulatedProgram {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kernels(&self) -> Vec<&'static str> {
        self.nodes().map(|node| node.op().name()).collect()
    }

    fn own_bytes(&self) -> usize {
        self.device().options.program_bytes
    }
}
