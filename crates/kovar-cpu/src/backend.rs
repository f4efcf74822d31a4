//! The CPU as a device.

use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{
    Backend, Buffer, DeviceInfo, DeviceKind, Import, Kernel, Queue, Reason, Segment, Support,
    WeightUse, check_weight,
};
use kovar_core::error::DeviceError;
use kovar_core::fusion::FusedNodes;
use kovar_core::{HostBytes, NodeRef, Storage};

use crate::buffer::{ALIGN, OutOfHostMemory};
use crate::machine;
use crate::memory::{Block, CpuMemory, DeviceBuffer, PreparedWeight};
use crate::ops;
use crate::pack::PackedLayout;
use crate::pool::{PoolError, ThreadPool};
use crate::product;
use crate::program::CpuKernel;
use crate::queue::CpuQueue;
use crate::scratch::DeviceScratch;
use crate::simd::SimdLevel;
use crate::vector;

/// How to make a [`CpuBackend`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuOptions {
    /// Threads that compute, the caller's included. At most
    /// [`max_threads`](crate::pool::max_threads); `None` takes as many as the process may run at
    /// once.
    pub threads: Option<usize>,
    /// The vector instructions; the machine's best if `None`.
    pub simd: Option<SimdLevel>,
    /// The device's id; `cpu` if `None`. Several devices of one session need different ones.
    pub id: Option<String>,
}

impl CpuOptions {
    /// All threads and the best instructions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the vector instructions.
    pub fn simd(mut self, level: SimdLevel) -> Self {
        self.simd = Some(level);
        self
    }

    /// Sets the device's id.
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }
}

/// Why a [`CpuBackend`] could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// The threads could not be started.
    #[error("the CPU's threads could not be started")]
    Pool(#[from] PoolError),
    /// The machine lacks the instructions asked for.
    #[error("this machine cannot run the SIMD level {level}")]
    Simd {
        /// The level asked for.
        level: SimdLevel,
    },
}

/// State of a CPU device that its queue, kernels and programs share.
pub(crate) struct CpuState {
    /// Distinguishes this device's buffers from those of another CPU device. The queues of two
    /// devices do not exclude each other.
    owner: Arc<()>,
    pub(crate) info: DeviceInfo,
    pub(crate) pool: ThreadPool,
    pub(crate) scratch: DeviceScratch,
    pub(crate) level: SimdLevel,
    pub(crate) vector: &'static vector::Kernels,
    pub(crate) product: &'static product::Kernels,
}

impl CpuState {
    /// The device's own memory of a buffer.
    pub(crate) fn memory<'b>(
        &self,
        buffer: &'b Buffer,
        what: &'static str,
    ) -> Result<&'b CpuMemory, DeviceError> {
        buffer
            .downcast::<DeviceBuffer>()
            .and_then(|buffer| buffer.memory_of(&self.owner))
            .ok_or_else(|| self.foreign(what))
    }

    fn buffer(&self, memory: CpuMemory) -> Buffer {
        Buffer::new(Arc::new(DeviceBuffer::new(self.owner.clone(), memory)))
    }

    pub(crate) fn foreign(&self, what: &'static str) -> DeviceError {
        DeviceError::Foreign {
            device: self.info.id.clone(),
            what,
        }
    }

    pub(crate) fn unsupported(&self, reason: Reason) -> DeviceError {
        DeviceError::Unsupported {
            device: self.info.id.clone(),
            reason,
        }
    }

    pub(crate) fn out_of_memory(&self, what: &str, requested: usize) -> DeviceError {
        DeviceError::OutOfMemory {
            device: self.info.id.clone(),
            what: what.to_owned(),
            requested,
        }
    }

    pub(crate) fn block(&self, bytes: usize, what: &str) -> Result<Block, DeviceError> {
        Block::zeroed(bytes).map_err(|OutOfHostMemory { bytes }| self.out_of_memory(what, bytes))
    }
}

/// The host's processor as a device. Its queue is synchronous: a call returns when its work is
/// done.
pub struct CpuBackend {
    shared: Arc<CpuState>,
    queue: CpuQueue,
}

impl CpuBackend {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`CpuError::Simd`] if the machine lacks the instructions asked for. [`CpuError::Pool`] for
    /// zero threads, for more than [`max_threads`](crate::pool::max_threads), or if the system
    /// refuses to start them.
    pub fn new(options: CpuOptions) -> Result<Self, CpuError> {
        let level = options.simd.unwrap_or_else(SimdLevel::detect);
        let product = product::Kernels::for_level(level).ok_or(CpuError::Simd { level })?;
        let threads = options.threads.unwrap_or_else(machine::usable_threads);
        let shared = Arc::new(CpuState {
            owner: Arc::new(()),
            info: DeviceInfo {
                id: options.id.unwrap_or_else(|| "cpu".to_owned()),
                kind: DeviceKind::Cpu,
                name: machine::processor_name().unwrap_or_else(|| "CPU".to_owned()),
                driver: concat!("kovar-cpu ", env!("CARGO_PKG_VERSION")).to_owned(),
                features: vec![level.name().to_owned()],
                memory_bytes: machine::memory_bytes(),
                alignment: ALIGN,
                max_buffer_bytes: isize::MAX as usize,
                threads: Some(threads),
            },
            pool: ThreadPool::new(threads)?,
            scratch: DeviceScratch::default(),
            level,
            vector: vector::kernels(level),
            product,
        });
        Ok(Self {
            queue: CpuQueue::new(shared.clone()),
            shared,
        })
    }

    /// The vector instructions that the kernels use.
    pub fn simd_level(&self) -> SimdLevel {
        self.shared.level
    }

    /// The threads.
    pub fn pool(&self) -> &ThreadPool {
        &self.shared.pool
    }
}

impl Backend for CpuBackend {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        ops::supports(node)
    }

    fn fuses(&self, group: FusedNodes<'_>) -> Support {
        ops::fused::fuses(&group)
    }

    /// From rates of a usual core: the longer of the times for arithmetic and for memory traffic.
    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        const FLOPS_PER_NANOSECOND_AND_THREAD: f64 = 40.0;
        const BYTES_PER_NANOSECOND: f64 = 15.0;
        const NANOSECONDS_PER_NODE: f64 = 2_000.0;
        let cost = node.cost();
        let threads = self.shared.pool.n_threads() as f64;
        let arithmetic = cost.flops as f64 / (FLOPS_PER_NANOSECOND_AND_THREAD * threads);
        let traffic = (cost.bytes_read + cost.bytes_written) as f64 / BYTES_PER_NANOSECOND;
        NANOSECONDS_PER_NODE + arithmetic.max(traffic)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let block = self.shared.block(bytes, "a buffer")?;
        Ok(self.shared.buffer(CpuMemory::Owned(block)))
    }

    fn alloc_zeroed(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        // Blocks start out as zeros, and large ones get their pages when they are first written.
        self.alloc(bytes)
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        let memory = CpuMemory::Imported(bytes.clone());
        Ok((self.shared.buffer(memory), Import::Shared))
    }

    /// Repacks a quantised matrix that a product of default precision multiplies with. All other
    /// weights are used from the bytes given.
    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        check_weight(&self.shared.info.id, weight, bytes)?;
        let prepared = match packed_layout(weight, uses) {
            None => PreparedWeight::plain(bytes.clone()),
            Some(layout) => {
                let what = format!("the prepared form of `{}`", weight.name);
                let mut block = self.shared.block(layout.bytes(), &what)?;
                let size = |_| DeviceError::WeightSize {
                    device: self.shared.info.id.clone(),
                    weight: weight.name.clone(),
                    expected: weight.bytes,
                    found: bytes.len(),
                };
                layout
                    .pack(bytes.as_slice(), block.as_mut_slice(), &self.shared.pool)
                    .map_err(size)?;
                bytes.release();
                PreparedWeight::packed(bytes.clone(), layout, block)
            }
        };
        Ok(self.shared.buffer(CpuMemory::Weight(prepared)))
    }

    fn prepared_bytes(&self, weight: &Storage, uses: &[WeightUse<'_>]) -> usize {
        packed_layout(weight, uses).map_or(weight.bytes, |layout| layout.bytes())
    }

    fn scratch_bytes(&self, node: NodeRef<'_>) -> usize {
        ops::scratch_bytes(node, self.shared.pool.n_threads())
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        Ok(Arc::new(CpuKernel::new(&self.shared, segment)?))
    }

    fn queue(&self) -> &dyn Queue {
        &self.queue
    }
}

/// The layout that a weight is repacked to, if its uses call for it.
fn packed_layout(weight: &Storage, uses: &[WeightUse<'_>]) -> Option<PackedLayout> {
    let multiplied = uses
        .iter()
        .any(|weight_use| weight_use.operand == 0 && ops::takes_packed(weight_use.node.op()));
    let (rows, columns) = (weight.dims.from_end(1), weight.dims.from_end(0));
    let layout = PackedLayout::new(weight.dtype, rows, columns).ok();
    layout.filter(|_| multiplied && weight.dims.rank() == 2)
}

impl fmt::Debug for CpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBackend")
            .field("info", &self.shared.info)
            .finish_non_exhaustive()
    }
}
