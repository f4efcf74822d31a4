//! A GPU as a device.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kovar_core::backend::{
    Backend, Buffer, DeviceInfo, DeviceKind, Import, Kernel, Queue, Segment, Support, WeightUse,
    check_weight,
};
use kovar_core::error::DeviceError;
use kovar_core::{Graph, HostBytes, NodeRef, Storage, StorageId};

use crate::adapters::{AdapterInfo, Opened};
use crate::kernel::Features;
use crate::memory::GpuMemory;
use crate::ops;
use crate::pipelines::Pipelines;
use crate::profile::Profile;
use crate::program::GpuKernel;
use crate::queue::{Engine, Failure, GpuQueue, QueueOptions, Reported};
use crate::seam::{BufferUse, Caps, Device, Masked, MemoryBudget, SeamError};

/// The smallest alignment of tensors within buffers, in bytes: the largest that graphics APIs
/// require of bindings.
const ALIGNMENT: usize = 256;

/// Weights of fewer bytes are copied. Sharing pages takes as long as copying this many bytes.
const MIN_SHARED: usize = 64 << 10;

/// How to open a [`GpuBackend`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GpuOptions {
    /// The device's id; `gpu` and the index if `None`.
    pub id: Option<String>,
    /// The index of the GPU on this machine, hardware before software.
    pub index: usize,
    /// Features of the device that are not used.
    pub masked: Features,
    /// Whether the index counts software implementations. It always does on a machine without
    /// hardware GPUs.
    pub software: bool,
    /// The folder where compiled pipelines are saved for other processes, if any. Of a GPU that is
    /// opened several times, the first options count.
    pub cache_folder: Option<PathBuf>,
    /// How long a submission may take before waiting for it fails. `None` stands for two minutes,
    /// or ten on software. Of a GPU that is opened several times, the first options count.
    pub timeout: Option<Duration>,
    pub(crate) queue: QueueOptions,
    pub(crate) virtual_id: u32,
    pub(crate) largest_binding: Option<u64>,
    pub(crate) emulates_matrices: bool,
}

impl GpuOptions {
    /// The first GPU with all its features.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the device.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the index of the GPU.
    pub fn index(mut self, index: usize) -> Self {
        self.index = index;
        self
    }

    /// Masks features.
    pub fn masked(mut self, features: Features) -> Self {
        self.masked = features;
        self
    }

    /// Lets the index count software implementations too.
    pub fn software(mut self) -> Self {
        self.software = true;
        self
    }

    /// Saves compiled pipelines in a folder.
    pub fn cache_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache_folder = Some(folder.into());
        self
    }

    /// Sets how long a submission may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Opens the same GPU again as if it were another one, for tests of several devices.
    #[doc(hidden)]
    pub fn virtual_id(mut self, id: u32) -> Self {
        self.virtual_id = id;
        self
    }

    /// Lowers the limit of bindings to `bytes` bytes, so that tests need no large tensors.
    #[doc(hidden)]
    pub fn largest_binding(mut self, bytes: u64) -> Self {
        self.largest_binding = Some(bytes);
        self
    }

    /// Emulates cooperative matrices, slowly, so that tests of kernels that use them need no device
    /// that has them.
    #[doc(hidden)]
    pub fn emulate_matrices(mut self) -> Self {
        self.emulates_matrices = true;
        self
    }

    /// Makes upload chunks `long` and `short` bytes long and allows `count` of each, so that tests
    /// fill the ring.
    #[doc(hidden)]
    pub fn upload_chunks(mut self, long: u64, short: u64, count: usize) -> Self {
        (self.queue.long_chunk, self.queue.short_chunk) = (long, short);
        (self.queue.long_chunks, self.queue.short_chunks) = (count, count);
        self
    }

    /// Cuts programs into submissions of at most `dispatches` dispatches, and encodes programs of
    /// at least `parallel` dispatches on several threads, so that tests need no long programs.
    #[doc(hidden)]
    pub fn submissions(mut self, dispatches: usize, parallel: usize) -> Self {
        self.queue.submission_dispatches = dispatches;
        self.queue.parallel_dispatches = parallel;
        self
    }
}

/// Why a [`GpuBackend`] could not be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// An index beyond the machine's GPUs.
    #[error("there is no GPU {index}; this machine has {found}")]
    None {
        /// The index asked for.
        index: usize,
        /// The number of GPUs.
        found: usize,
    },
    /// The driver refused.
    #[error("the GPU could not be opened: {reason}")]
    Open {
        /// The driver's message.
        reason: String,
    },
}

/// State of a GPU device that its queue, kernels and programs share.
pub(crate) struct GpuState {
    /// The same for all users of the GPU.
    pub owner: Arc<()>,
    pub info: DeviceInfo,
    /// The device as this user sees it.
    pub device: Arc<dyn Device>,
    pub pipelines: Arc<Pipelines>,
    pub engine: Arc<Engine>,
    /// The errors of work in flight that were reported to this user of the device.
    pub reported: Reported,
}

impl GpuState {
    /// The device's own memory of a buffer.
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

    /// The error for a storage without memory that a kernel can use.
    pub(crate) fn unbound(&self, graph: &Graph, storage: StorageId) -> DeviceError {
        let storage = graph.storage(storage);
        DeviceError::Unbound {
            device: self.info.id.clone(),
            storage: storage
                .map(|storage| storage.name.clone())
                .unwrap_or_default(),
        }
    }

    /// An error of the queue.
    pub(crate) fn failure(&self, failure: Failure) -> DeviceError {
        self.failed(failure.what, failure.error)
    }

    /// An error of the seam during `what`.
    pub(crate) fn failed(&self, what: &str, error: SeamError) -> DeviceError {
        let device = self.info.id.clone();
        let what = what.to_owned();
        match error {
            SeamError::OutOfMemory { bytes } => DeviceError::OutOfMemory {
                device,
                what,
                requested: usize::try_from(bytes).unwrap_or(usize::MAX),
            },
            SeamError::TimedOut { seconds } => DeviceError::TimedOut {
                device,
                what,
                seconds,
            },
            SeamError::Lost { reason } => DeviceError::Lost { device, reason },
            SeamError::Unfinished => DeviceError::Unfinished { device, what },
            SeamError::Driver {
                what: call,
                message,
            } => DeviceError::Refused {
                device,
                what: if call == what {
                    what
                } else {
                    format!("{what} ({call})")
                },
                message,
            },
            broken => DeviceError::Refused {
                device,
                what,
                message: broken.to_string(),
            },
        }
    }

    fn alloc(&self, bytes: usize, what: &str, writable: bool) -> Result<GpuMemory, DeviceError> {
        if let Some(reason) = self.device.lost() {
            return Err(self.failed(what, SeamError::Lost { reason }));
        }
        let buffer = self
            .device
            .create_buffer(bytes as u64, BufferUse::Storage)
            .map_err(|error| self.failed(what, error))?;
        Ok(GpuMemory {
            owner: self.owner.clone(),
            buffer,
            start: 0,
            len: bytes,
            writable,
        })
    }

    /// Imports the host's own pages, where that is possible.
    fn import(&self, bytes: &HostBytes) -> Option<GpuMemory> {
        let imported = self.device.import(bytes)?;
        Some(GpuMemory {
            owner: self.owner.clone(),
            buffer: imported.buffer,
            start: imported.start,
            len: bytes.len(),
            writable: false,
        })
    }

    /// Device memory with a copy of host bytes.
    fn upload(&self, bytes: &HostBytes, what: &str) -> Result<GpuMemory, DeviceError> {
        let memory = self.alloc(bytes.len(), what, false)?;
        let written = self.engine.write(&memory.buffer, 0, bytes.as_slice());
        written.map_err(|failure| self.failure(failure))?;
        Ok(memory)
    }
}

/// The estimated time of a node in nanoseconds, from rates of a usual discrete GPU: the longer of
/// the times for arithmetic and for memory traffic.
pub(crate) fn estimate(node: NodeRef<'_>) -> f64 {
    const FLOPS_PER_NANOSECOND: f64 = 10_000.0;
    const BYTES_PER_NANOSECOND: f64 = 300.0;
    const NANOSECONDS_PER_NODE: f64 = 5_000.0;
    let cost = node.cost();
    let traffic = (cost.bytes_read + cost.bytes_written) as f64 / BYTES_PER_NANOSECOND;
    NANOSECONDS_PER_NODE + (cost.flops as f64 / FLOPS_PER_NANOSECOND).max(traffic)
}

/// A GPU as a device.
pub struct GpuBackend {
    shared: Arc<GpuState>,
    queue: GpuQueue,
    /// The open GPU and the features that this user masks; `None` for a device of tests.
    adapter: Option<(Arc<Opened>, Features)>,
}

impl GpuBackend {
    /// A user of an open GPU.
    pub(crate) fn new(opened: Arc<Opened>, options: GpuOptions) -> Self {
        let id = options.id.unwrap_or_else(|| opened.info.id.clone());
        let changed = options.masked != Features::NONE
            || options.largest_binding.is_some()
            || options.emulates_matrices;
        let mut device = opened.device.clone();
        if changed {
            let mut masked = Masked::new(device, options.masked);
            if let Some(bytes) = options.largest_binding {
                masked = masked.with_largest_binding(bytes);
            }
            if options.emulates_matrices {
                masked = masked.emulating_matrices();
            }
            device = Arc::new(masked);
        }
        let shared = GpuState {
            owner: opened.owner.clone(),
            info: device_info(id, device.caps()),
            device,
            pipelines: opened.pipelines.clone(),
            reported: opened.engine.user(),
            engine: opened.engine.clone(),
        };
        Self::of(shared, Some((opened, options.masked)))
    }

    fn of(shared: GpuState, adapter: Option<(Arc<Opened>, Features)>) -> Self {
        let shared = Arc::new(shared);
        Self {
            queue: GpuQueue::new(shared.clone()),
            shared,
            adapter,
        }
    }

    /// Another user of the same device.
    #[cfg(test)]
    pub(crate) fn again(&self) -> Self {
        let shared = &self.shared;
        let shared = GpuState {
            owner: shared.owner.clone(),
            info: shared.info.clone(),
            device: shared.device.clone(),
            pipelines: shared.pipelines.clone(),
            reported: shared.engine.user(),
            engine: shared.engine.clone(),
        };
        Self::of(shared, None)
    }

    /// A backend of a device of its own.
    #[cfg(test)]
    pub(crate) fn with_device(
        id: &str,
        device: Arc<dyn Device>,
        options: QueueOptions,
    ) -> std::io::Result<Self> {
        let pipelines = Arc::new(Pipelines::default());
        let engine = Engine::new(device.clone(), pipelines.clone(), options)?;
        let shared = GpuState {
            owner: Arc::new(()),
            info: device_info(id.to_owned(), device.caps()),
            device,
            pipelines,
            reported: engine.user(),
            engine: Arc::new(engine),
        };
        Ok(Self::of(shared, None))
    }

    /// The GPU as this user sees it, with its present memory budget.
    pub fn adapter_info(&self) -> Option<AdapterInfo> {
        let (opened, masked) = self.adapter.as_ref()?;
        let id = self.shared.info.id.clone();
        let mut info = AdapterInfo::new(opened.info.index, id, &opened.adapter, *masked);
        info.transfers.from_host_ptr = self.shared.device.caps().imports_host;
        Some(info)
    }

    /// How much of the device's memory the platform lets this process use, and how much it uses.
    pub fn memory_budget(&self) -> Option<MemoryBudget> {
        self.shared.device.memory_budget()
    }

    /// Times every dispatch of this user's launches until [`stop_profile`](Self::stop_profile). A
    /// launch then runs its dispatches one by one and waits for them, so the sum of their times is
    /// more than the time of a plain run.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the device has no timestamp queries.
    pub fn start_profile(&self) -> Result<(), DeviceError> {
        if !self.shared.device.caps().timestamps {
            return Err(self.refused("a timed launch", "the device has no timestamp queries"));
        }
        *self.queue.profile() = Some(Vec::new());
        Ok(())
    }

    /// The dispatches since [`start_profile`](Self::start_profile); none without it.
    pub fn stop_profile(&self) -> Profile {
        let dispatches = self.queue.profile().take();
        Profile::new(dispatches.unwrap_or_default())
    }

    /// Waits for the queued work, then lets the attached graphics debugger (RenderDoc, Xcode)
    /// capture the device's work until the [`Capture`] ends. Without a debugger this has no effect.
    ///
    /// # Errors
    /// Those of [`Queue::wait`], and [`DeviceError::Refused`] within another capture.
    pub fn start_capture(&self) -> Result<Capture<'_>, DeviceError> {
        let engine = &self.shared.engine;
        let begun = engine.start_capture();
        if !begun.map_err(|failure| self.shared.failure(failure))? {
            return Err(self.refused("a capture", "another capture is running"));
        }
        Ok(Capture {
            backend: Some(self),
        })
    }

    fn refused(&self, what: &str, message: &str) -> DeviceError {
        DeviceError::Refused {
            device: self.shared.info.id.clone(),
            what: what.to_owned(),
            message: message.to_owned(),
        }
    }

    /// Destroys the device for all its users, as if the driver had lost it.
    #[doc(hidden)]
    pub fn lose(&self) {
        self.shared.device.destroy();
    }
}

/// A running capture of the graphics debugger. It ends when this is dropped, at the latest.
#[must_use = "the capture ends when this is dropped"]
#[derive(Debug)]
pub struct Capture<'b> {
    backend: Option<&'b GpuBackend>,
}

impl Capture<'_> {
    /// Waits for the queued work and ends the capture.
    ///
    /// # Errors
    /// Those of [`Queue::wait`]. The capture has ended even then.
    pub fn end(mut self) -> Result<(), DeviceError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), DeviceError> {
        let Some(backend) = self.backend.take() else {
            return Ok(());
        };
        let shared = &backend.shared;
        let ended = shared.engine.stop_capture();
        ended.map_err(|failure| shared.failure(failure))
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // Later waits of the queue report the errors.
        let _ = self.stop();
    }
}

fn device_info(id: String, caps: &Caps) -> DeviceInfo {
    let alignment = (caps.binding_alignment as usize).max(ALIGNMENT);
    DeviceInfo {
        id,
        kind: DeviceKind::Gpu,
        name: caps.name.clone(),
        driver: caps.driver.clone(),
        features: caps.features.names().map(str::to_owned).collect(),
        memory_bytes: caps.memory_bytes,
        alignment,
        max_buffer_bytes: usize::try_from(caps.max_buffer_bytes).unwrap_or(usize::MAX),
        threads: None,
    }
}

impl Backend for GpuBackend {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        ops::supports(self.shared.device.caps(), node)
    }

    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        estimate(node)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let memory = self.shared.alloc(bytes, "a buffer", true)?;
        Ok(Buffer::new(Arc::new(memory)))
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        let (memory, import) = match self.shared.import(bytes) {
            Some(memory) => (memory, Import::Shared),
            None => (
                self.shared.upload(bytes, "imported memory")?,
                Import::Copied,
            ),
        };
        Ok((Buffer::new(Arc::new(memory)), import))
    }

    /// Shares the file's own pages on unified memory where possible, else copies them.
    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        let _ = uses;
        check_weight(&self.shared.info.id, weight, bytes)?;
        let caps = self.shared.device.caps();
        let shares = caps.unified_memory && bytes.len() >= MIN_SHARED;
        let shared = shares.then(|| self.shared.import(bytes)).flatten();
        let memory = match shared {
            Some(memory) => memory,
            None => {
                let what = format!("weight `{}`", weight.name);
                let memory = self.shared.upload(bytes, &what)?;
                bytes.release();
                memory
            }
        };
        Ok(Buffer::new(Arc::new(memory)))
    }

    fn upload_ring_bytes(&self) -> usize {
        self.shared.engine.upload_ring_bytes()
    }

    fn readback_bytes(&self) -> usize {
        self.shared.engine.readback_bytes()
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        Ok(Arc::new(GpuKernel::new(&self.shared, segment)?))
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
