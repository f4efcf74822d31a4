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
    /// The first byte in the buffer, which is more than the memory where the host's own pages
    /// are shared.
    pub start: u64,
    /// Bytes asked for; the buffer may have a few more.
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
