//! Compiled segments: kernels with their operands resolved to addresses.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{
    self, Buffer, MemoryMap, OwnedSegment, Program, Reason, Segment, SegmentItem, Support,
    check_scalars,
};
use kovar_core::error::DeviceError;
use kovar_core::{DType, Layout, NodeRef, ScalarId, StorageId, Value};

use crate::backend::CpuState;
use crate::memory::{CpuMemory, PreparedWeight};
use crate::ops;
use crate::pool::{ChunkPtr, ThreadPool};
use crate::product::{self, ProductError};
use crate::scratch::Scratch;
use crate::vector;

/// What a kernel runs with.
pub(crate) struct Run<'a> {
    pub(crate) pool: &'a ThreadPool,
    pub(crate) vector: &'static vector::Kernels,
    pub(crate) product: &'static product::Kernels,
    /// The run-time scalars, checked.
    pub(crate) scalars: &'a [i32],
    /// At least [`Kernel::scratch_bytes`] bytes, aligned to 64, for this launch alone.
    pub(crate) scratch: ChunkPtr<u8>,
}

impl Run<'_> {
    /// How many of `tokens` tokens are valid: all without a scalar.
    pub(crate) fn valid(&self, scalar: Option<ScalarId>, tokens: usize) -> usize {
        let valid = scalar.and_then(|id| self.scalars.get(id.index()));
        valid.map_or(tokens, |&valid| {
            usize::try_from(valid).unwrap_or(0).min(tokens)
        })
    }
}

/// An operation whose operands, layouts and attributes are fixed. A run adds the run-time scalars
/// and the data.
pub(crate) trait Kernel: Send + Sync {
    /// Computes. Nothing is allocated.
    ///
    /// # Safety
    /// The operands' memory is alive. During the call, no other code writes what the kernel reads,
    /// or accesses what it writes.
    unsafe fn run(&self, run: &Run<'_>) -> Result<(), ProductError>;

    /// Bytes of scratch memory that [`run`](Self::run) takes.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// A name for `kovar explain`.
    fn name(&self) -> &'static str;
}

/// An address that kernels of any thread may use, as [`Kernel::run`] allows.
#[derive(Clone, Copy)]
pub(crate) struct Address(*mut u8);

// SAFETY: it is only an address. Code that dereferences it argues from `Kernel::run`'s contract.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    pub(crate) fn get(self) -> *mut u8 {
        self.0
    }
}

/// An operand: a value with the address of its storage.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    /// The storage's first byte. Every element of the layout is inside the storage.
    storage: Address,
    /// The prepared weight, if the storage is one.
    weight: Option<&'a PreparedWeight>,
}

impl<'a> Operand<'a> {
    /// Bytes that `elements` elements take along a row, a whole number of blocks.
    pub(crate) fn bytes(&self, elements: usize) -> usize {
        elements / self.dtype.block_len() * self.dtype.block_bytes()
    }

    /// The address of the first element.
    pub(crate) fn start(&self) -> Address {
        let offset = self.bytes(self.layout.offset());
        // Wrapping, because an empty value may begin past the end of its storage.
        Address(self.storage.0.wrapping_add(offset))
    }

    /// The same memory under another layout, which covers no further elements.
    pub(crate) fn with_layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// The prepared weight, if this operand covers all of it.
    pub(crate) fn whole_weight(
        &self,
        value: &Value,
        storage_bytes: usize,
    ) -> Option<&'a PreparedWeight> {
        let whole = self.layout.is_contiguous() && value.byte_span() == (0..storage_bytes);
        self.weight.filter(|_| whole)
    }
}

/// Resolves the operands of nodes.
pub(crate) struct Resolver<'a> {
    pub(crate) shared: &'a CpuState,
    pub(crate) memory: &'a MemoryMap,
}

impl<'a> Resolver<'a> {
    /// An operand that is read.
    pub(crate) fn read(
        &self,
        node: NodeRef<'_>,
        value: &Value,
    ) -> Result<Operand<'a>, DeviceError> {
        let memory = self.bound(node, value)?;
        let (bytes, _) = memory.bytes();
        let offset = self.offset(value);
        Ok(Operand {
            dtype: value.dtype,
            layout: value.layout,
            storage: Address(bytes.cast_mut().wrapping_add(offset)),
            weight: match memory {
                CpuMemory::Weight(weight) => Some(weight),
                _ => None,
            },
        })
    }

    /// The result, which is written.
    pub(crate) fn write(&self, node: NodeRef<'_>) -> Result<Operand<'a>, DeviceError> {
        self.writable(node, node.output())
    }

    /// The first operand that the node updates.
    pub(crate) fn update(&self, node: NodeRef<'_>) -> Result<Operand<'a>, DeviceError> {
        let value = node.updates().next().ok_or_else(|| {
            let op = node.op().name();
            self.shared.unsupported(Reason::Op { op })
        })?;
        self.writable(node, value)
    }

    fn writable(&self, node: NodeRef<'_>, value: &Value) -> Result<Operand<'a>, DeviceError> {
        let memory = self.bound(node, value)?;
        let (bytes, _) = memory
            .writable()
            .ok_or_else(|| self.shared.foreign("bind"))?;
        let offset = self.offset(value);
        if !offset.is_multiple_of(size_of::<f32>()) {
            return Err(self.unbound(node, value));
        }
        Ok(Operand {
            dtype: value.dtype,
            layout: value.layout,
            storage: Address(bytes.wrapping_add(offset)),
            weight: None,
        })
    }

    /// Operand `i` of a node whose arity the graph has checked.
    pub(crate) fn input(&self, node: NodeRef<'_>, i: usize) -> Result<Operand<'a>, DeviceError> {
        let value = node.input(i).ok_or_else(|| {
            let op = node.op().name();
            self.shared.unsupported(Reason::Op { op })
        })?;
        self.read(node, value)
    }

    fn offset(&self, value: &Value) -> usize {
        self.memory.get(value.storage).map_or(0, |b| b.offset)
    }

    fn bound(&self, node: NodeRef<'_>, value: &Value) -> Result<&'a CpuMemory, DeviceError> {
        let unbound = || self.unbound(node, value);
        let binding = self.memory.get(value.storage).ok_or_else(unbound)?;
        let memory = self.shared.memory(&binding.buffer, "bind")?;
        let end = binding.offset.checked_add(node.storage_of(value).bytes);
        end.filter(|&end| end <= memory.bytes().1)
            .ok_or_else(unbound)?;
        Ok(memory)
    }

    fn unbound(&self, node: NodeRef<'_>, value: &Value) -> DeviceError {
        DeviceError::Unbound {
            device: self.shared.info.id.clone(),
            storage: node.storage_of(value).name.clone(),
        }
    }
}

/// A compiled segment. Its kernels are functions of this program. Binding chooses among them, as
/// the choice depends on the form of the weights, and resolves their operands to addresses.
pub(crate) struct CpuKernel {
    shared: Arc<CpuState>,
    segment: OwnedSegment,
    /// The storages that the nodes read or write.
    storages: BTreeSet<StorageId>,
    max_scalars: Arc<[i32]>,
}

impl CpuKernel {
    pub(crate) fn new(shared: &Arc<CpuState>, segment: Segment<'_>) -> Result<Self, DeviceError> {
        let mut storages = BTreeSet::new();
        for &id in segment.nodes {
            let node = segment.graph.node(id);
            let node = node.ok_or_else(|| shared.foreign("compile"))?;
            if let Support::No(reason) = ops::supports(node) {
                return Err(shared.unsupported(reason));
            }
            storages.extend(node.inputs().map(|value| value.storage));
            storages.insert(node.output().storage);
        }
        for group in segment.groups {
            if let Support::No(reason) = ops::fused::fuses(&segment.group(group)) {
                return Err(shared.unsupported(reason));
            }
        }
        let scalars = segment.graph.scalars().iter();
        Ok(Self {
            shared: shared.clone(),
            storages,
            max_scalars: scalars.map(|scalar| scalar.max).collect(),
            segment: segment.into(),
        })
    }

    fn program(&self, memory: &MemoryMap) -> Result<CpuProgram, DeviceError> {
        let (shared, segment) = (&self.shared, self.segment.get());
        let resolver = Resolver { shared, memory };
        let mut kernels = Vec::with_capacity(segment.nodes.len());
        let mut names = Vec::with_capacity(segment.nodes.len());
        let mut single: Vec<NodeRef<'_>> = Vec::with_capacity(segment.nodes.len());
        for item in segment.items().map(Some).chain([None]) {
            if let Some(SegmentItem::Node(id)) = item {
                let node = segment.graph.node(id);
                let node = node.ok_or_else(|| shared.foreign("bind"))?;
                memory.check_apart(node, node.inputs(), &shared.info.id)?;
                single.push(node);
                continue;
            }
            let mut rest = single.as_slice();
            while let [first, ..] = rest {
                let (kernel, taken) = ops::compile(&resolver, *first, rest)?;
                names.extend(std::iter::repeat_n(kernel.name(), taken));
                kernels.push(kernel);
                rest = &rest[taken..];
            }
            single.clear();
            if let Some(SegmentItem::Group(group)) = item {
                for (node, ..) in group.linked().filter(|&(_, _, kept)| kept) {
                    memory.check_apart(node, group.reads(), &shared.info.id)?;
                }
                let kernel = ops::fused::compile(&resolver, &group)?;
                names.extend(std::iter::repeat_n(kernel.name(), group.nodes.len()));
                kernels.push(kernel);
            }
        }
        let scratch = kernels.iter().map(|kernel| kernel.scratch_bytes()).max();
        let scratch = scratch.unwrap_or(0);
        let refused = |_| shared.out_of_memory("scratch memory", scratch);
        let (scratch, own_bytes) = shared.scratch.at_least(scratch).map_err(refused)?;
        let bindings = self.storages.iter().filter_map(|&id| memory.get(id));
        Ok(CpuProgram {
            kernels,
            names,
            scratch,
            own_bytes,
            max_scalars: self.max_scalars.clone(),
            _buffers: bindings.map(|binding| binding.buffer.clone()).collect(),
            shared: shared.clone(),
        })
    }
}

impl backend::Kernel for CpuKernel {
    fn bind(&self, memory: &MemoryMap) -> Result<Arc<dyn Program>, DeviceError> {
        Ok(Arc::new(self.program(memory)?))
    }
}

impl fmt::Debug for CpuKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuKernel")
            .field("nodes", &self.segment.get().nodes)
            .finish_non_exhaustive()
    }
}

/// A kernel bound to memory.
pub(crate) struct CpuProgram {
    kernels: Vec<Box<dyn Kernel>>,
    names: Vec<&'static str>,
    scratch: Arc<Scratch>,
    /// By how much the device's scratch memory grew for this program.
    own_bytes: usize,
    max_scalars: Arc<[i32]>,
    /// Keeps alive what the kernels point to.
    _buffers: Vec<Buffer>,
    shared: Arc<CpuState>,
}

impl CpuProgram {
    /// Whether the program was compiled for this device.
    pub(crate) fn is_of(&self, shared: &Arc<CpuState>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Runs the kernels one after another.
    ///
    /// # Safety
    /// The caller holds the queue, so that no other work uses the device's memory.
    pub(crate) unsafe fn run(&self, scalars: &[i32]) -> Result<(), DeviceError> {
        let max = self.max_scalars.iter().copied();
        check_scalars(&self.shared.info.id, scalars, max)?;
        let scratch = self.scratch.block();
        for kernel in &self.kernels {
            let run = Run {
                pool: &self.shared.pool,
                vector: self.shared.vector,
                product: self.shared.product,
                scalars,
                scratch: ChunkPtr::new(scratch.as_ptr()),
            };
            // SAFETY: `_buffers` keeps the operands alive. The graph has checked that results and
            // operands overlap only where the operation allows it. The queue is held.
            let result = unsafe { kernel.run(&run) };
            result.map_err(|error| DeviceError::Lost {
                device: self.shared.info.id.clone(),
                reason: format!("{}: {error}", kernel.name()),
            })?;
        }
        Ok(())
    }
}

impl Program for CpuProgram {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kernels(&self) -> Vec<&'static str> {
        self.names.clone()
    }

    fn own_bytes(&self) -> usize {
        self.own_bytes
    }
}

impl fmt::Debug for CpuProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuProgram")
            .field("kernels", &self.names)
            .field("own_bytes", &self.own_bytes())
            .finish_non_exhaustive()
    }
}
