//! A device that takes all work and does none of it.

use std::any::Any;
use std::sync::Arc;

use kovar_core::backend::{
    Backend, Buffer, DeviceInfo, DeviceKind, DeviceMemory, Fence, Import, Kernel, MemoryMap,
    Program, Queue, ReadTicket, Segment, Support, WeightUse,
};
use kovar_core::error::DeviceError;
use kovar_core::{HostBytes, NodeRef, Storage};

#[derive(Debug)]
pub struct Idle(DeviceInfo);

#[derive(Debug)]
struct Bytes(usize);

#[derive(Clone, Debug)]
struct Nodes(usize);

struct Zeros(usize);

impl Idle {
    pub fn new(id: &str) -> Self {
        Self(DeviceInfo {
            id: id.to_owned(),
            kind: DeviceKind::Simulated,
            name: "Idle".to_owned(),
            driver: String::new(),
            features: Vec::new(),
            memory_bytes: None,
            alignment: 64,
            max_buffer_bytes: usize::MAX / 2,
            threads: None,
        })
    }
}

impl DeviceMemory for Bytes {
    fn len(&self) -> usize {
        self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Kernel for Nodes {
    fn bind(&self, _: &MemoryMap) -> Result<Arc<dyn Program>, DeviceError> {
        Ok(Arc::new(self.clone()))
    }
}

impl Program for Nodes {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kernels(&self) -> Vec<&'static str> {
        vec!["idle"; self.0]
    }

    fn own_bytes(&self) -> usize {
        0
    }
}

impl ReadTicket for Zeros {
    fn wait(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
        Ok(vec![0; self.0])
    }
}

impl Queue for Idle {
    fn write(&self, _: &Buffer, _: usize, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&self, _: &Buffer, _: usize, len: usize) -> Result<Box<dyn ReadTicket>, DeviceError> {
        Ok(Box::new(Zeros(len)))
    }

    fn copy(
        &self,
        _: &Buffer,
        _: usize,
        _: &Buffer,
        _: usize,
        _: usize,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    fn fill(&self, _: &Buffer, _: usize, _: usize, _: u8) -> Result<(), DeviceError> {
        Ok(())
    }

    fn launch(&self, _: &dyn Program, _: &[i32]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn fence(&self) -> Result<Fence, DeviceError> {
        Ok(Fence(0))
    }

    fn wait(&self, _: Fence) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl Backend for Idle {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }

    fn supports(&self, _: NodeRef<'_>) -> Support {
        Support::Yes
    }

    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        1000.0 + node.cost().flops as f64 / 100.0
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        Ok(Buffer::new(Arc::new(Bytes(bytes))))
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        Ok((self.alloc(bytes.len())?, Import::Copied))
    }

    fn prepare(
        &self,
        weight: &Storage,
        _: &HostBytes,
        _: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        self.alloc(weight.bytes)
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        Ok(Arc::new(Nodes(segment.nodes.len())))
    }

    fn queue(&self) -> &dyn Queue {
        self
    }
}
