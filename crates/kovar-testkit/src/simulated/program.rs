//! Programs of a simulated device: the oracle, node by node.
//!
//! A group of fused nodes runs as badly as a kernel may: what it writes is undefined from its
//! beginning on and there only at its end, unless the same window is read.

use std::any::Any;
use std::sync::Arc;

use kovar_core::backend::{
    Binding, Kernel, MemoryMap, OwnedSegment, Program, Segment, SegmentPart,
};
use kovar_core::error::DeviceError;
use kovar_core::fusion::FusedNodes;
use kovar_core::ops::Op;
use kovar_core::{NodeRef, StorageKind, Value};

use super::memory::{Device, SimulatedMemory};
use crate::oracle::{Activations, OracleError, Output, run_node};
use crate::tensor::{
    TensorData, TensorError, read_units, read_value, unit_offsets, write_units, write_value,
};

#[derive(Clone, Debug)]
pub(super) struct SimulatedKernel {
    pub(super) device: Arc<Device>,
    pub(super) segment: OwnedSegment,
    pub(super) activations: Activations,
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
        for part in program.segment().parts() {
            for (node, link, kept) in program.linked(part) {
                let read = node.inputs().enumerate().filter(|&(i, _)| Some(i) != link);
                for (_, value) in read {
                    program.bound(node, value)?;
                }
                for value in node.writes().filter(|_| kept) {
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

    /// The nodes of a part of the segment, with the operand that the node before hands over and
    /// whether the result is written to memory.
    fn linked<'s>(&'s self, part: SegmentPart<'s>) -> Vec<(NodeRef<'s>, Option<usize>, bool)> {
        match part {
            SegmentPart::Node(id) => {
                let node = self.segment().graph.node(id);
                node.into_iter().map(|node| (node, None, true)).collect()
            }
            SegmentPart::Group(group) => group.linked().collect(),
        }
    }

    fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        let Segment { graph, nodes, .. } = self.segment();
        nodes.iter().filter_map(|&id| graph.node(id))
    }

    /// The memory of a value's storage, and where in it the storage begins.
    fn bound(
        &self,
        node: NodeRef<'_>,
        value: &Value,
    ) -> Result<(&SimulatedMemory, usize), DeviceError> {
        let storage = node.storage_of(value);
        let unbound = || DeviceError::Unbound {
            device: self.device().id.clone(),
            storage: storage.name.clone(),
        };
        let Binding { buffer, offset } = self.0.memory.get(value.storage).ok_or_else(unbound)?;
        let memory = self.device().own(buffer, "bind")?;
        if memory.is_prepared() && storage.kind != StorageKind::Weight {
            return Err(self.device().foreign("bind"));
        }
        let fits = memory.range("bind", *offset, storage.bytes).is_ok();
        if fits {
            Ok((memory, *offset))
        } else {
            Err(unbound())
        }
    }

    /// Checks the run-time scalars of a launch.
    pub(super) fn check(&self, device: &Arc<Device>, scalars: &[i32]) -> Result<(), DeviceError> {
        if !Arc::ptr_eq(device, self.device()) {
            return Err(device.foreign("launch"));
        }
        for (index, scalar) in self.segment().graph.scalars().iter().enumerate() {
            let value = scalars.get(index).copied();
            if value.is_none_or(|value| !(0..=scalar.max).contains(&value)) {
                return Err(DeviceError::Scalar {
                    device: device.id.clone(),
                    index,
                    value,
                    max: scalar.max,
                });
            }
        }
        Ok(())
    }

    pub(super) fn run(&self, scalars: &[i32]) -> Result<(), DeviceError> {
        for part in self.segment().parts() {
            match part {
                SegmentPart::Node(id) => {
                    if let Some(node) = self.segment().graph.node(id) {
                        self.run_node(node, scalars)?;
                    }
                }
                SegmentPart::Group(group) => self.run_group(&group, scalars)?,
            }
        }
        Ok(())
    }

    /// The graph has been checked, so the oracle has no reason to fail but one of its own.
    fn broken(&self, error: impl Into<OracleError>) -> DeviceError {
        DeviceError::Lost {
            device: self.device().id.clone(),
            reason: error.into().to_string(),
        }
    }

    fn run_group(&self, group: &FusedNodes<'_>, scalars: &[i32]) -> Result<(), DeviceError> {
        for (node, ..) in group.linked().filter(|&(_, _, kept)| kept) {
            let output = node.output();
            let is_read = group.reads().any(|read| read == output);
            if !is_read && !node.op().writes_partially() {
                let (memory, offset) = self.bound(node, output)?;
                memory.write("launch", |bytes| {
                    for unit in unit_offsets(output) {
                        let start = offset + unit;
                        bytes[start..start + output.dtype.block_bytes()].fill(0xff);
                    }
                })?;
            }
        }
        let mut handed: Option<TensorData> = None;
        let mut results = Vec::new();
        for (node, link, kept) in group.linked() {
            let given = link.zip(handed.take());
            let output = self.compute(node, given, scalars)?;
            let rounded = output.data.rounded_to(node.output().dtype);
            handed = Some(rounded.map_err(|error| self.broken(error))?);
            if kept {
                results.push((node, output));
            }
        }
        for (node, output) in results {
            self.store(node, &output)?;
        }
        Ok(())
    }

    fn run_node(&self, node: NodeRef<'_>, scalars: &[i32]) -> Result<(), DeviceError> {
        if let (Op::Copy(_), Some(x)) = (node.op(), node.input(0))
            && x.dtype == node.output().dtype
        {
            return self.move_units(node, x);
        }
        let output = self.compute(node, None, scalars)?;
        self.store(node, &output)
    }

    /// What a node makes of its operands in memory, but for one that is `given`.
    fn compute(
        &self,
        node: NodeRef<'_>,
        mut given: Option<(usize, TensorData)>,
        scalars: &[i32],
    ) -> Result<Output, DeviceError> {
        let mut inputs: Vec<TensorData> = Vec::new();
        for (i, value) in node.inputs().enumerate() {
            if let Some((_, data)) = given.take_if(|(at, _)| *at == i) {
                inputs.push(data);
                continue;
            }
            let (memory, offset) = self.bound(node, value)?;
            let end = offset + node.storage_of(value).bytes;
            let data = memory.read(|bytes| read_value(value, &bytes[offset..end]));
            inputs.push(data.map_err(|error| self.broken(error))?);
        }
        run_node(node, &inputs, scalars, self.0.kernel.activations)
            .map_err(|error| self.broken(error))
    }

    /// Writes what a node made to memory.
    fn store(&self, node: NodeRef<'_>, output: &Output) -> Result<(), DeviceError> {
        let result = (node.output(), &output.data, output.written.as_deref());
        let updates = node.updates().zip(&output.updates);
        let updates = updates.map(|(value, data)| (value, data, None));
        for (value, data, written) in std::iter::once(result).chain(updates) {
            let (memory, offset) = self.bound(node, value)?;
            let end = offset + node.storage_of(value).bytes;
            let write =
                |bytes: &mut [u8]| write_value(value, data, written, &mut bytes[offset..end]);
            memory
                .write("launch", write)?
                .map_err(|error| self.broken(error))?;
        }
        Ok(())
    }

    /// Copies a value of the output's own dtype bit by bit: encoding blocks anew would change them.
    fn move_units(&self, node: NodeRef<'_>, x: &Value) -> Result<(), DeviceError> {
        let broken = |error: TensorError| DeviceError::Lost {
            device: self.device().id.clone(),
            reason: error.to_string(),
        };
        let (memory, offset) = self.bound(node, x)?;
        let end = offset + node.storage_of(x).bytes;
        let units = memory.read(|bytes| read_units(x, &bytes[offset..end]));
        let units = units.map_err(broken)?;
        let (memory, offset) = self.bound(node, node.output())?;
        let end = offset + node.storage_of(node.output()).bytes;
        let write =
            |bytes: &mut [u8]| write_units(node.output(), &units, None, &mut bytes[offset..end]);
        memory.write("launch", write)?.map_err(broken)
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
        0
    }
}
