//! The seam between this crate and a graphics API: buffers, pipelines, recorded commands and
//! submissions. The rest of the crate uses a GPU only through it.

mod caps;
mod masked;
#[cfg(test)]
pub(crate) mod null;
mod wgpu;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kovar_core::HostBytes;

pub(crate) use self::caps::Caps;
pub use self::caps::{MatrixElement, MatrixShape, MemoryBudget};
pub(crate) use self::masked::Masked;
pub(crate) use self::wgpu::{Adapter, AdapterKey, Instance};

/// Why a call of the seam failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum SeamError {
    #[error("out of memory allocating {bytes} bytes")]
    OutOfMemory { bytes: u64 },
    #[error("device lost: {reason}")]
    Lost { reason: String },
    /// The graphics API or its driver refused a call.
    #[error("{what}: {message}")]
    Driver { what: String, message: String },
    /// A buffer, pipeline or recording of another device.
    #[error("the {what} belongs to another device")]
    Foreign { what: &'static str },
    /// A binding larger than the device allows.
    #[error("a binding of {bytes} bytes exceeds the limit of {limit}")]
    BindingTooLarge { bytes: u64, limit: u64 },
    /// More dispatches than one recording can time.
    #[error("more than {MAX_TIMED} dispatches in a timed recording")]
    TooManyTimed,
    /// A kernel without a source file.
    #[error("kernel {entry} has no source file `{file}`")]
    NoSource {
        entry: &'static str,
        file: &'static str,
    },
    /// A dispatch whose operands do not match the kernel's bindings.
    #[error("kernel {entry} takes {expected} operands, the dispatch has {found}")]
    Operands {
        entry: &'static str,
        expected: usize,
        found: usize,
    },
    /// The API's compiler panicked.
    #[error("the compiler of a pipeline panicked")]
    CompilerPanicked,
    #[error("no end within {seconds} s")]
    TimedOut { seconds: f64 },
    #[error("the work ended without its end mark")]
    Unfinished,
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
    /// Host memory that uploads are copied from. It starts out mapped.
    Upload,
    /// Host memory that downloads are copied to.
    Readback,
}

/// Memory of a device. It is freed when the last clone is dropped and the work that uses it is
/// done.
pub(crate) trait Buffer: Any + Send + Sync + fmt::Debug {
    fn len(&self) -> u64;
    fn as_any(&self) -> &dyn Any;
}

/// A compiled kernel.
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

/// The times of a recording's dispatches.
pub(crate) trait Timer: Send {
    /// The start and the end of each dispatch in nanoseconds, on a clock of the device, once the
    /// recording's submission has been waited for.
    fn read(&self) -> Result<Vec<(u64, u64)>, SeamError>;
}

/// A recording and the timer that will have its times.
pub(crate) type TimedRecording = (Box<dyn Recording>, Box<dyn Timer>);

/// How a pipeline uses a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BindingKind {
    Uniform,
    Read,
    Write,
}

/// A pipeline to create.
#[derive(Debug)]
pub(crate) struct PipelineSpec<'a> {
    /// The WGSL text.
    pub source: &'a str,
    pub entry: &'a str,
    pub constants: &'a [(&'static str, u32)],
    /// Every binding of group 0, by its number.
    pub bindings: &'a [BindingKind],
}

/// A range of a buffer to bind.
#[derive(Clone, Debug)]
pub(crate) struct BufferRange {
    pub buffer: Arc<dyn Buffer>,
    pub bytes: Range<u64>,
}

/// A command to record. Offsets and lengths are multiples of 4 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command<'a> {
    Dispatch {
        pipeline: &'a Arc<dyn Pipeline>,
        bindings: &'a Arc<dyn BindGroup>,
        workgroups: [u32; 3],
    },
    /// Between two buffers.
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

/// Host memory that the device reads where it lies.
#[derive(Debug)]
pub(crate) struct Imported {
    /// Holds on to the host's bytes for as long as the device may read them.
    pub buffer: Arc<dyn Buffer>,
    /// The first byte within the buffer.
    pub start: u64,
}

/// An open device. All calls may come from any thread.
pub(crate) trait Device: Send + Sync + fmt::Debug {
    fn caps(&self) -> &Caps;

    /// The memory budget that the platform reports, if it reports one.
    fn memory_budget(&self) -> Option<MemoryBudget>;

    /// Why the device was lost, if it was. All calls fail from then on.
    fn lost(&self) -> Option<String>;

    /// A buffer of `bytes` bytes, rounded up to whole words, of unspecified content.
    fn create_buffer(&self, bytes: u64, usage: BufferUse) -> Result<Arc<dyn Buffer>, SeamError>;

    /// Makes the host's own pages readable as a storage buffer; `None` where that is impossible.
    fn import(&self, bytes: &HostBytes) -> Option<Imported>;

    fn create_pipeline(&self, spec: &PipelineSpec<'_>) -> Result<Arc<dyn Pipeline>, SeamError>;

    /// Saves the pipelines created so far for the next process, where that is possible.
    fn save_pipelines(&self);

    /// Binds the ranges, which are in the order of the binding numbers.
    fn create_bind_group(
        &self,
        pipeline: &Arc<dyn Pipeline>,
        ranges: &[BufferRange],
    ) -> Result<Arc<dyn BindGroup>, SeamError>;

    fn record(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<Box<dyn Recording>, SeamError>;

    /// Records dispatches so that the time of each is measured; at most [`MAX_TIMED`] of them.
    fn record_timed(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<TimedRecording, SeamError>;

    /// Queues recordings, in their order, after all earlier submissions.
    fn submit(&self, recordings: Vec<Box<dyn Recording>>) -> Result<Submission, SeamError>;

    /// Waits until a submission and all before it have ended; `false` if they have not within
    /// `timeout`.
    fn wait(&self, submission: Submission, timeout: Duration) -> Result<bool, SeamError>;

    /// Requests that an upload or readback buffer be mapped. It is mapped once the last submission
    /// before this call has been waited for.
    fn map(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError>;

    /// Gives a mapped buffer back to the device.
    fn unmap(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError>;

    /// Writes a mapped upload buffer. The offset is a multiple of 8 bytes.
    fn put(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), SeamError>;

    /// Reads a mapped readback buffer, from any offset.
    fn get(&self, buffer: &Arc<dyn Buffer>, offset: u64, into: &mut [u8]) -> Result<(), SeamError>;

    /// Begins or ends a capture of the attached graphics debugger, if there is one.
    fn capture(&self, on: bool);

    /// Destroys the device, as if it were lost.
    fn destroy(&self);
}

/// The largest number of dispatches in one timed recording.
pub(crate) const MAX_TIMED: usize = 1024;
