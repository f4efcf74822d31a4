//! Compiled segments: dispatches with their pipelines and bind groups.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{Buffer, MemoryMap, Program, Segment};
use kovar_core::error::DeviceError;
use kovar_core::{NodeRef, Value};

use crate::backend::Shared;
use crate::kernel::{Access, Dispatch, MAX_UNIFORM_SCALARS, grid};
use crate::ops;
use crate::scratch;
use crate::seam::{self, BindGroup, BufferRange, BufferUse, Command, Pipeline};
use crate::view::Operand;

/// A dispatch made ready.
struct Step {
    pipeline: Arc<dyn Pipeline>,
    bindings: Arc<dyn BindGroup>,
    workgroups: [u32; 3],
}

/// A compiled segment.
pub(crate) struct GpuProgram {
    shared: Arc<Shared>,
    steps: Vec<Step>,
    kernels: Vec<&'static str>,
    /// The run-time scalars that kernels read, if any do.
    scalars: Option<Arc<dyn seam::Buffer>>,
    /// The largest values of the run-time scalars.
    max_scalars: Vec<i32>,
    own_bytes: usize,
    /// Keeps the operands alive.
    _buffers: Vec<Buffer>,
}

impl GpuProgram {
    pub(crate) fn compile(
        shared: &Arc<Shared>,
        segment: Segment<'_>,
        memory: &MemoryMap,
    ) -> Result<Self, DeviceError> {
        let resolver = Resolver { shared, memory };
        let mut dispatches = Vec::new();
        let mut kernels = Vec::new();
        let mut buffers: Vec<Buffer> = Vec::new();
        for &id in segment.nodes {
            let Some(node) = segment.graph.node(id) else {
                continue;
            };
            resolver.check_apart(node)?;
            for value in node.inputs().chain([node.output()]) {
                if let Some(binding) = memory.get(value.storage)
                    && !buffers.iter().any(|buffer| buffer.is(&binding.buffer))
                {
                    buffers.push(binding.buffer.clone());
                }
            }
            let planned = ops::plan(&resolver, node)?;
            kernels.push(
                planned
                    .first()
                    .map_or("nothing", |first| first.kernel.entry),
            );
            dispatches.extend(planned);
        }
        let max_scalars: Vec<i32> = segment.graph.scalars().iter().map(|s| s.max).collect();
        let scratch_bytes = scratch::place(shared.device.as_ref(), &mut dispatches)
            .map_err(|error| shared.failed("a program", error))?;
        let (steps, scalars, own_bytes) = prepare(shared, &dispatches, max_scalars.len())?;
        Ok(Self {
            shared: shared.clone(),
            steps,
            kernels,
            scalars,
            max_scalars,
            own_bytes: own_bytes + scratch_bytes,
            _buffers: buffers,
        })
    }

    /// Whether it belongs to the device of `shared`.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// The commands of a run.
    pub(crate) fn commands(&self) -> Vec<Command<'_>> {
        self.steps
            .iter()
            .map(|step| Command::Dispatch {
                pipeline: &step.pipeline,
                bindings: &step.bindings,
                workgroups: step.workgroups,
            })
            .collect()
    }

    /// The buffer that the scalars of a run are written to, if its kernels read any. All scalars
    /// are checked.
    pub(crate) fn scalars(
        &self,
        scalars: &[i32],
    ) -> Result<Option<&Arc<dyn seam::Buffer>>, DeviceError> {
        for (index, &max) in self.max_scalars.iter().enumerate() {
            let value = scalars.get(index).copied();
            if !value.is_some_and(|value| (0..=max).contains(&value)) {
                return Err(DeviceError::Scalar {
                    device: self.shared.info.id.clone(),
                    index,
                    value,
                    max,
                });
            }
        }
        Ok(self.scalars.as_ref())
    }
}

/// Makes pipelines, parameters and bind groups.
fn prepare(
    shared: &Shared,
    dispatches: &[Dispatch],
    n_scalars: usize,
) -> Result<(Vec<Step>, Option<Arc<dyn seam::Buffer>>, usize), DeviceError> {
    let device = &shared.device;
    let alignment = device.caps().binding_alignment;
    let failed = |error| shared.failed("a program", error);
    let mut params = Vec::new();
    let mut offsets = Vec::new();
    for dispatch in dispatches {
        params.resize(params.len().next_multiple_of(alignment as usize), 0);
        offsets.push(params.len() as u64);
        params.extend_from_slice(&dispatch.params);
    }
    let mut own_bytes = params.len();
    let params_buffer = device
        .create_buffer(params.len() as u64, BufferUse::Uniform)
        .map_err(failed)?;
    params.resize(params.len().next_multiple_of(4), 0);
    if !params.is_empty() {
        device.write(&params_buffer, 0, &params).map_err(failed)?;
    }
    let reads_scalars = |dispatch: &Dispatch| {
        let mut bindings = dispatch.kernel.bindings.iter();
        bindings.any(|access| !access.is_operand())
    };
    let scalars = match dispatches.iter().any(reads_scalars) {
        true => {
            let bytes = n_scalars.max(MAX_UNIFORM_SCALARS) * size_of::<i32>();
            own_bytes += bytes;
            let buffer = device.create_buffer(bytes as u64, BufferUse::Scalars);
            Some(buffer.map_err(failed)?)
        }
        false => None,
    };
    let mut steps = Vec::with_capacity(dispatches.len());
    for (dispatch, &offset) in dispatches.iter().zip(&offsets) {
        let kernel = dispatch.kernel;
        let read_only = read_only(dispatch);
        let pipeline = shared
            .pipelines
            .of(device.as_ref(), dispatch, &read_only)
            .map_err(failed)?;
        let mut ranges = vec![BufferRange {
            buffer: params_buffer.clone(),
            bytes: offset..offset + dispatch.params.len() as u64,
        }];
        let mut operands = dispatch.operands.iter();
        for access in kernel.bindings {
            ranges.push(match (access, &scalars) {
                (Access::Scalars, Some(scalars)) => BufferRange {
                    buffer: scalars.clone(),
                    bytes: 0..scalars.len(),
                },
                (Access::UniformScalars, Some(scalars)) => BufferRange {
                    buffer: scalars.clone(),
                    bytes: 0..(MAX_UNIFORM_SCALARS * size_of::<i32>()) as u64,
                },
                _ => {
                    let operand = operands.next().ok_or_else(|| {
                        failed(seam::SeamError::Invalid {
                            what: format!("kernel {}", kernel.entry),
                            message: "too few operands".to_owned(),
                        })
                    })?;
                    BufferRange {
                        buffer: operand.buffer.clone(),
                        bytes: operand.binding(alignment).0,
                    }
                }
            });
        }
        steps.push(Step {
            bindings: device
                .create_bind_group(&pipeline, &ranges)
                .map_err(failed)?,
            pipeline,
            workgroups: grid(dispatch.workgroups, device.caps().max_workgroups),
        });
    }
    Ok((steps, scalars, own_bytes))
}

/// Which operands can be bound read-only: those that are only read, of buffers that the dispatch
/// does not write.
fn read_only(dispatch: &Dispatch) -> Vec<bool> {
    let accesses = dispatch
        .kernel
        .bindings
        .iter()
        .filter(|access| access.is_operand());
    let accessed: Vec<_> = accesses.zip(&dispatch.operands).collect();
    let written = |operand: &Operand| {
        accessed.iter().any(|(access, other)| {
            **access == Access::Write && Arc::ptr_eq(&other.buffer, &operand.buffer)
        })
    };
    accessed
        .iter()
        .map(|(access, operand)| **access == Access::Read && !written(operand))
        .collect()
}

impl Program for GpuProgram {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kernels(&self) -> Vec<&'static str> {
        self.kernels.clone()
    }

    fn own_bytes(&self) -> usize {
        self.own_bytes
    }
}

impl fmt::Debug for GpuProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuProgram")
            .field("device", &self.shared.info.id)
            .field("kernels", &self.kernels)
            .finish_non_exhaustive()
    }
}

/// Resolves the operands of nodes.
pub(crate) struct Resolver<'a> {
    pub shared: &'a Shared,
    pub memory: &'a MemoryMap,
}

impl Resolver<'_> {
    /// Operand `i` of a node whose arity the graph has checked.
    pub fn input(&self, node: NodeRef<'_>, i: usize) -> Result<Operand, DeviceError> {
        let value = node
            .input(i)
            .ok_or_else(|| ops::no_kernel(self.shared, node))?;
        self.operand(node, value, false)
    }

    /// The result.
    pub fn output(&self, node: NodeRef<'_>) -> Result<Operand, DeviceError> {
        self.operand(node, node.output(), true)
    }

    /// The operand that the node updates, counted from 0.
    pub fn update(&self, node: NodeRef<'_>, i: usize) -> Result<Operand, DeviceError> {
        let value = node.updates().nth(i);
        let value = value.ok_or_else(|| ops::no_kernel(self.shared, node))?;
        self.operand(node, value, true)
    }

    fn operand(
        &self,
        node: NodeRef<'_>,
        value: &Value,
        written: bool,
    ) -> Result<Operand, DeviceError> {
        let unbound = || DeviceError::Unbound {
            device: self.shared.info.id.clone(),
            storage: node.storage_of(value).name.clone(),
        };
        let binding = self.memory.get(value.storage).ok_or_else(unbound)?;
        let memory = self.shared.memory(&binding.buffer, "compile")?;
        let end = binding.offset.checked_add(node.storage_of(value).bytes);
        end.filter(|&end| end <= memory.len).ok_or_else(unbound)?;
        // Elements of a kernel's arrays lie at multiples of their size.
        let aligned = binding.offset.is_multiple_of(self.shared.info.alignment);
        if !aligned || (written && !memory.writable) {
            return Err(unbound());
        }
        Ok(Operand {
            dtype: value.dtype,
            layout: value.layout,
            buffer: memory.buffer.clone(),
            storage: binding.offset as u64,
        })
    }

    /// Verifies that what a node writes lies apart from its operands on other storages.
    fn check_apart(&self, node: NodeRef<'_>) -> Result<(), DeviceError> {
        let range = |value: &Value| {
            let binding = self.memory.get(value.storage)?;
            let bytes = node.storage_of(value).bytes;
            Some((
                binding,
                binding.offset..binding.offset.saturating_add(bytes),
            ))
        };
        for written in node.writes() {
            let Some((target, writes)) = range(written) else {
                continue;
            };
            for value in node
                .inputs()
                .filter(|value| value.storage != written.storage)
            {
                let Some((source, reads)) = range(value) else {
                    continue;
                };
                let start = reads.start.max(writes.start);
                if source.buffer.is(&target.buffer) && start < reads.end.min(writes.end) {
                    return Err(DeviceError::Aliased {
                        device: self.shared.info.id.clone(),
                        op: node.op().name(),
                        result: node.storage_of(written).name.clone(),
                        operand: node.storage_of(value).name.clone(),
                    });
                }
            }
        }
        Ok(())
    }
}
