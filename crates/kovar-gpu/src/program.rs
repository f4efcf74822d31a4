//! Compiled segments: dispatches with their pipelines and bind groups.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{Buffer, MemoryMap, Program, Segment};
use kovar_core::error::DeviceError;
use kovar_core::{NodeRef, Value};

use crate::backend::{Shared, estimate};
use crate::kernel::{Access, Dispatch, MAX_UNIFORM_SCALARS, grid};
use crate::ops;
use crate::pipelines::Key;
use crate::queue::Launch;
use crate::scratch;
use crate::seam::{self, BindGroup, BufferRange, BufferUse, Pipeline};
use crate::view::Operand;

/// A dispatch made ready.
pub(crate) struct Step {
    pub pipeline: Arc<dyn Pipeline>,
    pub bindings: Arc<dyn BindGroup>,
    pub workgroups: [u32; 3],
    /// The name of the node's operation.
    pub op: &'static str,
    /// The kernel's entry point.
    pub kernel: &'static str,
    /// The node that it is a part of, by its place in the segment.
    pub node: usize,
    /// The estimated time.
    pub nanoseconds: f64,
}

/// A dispatch with its node and its estimated time.
struct Planned {
    dispatch: Dispatch,
    op: &'static str,
    node: usize,
    nanoseconds: f64,
}

/// A compiled segment.
pub(crate) struct GpuProgram {
    shared: Arc<Shared>,
    ready: Ready,
    kernels: Vec<&'static str>,
    /// The largest values of the run-time scalars.
    max_scalars: Vec<i32>,
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
            memory.check_apart(node, node.inputs(), &shared.info.id)?;
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
            let nanoseconds = estimate(node) / planned.len().max(1) as f64;
            dispatches.extend(planned.into_iter().map(|dispatch| Planned {
                dispatch,
                op: node.op().name(),
                node: kernels.len() - 1,
                nanoseconds,
            }));
        }
        let max_scalars: Vec<i32> = segment.graph.scalars().iter().map(|s| s.max).collect();
        let all = dispatches.iter_mut().map(|planned| &mut planned.dispatch);
        let scratch_bytes = scratch::place(shared.device.as_ref(), all)
            .map_err(|error| shared.failed("a program", error))?;
        let mut ready = Ready::new(shared, &dispatches, max_scalars.len())?;
        ready.own_bytes += scratch_bytes;
        Ok(Self {
            shared: shared.clone(),
            ready,
            kernels,
            max_scalars,
            _buffers: buffers,
        })
    }

    /// Whether it belongs to the device of `shared`.
    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        Arc::ptr_eq(&self.shared.owner, &shared.owner)
    }

    /// A run with these scalars, which are checked.
    pub(crate) fn launch<'p>(&'p self, scalars: &'p [i32]) -> Result<Launch<'p>, DeviceError> {
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
        let read = scalars.get(..self.max_scalars.len()).unwrap_or(scalars);
        Ok(Launch {
            steps: &self.ready.steps,
            scalars: self.ready.scalars.as_ref().map(|buffer| (buffer, read)),
        })
    }
}

/// What a program's runs need.
struct Ready {
    steps: Vec<Step>,
    /// The run-time scalars that kernels read, if any do.
    scalars: Option<Arc<dyn seam::Buffer>>,
    /// Device memory of parameters and scalars.
    own_bytes: usize,
}

impl Ready {
    /// Makes pipelines, parameters and bind groups.
    fn new(shared: &Shared, planned: &[Planned], n_scalars: usize) -> Result<Self, DeviceError> {
        let device = &shared.device;
        let alignment = device.caps().binding_alignment;
        let failed = |error| shared.failed("a program", error);
        let mut own_bytes = 0;
        let params = Parameters::write(shared, planned, &mut own_bytes)?;
        let reads_scalars = |planned: &Planned| {
            let mut bindings = planned.dispatch.kernel.bindings.iter();
            bindings.any(|access| !access.is_operand())
        };
        let scalars = match planned.iter().any(reads_scalars) {
            true => {
                let bytes = n_scalars.max(MAX_UNIFORM_SCALARS) * size_of::<i32>();
                own_bytes += bytes;
                let buffer = device.create_buffer(bytes as u64, BufferUse::Scalars);
                Some(buffer.map_err(failed)?)
            }
            false => None,
        };
        let keys = planned
            .iter()
            .map(|Planned { dispatch, .. }| {
                Key::of(device.as_ref(), dispatch, &read_only(dispatch))
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        let pipelines = shared
            .pipelines
            .all(device.as_ref(), &keys)
            .map_err(failed)?;
        let mut steps = Vec::with_capacity(planned.len());
        for ((planned, pipeline), params) in planned.iter().zip(pipelines).zip(params.ranges) {
            let dispatch = &planned.dispatch;
            let kernel = dispatch.kernel;
            let mut ranges = vec![params];
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
            let bindings = device.create_bind_group(&pipeline, &ranges);
            steps.push(Step {
                bindings: bindings.map_err(|error| shared.failed(kernel.entry, error))?,
                pipeline,
                workgroups: grid(dispatch.workgroups, device.caps().max_workgroups),
                op: planned.op,
                kernel: kernel.entry,
                node: planned.node,
                nanoseconds: planned.nanoseconds,
            });
        }
        Ok(Self {
            steps,
            scalars,
            own_bytes,
        })
    }
}

/// The parameters of all dispatches, in buffers of the device.
struct Parameters {
    ranges: Vec<BufferRange>,
}

impl Parameters {
    /// The largest buffer of parameters.
    const MAX_BYTES: usize = 16 << 20;

    fn write(
        shared: &Shared,
        planned: &[Planned],
        own_bytes: &mut usize,
    ) -> Result<Self, DeviceError> {
        let alignment = shared.device.caps().binding_alignment as usize;
        let mut ranges = Vec::with_capacity(planned.len());
        let mut rest = planned;
        while !rest.is_empty() {
            let mut bytes = Vec::new();
            let mut offsets = Vec::new();
            while let Some((first, others)) = rest.split_first()
                && bytes.len() < Self::MAX_BYTES
            {
                bytes.resize(bytes.len().next_multiple_of(alignment), 0);
                let start = bytes.len() as u64;
                bytes.extend_from_slice(&first.dispatch.params);
                offsets.push(start..bytes.len() as u64);
                rest = others;
            }
            let buffer = shared
                .device
                .create_buffer(bytes.len() as u64, BufferUse::Uniform)
                .map_err(|error| shared.failed("a program's parameters", error))?;
            let written = shared.engine.write(&buffer, 0, &bytes);
            written.map_err(|failure| shared.failure(failure))?;
            *own_bytes += bytes.len();
            ranges.extend(offsets.into_iter().map(|bytes| BufferRange {
                buffer: buffer.clone(),
                bytes,
            }));
        }
        Ok(Self { ranges })
    }
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
        self.ready.own_bytes
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
            storage: memory.start + binding.offset as u64,
        })
    }
}
