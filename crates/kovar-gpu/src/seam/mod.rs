//! The seam between this crate and a graphics API: buffers, kernels, recorded commands and
//! submissions. Everything else in the crate knows a GPU only through it.

mod wgpu;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::kernel::Features;

pub(crate) use self::wgpu::adapters;

/// What a device is and can do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Caps {
    /// The product's name.
    pub name: String,
    /// The API and the driver with its version.
    pub driver: String,
    /// What kernels may use.
    pub features: Features,
    /// The fewest and the most invocations of a subgroup; 0 without [`Features::SUBGROUPS`].
    pub subgroup_sizes: (u32, u32),
    /// Bindings begin at multiples of this, in bytes; a power of two.
    pub binding_alignment: u64,
    /// The largest binding, in bytes.
    pub max_binding_bytes: u64,
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// The most workgroups along a dimension.
    pub max_workgroups: u32,
    /// The most invocations of a workgroup.
    pub max_workgroup_size: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Whether the host and the device share their memory.
    pub unified_memory: bool,
    /// Memory of the device in bytes, if it can be known.
    pub memory_bytes: Option<u64>,
    /// A software implementation on the CPU.
    pub software: bool,
}

/// Why the API refused or failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum SeamError {
    #[error("out of memory allocating {bytes} bytes")]
    OutOfMemory { bytes: u64 },
    #[error("device lost: {reason}")]
    Lost { reason: String },
    #[error("{what}: {message}")]
    Invalid { what: String, message: String },
    #[error("no end within {seconds} s")]
    TimedOut { seconds: f64 },
}

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferUse {
    /// Memory of the device that kernels read and write.
    Storage,
    /// Parameters of kernels.
    Uniform,
    /// Run-time scalars, which kernels read as storage or as uniforms.
    Scalars,
    /// Host memory on its way to the device.
    Upload,
    /// Device memory on its way to the host.
    Readback,
}

/// Memory of a device. The last clone to go frees it, once the work that uses it is done.
pub(crate) trait Buffer: Any + Send + Sync + fmt::Debug {
    fn len(&self) -> u64;
    fn as_any(&self) -> &dyn Any;
}

/// A kernel made ready.
pub(crate) trait Pipeline: Any + Send + Sync + fmt::Debug {
    fn as_any(&self) -> &dyn Any;
}

/// The buffers of a dispatch.
pub(crate) trait BindGroup: Any + Send + Sync + fmt::Debug {
    fn as_any(&self) -> &dyn Any;
}

/// Recorded commands; submitted once.
pub(crate) trait Recording: Any + Send {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// How a pipeline uses a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BindingKind {
    Uniform,
    Read,
    Write,
}

/// A pipeline to be made.
#[derive(Debug)]
pub(crate) struct PipelineSpec<'a> {
    /// The WGSL text.
    pub source: &'a str,
    pub entry: &'a str,
    pub constants: &'a [(&'static str, u32)],
    /// Every binding of group 0, by its number.
    pub bindings: &'a [BindingKind],
}

/// A range of a buffer to be bound.
#[derive(Clone, Debug)]
pub(crate) struct BufferRange {
    pub buffer: Arc<dyn Buffer>,
    pub bytes: Range<u64>,
}

/// A command to be recorded. Offsets and lengths are multiples of 4 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command<'a> {
    Dispatch {
        pipeline: &'a Arc<dyn Pipeline>,
        bindings: &'a Arc<dyn BindGroup>,
        workgroups: [u32; 3],
    },
    Copy {
        from: &'a Arc<dyn Buffer>,
        from_offset: u64,
        to: &'a Arc<dyn Buffer>,
        to_offset: u64,
        len: u64,
    },
    /// Sets bytes to 0.
    Clear {
        buffer: &'a Arc<dyn Buffer>,
        offset: u64,
        len: u64,
    },
}

/// A submission's number; they end in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Submission(pub u64);

/// An open device.
pub(crate) trait Device: Send + Sync + fmt::Debug {
    fn caps(&self) -> &Caps;

    /// A buffer of `bytes` bytes, rounded up to whole words, of unspecified content.
    fn create_buffer(&self, bytes: u64, usage: BufferUse) -> Result<Arc<dyn Buffer>, SeamError>;

    fn create_pipeline(&self, spec: &PipelineSpec<'_>) -> Result<Arc<dyn Pipeline>, SeamError>;

    /// The ranges by binding number.
    fn create_bind_group(
        &self,
        pipeline: &Arc<dyn Pipeline>,
        ranges: &[BufferRange],
    ) -> Result<Arc<dyn BindGroup>, SeamError>;

    fn record(&self, commands: &[Command<'_>]) -> Result<Box<dyn Recording>, SeamError>;

    /// Queues recordings behind all that was submitted before.
    fn submit(&self, recordings: Vec<Box<dyn Recording>>) -> Result<Submission, SeamError>;

    /// Waits until a submission and all before it have ended.
    fn wait(&self, submission: Submission) -> Result<(), SeamError>;

    /// Copies `bytes` into an upload, uniform or storage buffer before the next submission runs.
    fn write(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), SeamError>;

    /// Reads a readback buffer that no work in flight writes.
    fn read(&self, buffer: &Arc<dyn Buffer>, into: &mut [u8]) -> Result<(), SeamError>;
}
