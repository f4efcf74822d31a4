//! Compiled segments: dispatches with their pipelines and bind groups.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{
    self, Binding, Buffer, MemoryMap, OwnedSegment, Program, Segment, check_scalars,
};
use kovar_core::error::DeviceError;
use kovar_core::{Graph, NodeRef, StorageId, StorageKind, Value};

use crate::backend::{GpuState, estimate};
use crate::kernel::{self, Access, Dispatch, MAX_UNIFORM_SCALARS, grid};
use crate::memory::GpuMemory;
use crate::ops;
use crate::pipelines::Key;
use crate::queue::Launch;
use crate::scratch;
use crate::seam::{self, BindGroup, BufferRange, BufferUse, Pipeline, SeamError};
use crate::view::{Base, Operand};

/// A dispatch with its pipeline and its memory.
pub(crate) struct BoundDispatch {
    pub pipeline: Arc<dyn Pipeline>,
    pub bindings: Arc<dyn BindGroup>,
    pub workgroups: [u32; 3],
    /// The name of the node's operation.
    pub op: &'static str,
    /// The kernel's entry point.
    pub kernel: &'static str,
    /// The position of its node in the segment.
    pub node: usize,
    /// The estimated time.
    pub nanoseconds: f64,
}

/// A dispatch of a node, not bound to memory.
struct Planned {
    dispatch: Dispatch,
    op: &'static str,
    node: usize,
    nanoseconds: f64,
    /// By operand, whether the pipeline binds it read-only.
    read_only: Vec<bool>,
}

/// A compiled segment.
pub(crate) struct GpuKernel {
    shared: Arc<GpuState>,
    segment: OwnedSegment,
    /// For storages that begin at multiples of the binding alignment.
    plan: Plan,
    /// The largest values of the run-time scalars.
    max_scalars: Arc<[i32]>,
}

/// A storage's memory.
struct Bound<'m> {
    buffer: &'m Buffer,
    memory: &'m GpuMemory,
    /// The storage's first byte in the device's buffer.
    start: u64,
}

impl GpuKernel {
    pub(crate) fn new(shared: &Arc<GpuState>, segment: Segment<'_>) -> Result<Self, DeviceError> {
        let scalars = segment.graph.scalars().iter();
        Ok(Self {
            shared: shared.clone(),
            plan: Plan::new(shared, segment, &|_| 0)?,
            max_scalars: scalars.map(|scalar| scalar.max).collect(),
            segment: segment.into(),
        })
    }

    /// The memory of all storages that dispatches use.
    fn resolve<'m>(
        &self,
        memory: &'m MemoryMap,
    ) -> Result<HashMap<StorageId, Bound<'m>>, DeviceError> {
        let (shared, graph) = (&self.shared, self.segment.get().graph);
        let mut bound = HashMap::new();
        let operands = self.plan.dispatches.iter();
        for operand in operands.flat_map(|planned| &planned.dispatch.operands) {
            let Base::Storage(id) = operand.base else {
                continue;
            };
            if bound.contains_key(&id) {
                continue;
            }
            let unbound = || shared.unbound(graph, id);
            let Binding { buffer, offset } = memory.get(id).ok_or_else(unbound)?;
            let memory = shared.memory(buffer, "bind")?;
            let bytes = graph
                .storages()
                .get(id.index())
                .map(|storage| storage.bytes);
            let end = bytes.and_then(|bytes| offset.checked_add(bytes));
            end.filter(|&end| end <= memory.len).ok_or_else(unbound)?;
            // Elements of a kernel's arrays lie at multiples of their size.
            if !offset.is_multiple_of(shared.info.alignment) {
                return Err(unbound());
            }
            let start = memory.start + *offset as u64;
            let of_storage = Bound {
                buffer,
                memory,
                start,
            };
            bound.insert(id, of_storage);
        }
        Ok(bound)
    }

    fn program(&self, memory: &MemoryMap) -> Result<GpuProgram, DeviceError> {
        let (shared, segment) = (&self.shared, self.segment.get());
        let bound = self.resolve(memory)?;
        for node in segment.graph.nodes_of(segment.nodes) {
            memory.check_apart(node, node.inputs(), &shared.info.id)?;
            for value in node.writes() {
                let bound = bound.get(&value.storage);
                if bound.is_some_and(|bound| !bound.memory.writable) {
                    return Err(shared.unbound(segment.graph, value.storage));
                }
            }
        }
        let device = shared.device.as_ref();
        let alignment = device.caps().binding_alignment;
        let skew = |id| bound.get(&id).map_or(0, |bound| bound.start % alignment);
        let replanned;
        // Imported host memory begins anywhere.
        let plan = if bound.keys().all(|&id| skew(id) == 0) {
            &self.plan
        } else {
            replanned = Plan::new(shared, segment, &skew)?;
            &replanned
        };
        let failed = |error| shared.failed("a program", error);
        let buffer = |bytes, usage| device.create_buffer(bytes, usage).map_err(failed);
        let mut own_bytes = plan.params_bytes;
        let mut own = |bytes: u64, usage| {
            own_bytes += bytes as usize;
            (bytes > 0).then(|| buffer(bytes, usage)).transpose()
        };
        let scratch = own(plan.scratch_bytes, BufferUse::Storage)?;
        let scalars = own(plan.scalar_bytes, BufferUse::Scalars)?;
        let range = |operand: &Operand| {
            let (bytes, _) = operand.binding(alignment);
            let (buffer, start) = match operand.base {
                Base::Scratch => (scratch.as_ref()?, 0),
                Base::Storage(id) => {
                    let bound = bound.get(&id)?;
                    (&bound.memory.buffer, bound.start - operand.skew)
                }
            };
            Some(BufferRange {
                buffer: buffer.clone(),
                bytes: start + bytes.start..start + bytes.end,
            })
        };
        let mut bound_dispatches = Vec::with_capacity(plan.dispatches.len());
        let dispatches = plan.dispatches.iter().zip(&plan.pipelines);
        for ((planned, pipeline), params) in dispatches.zip(&plan.params) {
            let dispatch = &planned.dispatch;
            let kernel = dispatch.kernel;
            let operands = dispatch.operands.iter().map(range);
            let operands: Vec<_> = operands.flatten().collect();
            if operands.len() != kernel.n_operands() {
                return Err(failed(SeamError::Operands {
                    entry: kernel.entry,
                    expected: kernel.n_operands(),
                    found: operands.len(),
                }));
            }
            // Storages that the plan takes to lie in different buffers may share one.
            let shares = |a: usize, b: usize| Arc::ptr_eq(&operands[a].buffer, &operands[b].buffer);
            let read_only = read_only(kernel, shares);
            let both = planned.read_only.iter().zip(&read_only);
            let pipeline = if both.clone().all(|(planned, now)| !planned || *now) {
                pipeline.clone()
            } else {
                let read_only: Vec<bool> = both.map(|(planned, now)| *planned && *now).collect();
                let key = Key::of(device, dispatch, &read_only).map_err(failed)?;
                shared.pipelines.of_key(device, &key).map_err(failed)?
            };
            let mut operands = operands.into_iter();
            let ranges = kernel.bindings.iter().filter_map(|access| match access {
                Access::Scalars | Access::UniformScalars => {
                    let buffer = scalars.clone()?;
                    let bytes = match access {
                        Access::Scalars => 0..buffer.len(),
                        _ => 0..(MAX_UNIFORM_SCALARS * size_of::<i32>()) as u64,
                    };
                    Some(BufferRange { buffer, bytes })
                }
                Access::Read | Access::Write => operands.next(),
            });
            let ranges: Vec<_> = std::iter::once(params.clone()).chain(ranges).collect();
            let bindings = device.create_bind_group(&pipeline, &ranges);
            bound_dispatches.push(BoundDispatch {
                bindings: bindings.map_err(|error| shared.failed(kernel.entry, error))?,
                pipeline,
                workgroups: grid(dispatch.workgroups, device.caps().max_workgroups),
                op: planned.op,
                kernel: kernel.entry,
                node: planned.node,
                nanoseconds: planned.nanoseconds,
            });
        }
        Ok(GpuProgram {
            shared: shared.clone(),
            dispatches: bound_dispatches,
            scalars,
            own_bytes,
            kernels: plan.kernels.clone(),
            max_scalars: self.max_scalars.clone(),
            _buffers: bound.values().map(|bound| bound.buffer.clone()).collect(),
        })
    }
}

impl backend::Kernel for GpuKernel {
    fn bind(&self, memory: &MemoryMap) -> Result<Arc<dyn Program>, DeviceError> {
        Ok(Arc::new(self.program(memory)?))
    }
}

impl fmt::Debug for GpuKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuKernel")
            .field("device", &self.shared.info.id)
            .field("kernels", &self.plan.kernels)
            .finish_non_exhaustive()
    }
}

/// What programs of a segment share.
struct Plan {
    dispatches: Vec<Planned>,
    /// By dispatch.
    pipelines: Vec<Arc<dyn Pipeline>>,
    /// By dispatch, its parameters.
    params: Vec<BufferRange>,
    params_bytes: usize,
    /// The first kernel of each node.
    kernels: Vec<&'static str>,
    scratch_bytes: u64,
    /// The size of the buffer of run-time scalars; 0 if no kernel reads any.
    scalar_bytes: u64,
}

impl Plan {
    /// Plans the nodes and makes pipelines and parameters. `skew` gives the bytes from a multiple
    /// of the binding alignment to a storage's first byte.
    fn new(
        shared: &GpuState,
        segment: Segment<'_>,
        skew: &dyn Fn(StorageId) -> u64,
    ) -> Result<Self, DeviceError> {
        let graph = segment.graph;
        let resolver = Resolver { shared, skew };
        let mut dispatches = Vec::new();
        let mut kernels = Vec::new();
        for node in graph.nodes_of(segment.nodes) {
            let planned = ops::plan(&resolver, node)?;
            kernels.push(
                planned
                    .first()
                    .map_or("nothing", |first| first.kernel.entry),
            );
            let nanoseconds = estimate(node) / planned.len().max(1) as f64;
            dispatches.extend(planned.into_iter().map(|dispatch| Planned {
                read_only: read_only(dispatch.kernel, |a, b| {
                    let bases = [a, b].map(|i| dispatch.operands.get(i).map(|o| o.base));
                    may_share(graph, bases)
                }),
                dispatch,
                op: node.op().name(),
                node: kernels.len() - 1,
                nanoseconds,
            }));
        }
        let device = shared.device.as_ref();
        let failed = |error| shared.failed("a program", error);
        let key = |planned: &Planned| Key::of(device, &planned.dispatch, &planned.read_only);
        let keys = dispatches.iter().map(key).collect::<Result<Vec<_>, _>>();
        let pipelines = keys.and_then(|keys| shared.pipelines.all(device, &keys));
        let params = dispatches
            .iter()
            .map(|planned| planned.dispatch.params.as_slice());
        let (params, params_bytes) = write_params(shared, params)?;
        let reads_scalars = dispatches.iter().any(|planned| {
            let kernel = planned.dispatch.kernel;
            kernel.n_operands() < kernel.bindings.len()
        });
        let n_scalars = graph.scalars().len().max(MAX_UNIFORM_SCALARS);
        Ok(Self {
            pipelines: pipelines.map_err(failed)?,
            params,
            params_bytes,
            kernels,
            scratch_bytes: scratch::bytes(dispatches.iter().map(|planned| &planned.dispatch)),
            scalar_bytes: if reads_scalars {
                (n_scalars * size_of::<i32>()) as u64
            } else {
                0
            },
            dispatches,
        })
    }
}

/// The largest buffer of parameters.
const MAX_PARAMS_BYTES: usize = 16 << 20;

/// Writes the parameters of dispatches to buffers of the device. Where each of them are, and the
/// bytes that they take.
fn write_params<'p>(
    shared: &GpuState,
    params: impl Iterator<Item = &'p [u8]>,
) -> Result<(Vec<BufferRange>, usize), DeviceError> {
    let alignment = shared.device.caps().binding_alignment as usize;
    let mut ranges = Vec::new();
    let mut own_bytes = 0;
    let mut params = params.peekable();
    while params.peek().is_some() {
        let mut bytes = Vec::new();
        let mut offsets = Vec::new();
        while bytes.len() < MAX_PARAMS_BYTES
            && let Some(params) = params.next()
        {
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
            let start = bytes.len() as u64;
            bytes.extend_from_slice(params);
            offsets.push(start..bytes.len() as u64);
        }
        let buffer = shared
            .device
            .create_buffer(bytes.len() as u64, BufferUse::Uniform)
            .map_err(|error| shared.failed("a program's parameters", error))?;
        let written = shared.engine.write(&buffer, 0, &bytes);
        written.map_err(|failure| shared.failure(failure))?;
        own_bytes += bytes.len();
        ranges.extend(offsets.into_iter().map(|bytes| BufferRange {
            buffer: buffer.clone(),
            bytes,
        }));
    }
    Ok((ranges, own_bytes))
}

/// Which operands of a kernel can be bound read-only: those that are only read and that share no
/// buffer with a written one.
fn read_only(kernel: &kernel::Kernel, shares: impl Fn(usize, usize) -> bool) -> Vec<bool> {
    let operands = || kernel.bindings.iter().filter(|access| access.is_operand());
    let is_written = |i: usize| {
        let mut others = operands().enumerate();
        others.any(|(j, access)| *access == Access::Write && shares(i, j))
    };
    let each = operands().enumerate();
    each.map(|(i, access)| *access == Access::Read && !is_written(i))
        .collect()
}

/// Whether two operands usually lie in one buffer. A weight or a state has its own; all other
/// storages share the memory of a run.
fn may_share(graph: &Graph, bases: [Option<Base>; 2]) -> bool {
    let in_arena = |base: &Option<Base>| match base {
        Some(Base::Storage(id)) => graph.storage(*id).is_some_and(|storage| {
            !matches!(storage.kind, StorageKind::Weight | StorageKind::State)
        }),
        _ => false,
    };
    bases[0] == bases[1] || bases.iter().all(in_arena)
}

/// A kernel bound to memory.
pub(crate) struct GpuProgram {
    shared: Arc<GpuState>,
    dispatches: Vec<BoundDispatch>,
    /// The run-time scalars that kernels read, if any do.
    scalars: Option<Arc<dyn seam::Buffer>>,
    /// Device memory of parameters, scalars and scratch.
    own_bytes: usize,
    kernels: Vec<&'static str>,
    max_scalars: Arc<[i32]>,
    /// Keeps the operands alive.
    _buffers: Vec<Buffer>,
}

impl GpuProgram {
    /// Whether it belongs to the device of `shared`.
    pub(crate) fn is_of(&self, shared: &GpuState) -> bool {
        Arc::ptr_eq(&self.shared.owner, &shared.owner)
    }

    /// A run with these scalars, which are checked.
    pub(crate) fn launch<'p>(&'p self, scalars: &'p [i32]) -> Result<Launch<'p>, DeviceError> {
        let max = self.max_scalars.iter().copied();
        check_scalars(&self.shared.info.id, scalars, max)?;
        let read = scalars.get(..self.max_scalars.len()).unwrap_or(scalars);
        Ok(Launch {
            dispatches: &self.dispatches,
            scalars: self.scalars.as_ref().map(|buffer| (buffer, read)),
        })
    }
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

/// Makes operands of the values of nodes.
pub(crate) struct Resolver<'a> {
    pub shared: &'a GpuState,
    /// Bytes from a multiple of the binding alignment to a storage's first byte.
    pub skew: &'a dyn Fn(StorageId) -> u64,
}

impl Resolver<'_> {
    /// Operand `i` of a node whose arity the graph has checked.
    pub fn input(&self, node: NodeRef<'_>, i: usize) -> Result<Operand, DeviceError> {
        let value = node
            .input(i)
            .ok_or_else(|| ops::no_kernel(self.shared, node))?;
        Ok(self.operand(value))
    }

    /// The result.
    pub fn output(&self, node: NodeRef<'_>) -> Result<Operand, DeviceError> {
        Ok(self.operand(node.output()))
    }

    /// The operand that the node updates, counted from 0.
    pub fn update(&self, node: NodeRef<'_>, i: usize) -> Result<Operand, DeviceError> {
        let value = node.updates().nth(i);
        let value = value.ok_or_else(|| ops::no_kernel(self.shared, node))?;
        Ok(self.operand(value))
    }

    fn operand(&self, value: &Value) -> Operand {
        Operand {
            dtype: value.dtype,
            layout: value.layout,
            base: Base::Storage(value.storage),
            skew: (self.skew)(value.storage),
        }
    }
}
