//! The interface of devices to the runtime: memory, kernels, programs and one in-order queue.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::error::DeviceError;
use crate::fusion::{FusedNodes, Group};
use crate::graph::{Graph, NodeId, NodeRef, Storage, StorageId, Value};
use crate::host::HostBytes;

/// What kind of device a backend drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The host's own processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// A stand-in for tests.
    Simulated,
}

/// A description of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// A short name, unique on the machine: `cpu`, `gpu0`.
    pub id: String,
    /// What kind of device it is.
    pub kind: DeviceKind,
    /// The product's name.
    pub name: String,
    /// The driver and its version. Other drivers may be faster or slower.
    pub driver: String,
    /// The names of features that not every device of its kind has.
    pub features: Vec<String>,
    /// Its memory, in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
    /// Positions of tensors within a buffer must be multiples of this, in bytes; a power of two.
    pub alignment: usize,
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: usize,
    /// The number of threads that compute, for devices that have threads.
    pub threads: Option<usize>,
}

/// Whether a device can run a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can: there is a kernel.
    Yes,
    /// It cannot, for this reason.
    No(Reason),
}

/// Why a device cannot run a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// No kernel for the operation at all.
    #[error("no kernel for {op}")]
    Op {
        /// The operation.
        op: &'static str,
    },
    /// No kernel of the operation for the dtype of an operand or the result.
    #[error("no kernel of {op} for {dtype} as `{operand}`")]
    DType {
        /// The operation.
        op: &'static str,
        /// The operand's name, or "result".
        operand: &'static str,
        /// Its dtype.
        dtype: crate::DType,
    },
    /// No kernel of the operation for the strides of an operand or the result.
    #[error("no kernel of {op} for the strides of `{operand}`")]
    Layout {
        /// The operation.
        op: &'static str,
        /// The operand's name, or "result".
        operand: &'static str,
    },
    /// The kernel needs a feature that the device lacks or that is masked.
    #[error("{op} needs the feature `{feature}`")]
    Feature {
        /// The operation.
        op: &'static str,
        /// The feature's name.
        feature: &'static str,
    },
    /// No kernel for a group of nodes.
    #[error("no kernel for {fusion} in one")]
    Fusion {
        /// The name of the row in the table of fusions.
        fusion: &'static str,
    },
}

impl Reason {
    /// The reason why kernels cannot run a node because of its dtypes; `None` if they can. The
    /// kernels take the dtypes `operands(i)` as operand `i` and give the dtypes `result`.
    pub fn of_dtypes(
        node: NodeRef<'_>,
        operands: impl Fn(usize) -> &'static [crate::DType],
        result: &[crate::DType],
    ) -> Option<Self> {
        let op = node.op();
        let inputs = node.inputs().enumerate();
        let mut refused = inputs.filter(|(i, value)| !operands(*i).contains(&value.dtype));
        let refused = refused.next().map(|(i, value)| (op.operand_name(i), value));
        let output = node.output();
        let refused = refused.or((!result.contains(&output.dtype)).then_some(("result", output)));
        refused.map(|(operand, value)| Self::DType {
            op: op.name(),
            operand,
            dtype: value.dtype,
        })
    }
}

/// A backend's memory in a [`Buffer`].
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    /// Its size in bytes. For a prepared weight, the bytes of device memory that it takes.
    fn len(&self) -> usize;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For downcasts to the backend's own type.
    fn as_any(&self) -> &dyn Any;
}

/// Memory of one device. Clones share it; it is freed when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<dyn DeviceMemory>);

impl Buffer {
    /// Wraps a backend's memory.
    pub fn new(memory: Arc<dyn DeviceMemory>) -> Self {
        Self(memory)
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The backend's own type, if this is memory of that backend.
    pub fn downcast<T: DeviceMemory>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// The range of `len` bytes from `offset` on, for the call `what` of the device `device`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`] if it is not inside the buffer.
    pub fn range(
        &self,
        device: &str,
        what: &'static str,
        offset: usize,
        len: usize,
    ) -> Result<Range<usize>, DeviceError> {
        let buffer_len = self.len();
        let end = offset.checked_add(len).filter(|&end| end <= buffer_len);
        let range = end.map(|end| offset..end);
        range.ok_or_else(|| DeviceError::OutOfRange {
            device: device.to_owned(),
            what,
            offset,
            len,
            buffer_len,
        })
    }

    /// Whether both are the same memory.
    pub fn is(&self, other: &Buffer) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

/// How a device got host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Import {
    /// The device reads the host's own pages.
    Shared,
    /// The bytes were copied.
    Copied,
}

/// One use of a weight by a node, for [`Backend::prepare`].
#[derive(Clone, Copy, Debug)]
pub struct WeightUse<'g> {
    /// The node.
    pub node: NodeRef<'g>,
    /// The index of its operand on the weight's storage.
    pub operand: usize,
}

impl WeightUse<'_> {
    /// All uses of all weights of a graph, in program order.
    pub fn all(graph: &Graph) -> HashMap<StorageId, Vec<WeightUse<'_>>> {
        let mut uses: HashMap<_, Vec<_>> = HashMap::new();
        for node in graph.node_refs() {
            for (operand, value) in node.weights() {
                let of_weight = uses.entry(value.storage).or_default();
                of_weight.push(WeightUse { node, operand });
            }
        }
        uses
    }
}

/// The memory of a storage on a device.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The memory: plain bytes, or the result of [`Backend::prepare`] for a weight.
    pub buffer: Buffer,
    /// The storage's first byte; 0 for a prepared weight.
    pub offset: usize,
}

/// The bindings of a graph's storages on one device.
#[derive(Clone, Debug, Default)]
pub struct MemoryMap {
    bindings: Vec<Option<Binding>>,
}

impl MemoryMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a storage, replacing an earlier binding.
    pub fn bind(&mut self, storage: StorageId, binding: Binding) {
        let at = storage.index();
        if self.bindings.len() <= at {
            self.bindings.resize(at + 1, None);
        }
        self.bindings[at] = Some(binding);
    }

    /// The binding of a storage.
    pub fn get(&self, storage: StorageId) -> Option<&Binding> {
        self.bindings.get(storage.index())?.as_ref()
    }

    /// Checks that a node's writes do not overlap `reads` of other storages. Kernels of `device`
    /// rely on that.
    ///
    /// # Errors
    /// [`DeviceError::Aliased`] if they do.
    pub fn check_apart<'g>(
        &self,
        node: NodeRef<'g>,
        reads: impl Iterator<Item = &'g Value>,
        device: &str,
    ) -> Result<(), DeviceError> {
        let range = |value: &Value| {
            let binding = self.get(value.storage)?;
            let bytes = node.storage_of(value).bytes;
            Some((
                binding,
                binding.offset..binding.offset.saturating_add(bytes),
            ))
        };
        for value in reads {
            let Some((source, read)) = range(value) else {
                continue;
            };
            let apart = node
                .writes()
                .filter(|written| written.storage != value.storage);
            for written in apart {
                let Some((target, write)) = range(written) else {
                    continue;
                };
                let start = read.start.max(write.start);
                if source.buffer.is(&target.buffer) && start < read.end.min(write.end) {
                    return Err(DeviceError::Aliased {
                        device: device.to_owned(),
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

/// Nodes that one device runs one after another.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// The nodes, in program order.
    pub nodes: &'g [NodeId],
    /// Groups of nodes that run as one kernel each, in program order and without overlap. The
    /// device [`fuses`](Backend::fuses) every group.
    pub groups: &'g [Group],
}

/// A segment with its own data, for a [`Kernel`] to keep.
#[derive(Clone, Debug)]
pub struct OwnedSegment {
    graph: Graph,
    nodes: Vec<NodeId>,
    groups: Vec<Group>,
}

impl OwnedSegment {
    /// The segment.
    pub fn get(&self) -> Segment<'_> {
        Segment {
            graph: &self.graph,
            nodes: &self.nodes,
            groups: &self.groups,
        }
    }
}

impl From<Segment<'_>> for OwnedSegment {
    fn from(segment: Segment<'_>) -> Self {
        Self {
            graph: segment.graph.clone(),
            nodes: segment.nodes.to_vec(),
            groups: segment.groups.to_vec(),
        }
    }
}

/// A node or a group that one kernel runs.
#[derive(Clone, Copy, Debug)]
pub enum SegmentItem<'g> {
    /// A node by itself.
    Node(NodeId),
    /// A group.
    Group(FusedNodes<'g>),
}

impl<'g> Segment<'g> {
    /// A segment without groups.
    pub fn unfused(graph: &'g Graph, nodes: &'g [NodeId]) -> Self {
        Self {
            graph,
            nodes,
            groups: &[],
        }
    }

    /// The nodes of a group; no nodes if it extends beyond the segment.
    pub fn group(&self, group: &'g Group) -> FusedNodes<'g> {
        FusedNodes {
            graph: self.graph,
            fusion: group.fusion,
            nodes: self.nodes.get(group.nodes.clone()).unwrap_or_default(),
            kept: &group.kept,
        }
    }

    /// All items in program order.
    pub fn items(&self) -> impl Iterator<Item = SegmentItem<'g>> + use<'g> {
        let segment = *self;
        let mut groups = segment.groups.iter().peekable();
        let mut at = 0;
        std::iter::from_fn(move || {
            let node = *segment.nodes.get(at)?;
            let group = groups.next_if(|group| group.nodes.start == at);
            match group.filter(|group| !group.nodes.is_empty()) {
                Some(group) => {
                    at = group.nodes.end;
                    Some(SegmentItem::Group(segment.group(group)))
                }
                None => {
                    at += 1;
                    Some(SegmentItem::Node(node))
                }
            }
        })
    }
}

/// A compiled segment that is not bound to memory. It does not borrow the segment.
pub trait Kernel: Send + Sync + fmt::Debug {
    /// Makes a program that works on the memory that the segment's storages are bound to in
    /// `memory`. Results that a group does not keep need no binding. Programs of one kernel are
    /// independent of each other.
    ///
    /// # Errors
    /// [`DeviceError::Unbound`], [`DeviceError::Foreign`] or [`DeviceError::Aliased`] if the
    /// segment cannot run on this memory; otherwise errors of the device.
    fn bind(&self, memory: &MemoryMap) -> Result<Arc<dyn Program>, DeviceError>;
}

/// A compiled segment bound to memory. It holds on to all memory that it uses.
pub trait Program: Any + Send + Sync + fmt::Debug {
    /// For downcasts to the backend's own type.
    fn as_any(&self) -> &dyn Any;

    /// The name of the kernel that runs each node, in the segment's order, for `kovar explain`.
    fn kernels(&self) -> Vec<&'static str>;

    /// Device memory of the program itself (scratch, parameters), in bytes.
    fn own_bytes(&self) -> usize;
}

/// Checks that a launch on the device `device` gives every run-time scalar, and each within its
/// maximum.
///
/// # Errors
/// [`DeviceError::Scalar`] for the first that is missing or out of range.
pub fn check_scalars(
    device: &str,
    scalars: &[i32],
    max: impl IntoIterator<Item = i32>,
) -> Result<(), DeviceError> {
    for (index, max) in max.into_iter().enumerate() {
        let value = scalars.get(index).copied();
        if value.is_none_or(|value| !(0..=max).contains(&value)) {
            return Err(DeviceError::Scalar {
                device: device.to_owned(),
                index,
                value,
                max,
            });
        }
    }
    Ok(())
}

/// Checks that the device `device` is given all bytes of a weight.
///
/// # Errors
/// [`DeviceError::WeightSize`] if there are more or fewer.
pub fn check_weight(device: &str, weight: &Storage, bytes: &HostBytes) -> Result<(), DeviceError> {
    if bytes.len() == weight.bytes {
        return Ok(());
    }
    Err(DeviceError::WeightSize {
        device: device.to_owned(),
        weight: weight.name.clone(),
        expected: weight.bytes,
        found: bytes.len(),
    })
}

/// A queued read.
pub trait ReadTicket: Send {
    /// Waits for the read and returns the bytes.
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError>;
}

/// A point in a queue's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// The one in-order queue of a device. Work runs in the order of the calls, whatever threads they
/// come from. Errors of work in flight come back from [`wait`](Self::wait) or a ticket. All ranges
/// are checked.
pub trait Queue: Send + Sync {
    /// Copies `bytes` into `buffer`, from `offset` on. The caller may change `bytes` as soon as
    /// this returns.
    fn write(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Reads `len` bytes of `buffer` from `offset` on.
    fn read(
        &self,
        buffer: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Box<dyn ReadTicket>, DeviceError>;

    /// Reads into `bytes` and waits for the read.
    fn read_into(
        &self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let read = self.read(buffer, offset, bytes.len())?.wait()?;
        bytes.copy_from_slice(&read);
        Ok(())
    }

    /// Copies `len` bytes between two buffers of this device. Ranges of one buffer must not
    /// overlap.
    fn copy(
        &self,
        from: &Buffer,
        from_offset: usize,
        to: &Buffer,
        to_offset: usize,
        len: usize,
    ) -> Result<(), DeviceError>;

    /// Sets `len` bytes of `buffer` from `offset` on to `byte`.
    fn fill(&self, buffer: &Buffer, offset: usize, len: usize, byte: u8)
    -> Result<(), DeviceError>;

    /// Runs a program of this device. `scalars` holds the graph's run-time scalars by id.
    fn launch(&self, program: &dyn Program, scalars: &[i32]) -> Result<(), DeviceError>;

    /// Runs a program like [`launch`](Self::launch), but stops once `go_on` returns `false`. A
    /// device that splits long programs into several submissions calls it before each of them.
    /// Returns whether all of the program was queued; if not, the bytes that it writes are
    /// undefined, and the device stays usable. The queue may be locked while `go_on` runs, so
    /// `go_on` must not use it.
    fn launch_while(
        &self,
        program: &dyn Program,
        scalars: &[i32],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, DeviceError> {
        if !go_on() {
            return Ok(false);
        }
        self.launch(program, scalars)?;
        Ok(true)
    }

    /// The point after all work queued so far.
    fn fence(&self) -> Result<Fence, DeviceError>;

    /// Waits until the work before `fence` is done, and returns its first error.
    fn wait(&self, fence: Fence) -> Result<(), DeviceError>;
}

/// A device.
pub trait Backend: Any + Send + Sync + fmt::Debug {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// Whether it can run a node. Reads the same table as [`compile`](Self::compile).
    fn supports(&self, node: NodeRef<'_>) -> Support;

    /// Whether it has one kernel for all nodes of a group and [`supports`](Self::supports) each
    /// node by itself. Reads the same table as [`compile`](Self::compile). The kernel reads the
    /// elements of a window before it writes them, and writes only results that are kept.
    fn fuses(&self, group: FusedNodes<'_>) -> Support {
        let fusion = group.fusion.name();
        Support::No(Reason::Fusion { fusion })
    }

    /// The estimated time of a node, in nanoseconds.
    fn estimate(&self, node: NodeRef<'_>) -> f64;

    /// Memory of `bytes` bytes with unspecified content, aligned to [`DeviceInfo::alignment`].
    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError>;

    /// Memory of `bytes` zero bytes, aligned to [`DeviceInfo::alignment`]. Untouched pages need not
    /// be committed.
    fn alloc_zeroed(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let buffer = self.alloc(bytes)?;
        self.queue().fill(&buffer, 0, bytes, 0)?;
        Ok(buffer)
    }

    /// Makes host bytes readable by the device, without a copy where that is possible.
    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError>;

    /// Converts a weight into the best form for `uses` (plain, repacked, cast). `bytes` are the
    /// contiguous elements of `weight`. Any supported node can use any form.
    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError>;

    /// The bytes of device memory that [`prepare`](Self::prepare) would take.
    fn prepared_bytes(&self, weight: &Storage, uses: &[WeightUse<'_>]) -> usize {
        let _ = uses;
        weight.bytes
    }

    /// An estimate of the scratch memory that a program needs to run a node, in bytes of device
    /// memory. All programs of the device share it.
    fn scratch_bytes(&self, node: NodeRef<'_>) -> usize {
        let _ = node;
        0
    }

    /// Device memory that the queue holds for uploads, in bytes.
    fn upload_ring_bytes(&self) -> usize {
        0
    }

    /// Device memory that the queue holds for downloads, in bytes.
    fn readback_bytes(&self) -> usize {
        0
    }

    /// Whether all of `uses` can read a weight from its plain bytes in ordinary device memory,
    /// which holds it during part of a run.
    fn streams(&self, weight: &Storage, uses: &[WeightUse<'_>]) -> bool {
        let _ = (weight, uses);
        true
    }

    /// Compiles nodes: does all work that does not depend on the memory that they run on.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for a node or a group without a kernel; otherwise errors of
    /// the device.
    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError>;

    /// The device's queue.
    fn queue(&self) -> &dyn Queue;
}
