//! Memory of a GPU device.

use std::any::Any;
use std::sync::Arc;

use kovar_core::backend::DeviceMemory;

use crate::seam;

/// A buffer with the device that it belongs to.
#[derive(Debug)]
pub(crate) struct GpuMemory {
    pub owner: Arc<()>,
    pub buffer: Arc<dyn seam::Buffer>,
    /// The first byte in the buffer. It is not 0 where the buffer holds the host's own pages, which
    /// begin before the memory.
    pub start: u64,
    /// Bytes asked for; the buffer may be a few bytes larger.
    pub len: usize,
    /// Whether the queue may write it: imported memory and weights are read-only.
    pub writable: bool,
}

impl DeviceMemory for GpuMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
