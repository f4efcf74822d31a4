//! A GPU as a device.

use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{
    Backend, Buffer, DeviceInfo, DeviceKind, Import, MemoryMap, Program, Queue, Segment, Support,
    WeightUse,
};
use kovar_core::error::DeviceError;
use kovar_core::{HostBytes, NodeRef, Storage};

use crate::kernel::Features;
use crate::memory::GpuMemory;
use crate::ops;
use crate::pipelines::Pipelines;
use crate::program::GpuProgram;
use crate::queue::GpuQueue;
use crate::seam::{self, BufferUse, Device, SeamError};

/// Where tensors begin within buffers, in bytes, at least: what graphics APIs may ask of bindings.
const ALIGNMENT: usize = 256;

/// How to open a [`GpuBackend`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuOptions {
    /// The device's id, `gpu0` if `None`.
    pub id: Option<String>,
    /// Which of the machine's GPUs, hardware first.
    pub index: usize,
    /// Features of the device that are not to be used.
    pub masked: Features,
}

impl GpuOptions {
    /// The first GPU with all its features.
    pub fn new() -> Self {
        Self::default()
    }

    /// Masks features.
    pub fn masked(mut self, features: Features) -> Self {
        self.masked = features;
        self
    }
}

/// Why a [`GpuBackend`] could not be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The machine has fewer GPUs.
    #[error("there is no GPU {index}; this machine has {found}")]
    None {
        /// The one asked for.
        index: usize,
        /// How many there are.
        found: usize,
    },
    /// The driver refused.
    #[error("the GPU could not be opened: {reason}")]
    Open {
        /// What it said.
        reason: String,
    },
}

/// What the backend, its queue and its programs share.
pub(crate) struct Shared {
    pub owner: Arc<()>,
    pub info: DeviceInfo,
    pub device: Arc<dyn Device>,
    pub pipelines: Pipelines,
}

impl Shared {
    /// This device's part of a buffer.
    pub(crate) fn memory<'b>(
        &self,
        buffer: &'b Buffer,
        what: &'static str,
    ) -> Result<&'b GpuMemory, DeviceError> {
        buffer
            .downcast::<GpuMemory>()
            .filter(|memory| Arc::ptr_eq(&memory.owner, &self.owner))
            .ok_or_else(|| self.foreign(what))
    }

    pub(crate) fn foreign(&self, what: &'static str) -> DeviceError {
        DeviceError::Foreign {
            device: self.info.id.clone(),
            what,
        }
    }

    /// An error of the seam, met while doing `what`.
    pub(crate) fn failed(&self, what: &str, error: SeamError) -> DeviceError {
        let device = self.info.id.clone();
        match error {
            SeamError::OutOfMemory { bytes } => DeviceError::OutOfMemory {
                device,
                what: what.to_owned(),
                requested: bytes as usize,
            },
            SeamError::TimedOut { seconds } => DeviceError::TimedOut {
                device,
                what: what.to_owned(),
                seconds,
            },
            SeamError::Lost { reason } => DeviceError::Lost { device, reason },
            SeamError::Invalid { what, message } => DeviceError::Lost {
                device,
                reason: format!("{what}: {message}"),
            },
        }
    }

    fn alloc(&self, bytes: usize, what: &str, writable: bool) -> Result<GpuMemory, DeviceError> {
        let buffer = self
            .device
            .create_buffer(bytes as u64, BufferUse::Storage)
            .map_err(|error| self.failed(what, error))?;
        Ok(GpuMemory {
            owner: self.owner.clone(),
            buffer,
            len: bytes,
            writable,
        })
    }
}

/// A GPU as a device.
pub struct GpuBackend {
    shared: Arc<Shared>,
    queue: GpuQueue,
}

impl GpuBackend {
    /// Opens a GPU.
    ///
    /// # Errors
    /// [`GpuError::None`] if there is no such GPU, [`GpuError::Open`] if its driver refuses.
    pub fn new(options: GpuOptions) -> Result<Self, GpuError> {
        let adapters = seam::adapters();
        let index = options.index;
        let found = adapters.len();
        let adapter = adapters.get(index).ok_or(GpuError::None { index, found })?;
        let device = adapter.open(options.masked).map_err(|e| GpuError::Open {
            reason: e.to_string(),
        })?;
        let id = options.id.unwrap_or_else(|| format!("gpu{index}"));
        Ok(Self::with_device(id, device))
    }

    pub(crate) fn with_device(id: String, device: Arc<dyn Device>) -> Self {
        let caps = device.caps();
        let alignment = (caps.binding_alignment as usize).max(ALIGNMENT);
        let info = DeviceInfo {
            id,
            kind: DeviceKind::Gpu,
            name: caps.name.clone(),
            driver: caps.driver.clone(),
            features: caps.features.names().map(str::to_owned).collect(),
            memory_bytes: caps.memory_bytes,
            alignment,
            max_buffer_bytes: usize::try_from(caps.max_buffer_bytes).unwrap_or(usize::MAX),
            threads: None,
        };
        let shared = Arc::new(Shared {
            owner: Arc::new(()),
            info,
            device,
            pipelines: Pipelines::default(),
        });
        Self {
            queue: GpuQueue::new(shared.clone()),
            shared,
        }
    }
}

impl Backend for GpuBackend {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        ops::supports(self.shared.device.caps(), node)
    }

    /// From rates of a usual discrete GPU: what bounds a node is its arithmetic or its traffic.
    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        const FLOPS_PER_NANOSECOND: f64 = 10_000.0;
        const BYTES_PER_NANOSECOND: f64 = 300.0;
        const NANOSECONDS_PER_NODE: f64 = 5_000.0;
        let cost = node.cost();
        let traffic = (cost.bytes_read + cost.bytes_written) as f64 / BYTES_PER_NANOSECOND;
        NANOSECONDS_PER_NODE + (cost.flops as f64 / FLOPS_PER_NANOSECOND).max(traffic)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let memory = self.shared.alloc(bytes, "a buffer", true)?;
        Ok(Buffer::new(Arc::new(memory)))
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        let memory = self.shared.alloc(bytes.len(), "imported memory", false)?;
        self.queue.upload(&memory, 0, bytes.as_slice())?;
        Ok((Buffer::new(Arc::new(memory)), Import::Copied))
    }

    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        let _ = uses;
        if bytes.len() != weight.bytes {
            return Err(DeviceError::WeightSize {
                device: self.shared.info.id.clone(),
                weight: weight.name.clone(),
                expected: weight.bytes,
                found: bytes.len(),
            });
        }
        let what = format!("weight `{}`", weight.name);
        let memory = self.shared.alloc(bytes.len(), &what, false)?;
        self.queue.upload(&memory, 0, bytes.as_slice())?;
        bytes.release();
        Ok(Buffer::new(Arc::new(memory)))
    }

    fn compile(
        &self,
        segment: Segment<'_>,
        memory: &MemoryMap,
    ) -> Result<Arc<dyn Program>, DeviceError> {
        Ok(Arc::new(GpuProgram::compile(
            &self.shared,
            segment,
            memory,
        )?))
    }

    fn queue(&self) -> &dyn Queue {
        &self.queue
    }
}

impl fmt::Debug for GpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuBackend")
            .field("info", &self.shared.info)
            .finish_non_exhaustive()
    }
}
