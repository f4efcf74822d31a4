//! A device that hides some of its operations, so that a scheduler must place them elsewhere.

use std::fmt;
use std::sync::Arc;

use kovar_core::backend::{
    Backend, Buffer, DeviceInfo, Import, Kernel, Queue, Reason, Segment, Support, WeightUse,
};
use kovar_core::error::DeviceError;
use kovar_core::fusion::FusedNodes;
use kovar_core::{HostBytes, NodeRef, Storage};

/// A backend that refuses some operations that it may support.
pub struct Restricted {
    backend: Arc<dyn Backend>,
    refused: &'static [&'static str],
}

impl Restricted {
    /// Refuses the operations named in `refused`.
    pub fn without(backend: Arc<dyn Backend>, refused: &'static [&'static str]) -> Self {
        Self { backend, refused }
    }
}

impl fmt::Debug for Restricted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restricted")
            .field("backend", &self.backend)
            .field("refused", &self.refused)
            .finish()
    }
}

impl Backend for Restricted {
    fn info(&self) -> &DeviceInfo {
        self.backend.info()
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        let op = node.op().name();
        if self.refused.contains(&op) {
            return Support::No(Reason::Op { op });
        }
        self.backend.supports(node)
    }

    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        self.backend.estimate(node)
    }

    fn fuses(&self, group: FusedNodes<'_>) -> Support {
        let refused = group
            .iter()
            .find(|node| self.refused.contains(&node.op().name()));
        match refused {
            Some(node) => self.supports(node),
            None => self.backend.fuses(group),
        }
    }

    fn scratch_bytes(&self, node: NodeRef<'_>) -> usize {
        self.backend.scratch_bytes(node)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.backend.alloc(bytes)
    }

    fn alloc_zeroed(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.backend.alloc_zeroed(bytes)
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        self.backend.import_host(bytes)
    }

    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        self.backend.prepare(weight, bytes, uses)
    }

    fn prepared_bytes(&self, weight: &Storage, uses: &[WeightUse<'_>]) -> usize {
        self.backend.prepared_bytes(weight, uses)
    }

    fn upload_ring_bytes(&self) -> usize {
        self.backend.upload_ring_bytes()
    }

    fn readback_bytes(&self) -> usize {
        self.backend.readback_bytes()
    }

    fn streams(&self, weight: &Storage, uses: &[WeightUse<'_>]) -> bool {
        self.backend.streams(weight, uses)
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        self.backend.compile(segment)
    }

    fn queue(&self) -> &dyn Queue {
        self.backend.queue()
    }
}
