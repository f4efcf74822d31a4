//! A device seen without some of its features, or with a lower limit.

use std::sync::Arc;
use std::time::Duration;

use kovar_core::HostBytes;

use super::{
    BindGroup, Buffer, BufferRange, BufferUse, Caps, Command, Device, Imported, MemoryBudget,
    Pipeline, PipelineSpec, Recording, SeamError, Submission, TimedRecording,
};
use crate::kernel::Features;

/// A device whose caps lack features. All calls go to the device itself, so that users who mask
/// different features share it and its one queue.
#[derive(Debug)]
pub(crate) struct Masked {
    device: Arc<dyn Device>,
    caps: Caps,
}

impl Masked {
    pub(crate) fn new(device: Arc<dyn Device>, masked: Features) -> Self {
        let caps = device.caps().clone().without(masked);
        Self { device, caps }
    }

    /// The device with bindings of at most `bytes` bytes.
    pub(crate) fn with_largest_binding(mut self, bytes: u64) -> Self {
        self.caps.max_binding_bytes = self.caps.max_binding_bytes.min(bytes);
        self
    }

    /// The device with cooperative matrices that invocations emulate.
    pub(crate) fn emulating_matrices(mut self) -> Self {
        self.caps = self.caps.emulating_matrices();
        self
    }
}

impl Device for Masked {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn memory_budget(&self) -> Option<MemoryBudget> {
        self.device.memory_budget()
    }

    fn lost(&self) -> Option<String> {
        self.device.lost()
    }

    fn create_buffer(&self, bytes: u64, usage: BufferUse) -> Result<Arc<dyn Buffer>, SeamError> {
        self.device.create_buffer(bytes, usage)
    }

    fn import(&self, bytes: &HostBytes) -> Option<Imported> {
        self.device.import(bytes)
    }

    fn create_pipeline(&self, spec: &PipelineSpec<'_>) -> Result<Arc<dyn Pipeline>, SeamError> {
        self.device.create_pipeline(spec)
    }

    fn save_pipelines(&self) {
        self.device.save_pipelines();
    }

    fn create_bind_group(
        &self,
        pipeline: &Arc<dyn Pipeline>,
        ranges: &[BufferRange],
    ) -> Result<Arc<dyn BindGroup>, SeamError> {
        let limit = self.caps.max_binding_bytes;
        // The first holds the parameters, which are uniforms.
        let lengths = ranges.iter().skip(1).map(|range| &range.bytes);
        let longest = lengths.map(|bytes| bytes.end - bytes.start).max();
        if let Some(bytes) = longest.filter(|&bytes| bytes > limit) {
            return Err(SeamError::BindingTooLarge { bytes, limit });
        }
        self.device.create_bind_group(pipeline, ranges)
    }

    fn record(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<Box<dyn Recording>, SeamError> {
        self.device.record(commands)
    }

    fn record_timed(
        &self,
        commands: &mut dyn Iterator<Item = Command<'_>>,
    ) -> Result<TimedRecording, SeamError> {
        self.device.record_timed(commands)
    }

    fn submit(&self, recordings: Vec<Box<dyn Recording>>) -> Result<Submission, SeamError> {
        self.device.submit(recordings)
    }

    fn wait(&self, submission: Submission, timeout: Duration) -> Result<bool, SeamError> {
        self.device.wait(submission, timeout)
    }

    fn map(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError> {
        self.device.map(buffer)
    }

    fn unmap(&self, buffer: &Arc<dyn Buffer>) -> Result<(), SeamError> {
        self.device.unmap(buffer)
    }

    fn put(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), SeamError> {
        self.device.put(buffer, offset, bytes)
    }

    fn get(&self, buffer: &Arc<dyn Buffer>, offset: u64, into: &mut [u8]) -> Result<(), SeamError> {
        self.device.get(buffer, offset, into)
    }

    fn capture(&self, on: bool) {
        self.device.capture(on);
    }

    fn destroy(&self) {
        self.device.destroy();
    }
}
