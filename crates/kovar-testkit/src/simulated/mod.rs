//! A device that computes with the oracle and whose memory is its own: memory, weights and
//! programs of any other device are refused, as real devices would fault on them. It stands for
//! devices of any kind in tests of the harness and of the scheduler: operations can be missing,
//! memory can run out, and any call can be made to fail.
//!
//! Work runs as it is queued, or as late as it may, and its errors come back from the next `wait` or
//! ticket, as those of a real queue do.

mod events;
mod faults;
mod memory;
mod program;
mod queue;

use std::sync::Arc;

use kovar_core::backend::{
    Backend, Buffer, DeviceInfo, DeviceKind, Import, Kernel, Queue, Reason, Segment, Support,
    WeightUse,
};
use kovar_core::error::DeviceError;
use kovar_core::fusion::FusedNodes;
use kovar_core::{HostBytes, NodeRef, Storage};

pub use events::{Event, Events, Stage};
pub use faults::{Call, Fault, FaultKind};

use crate::oracle::Activations;
use memory::{Contents, Device, SimulatedMemory};
use program::SimulatedKernel;
use queue::SimulatedQueue;

/// Which nodes a simulated device supports.
pub type Supports = dyn Fn(NodeRef<'_>) -> Support + Send + Sync;

/// Which groups of nodes a simulated device runs as one kernel.
pub type Fuses = dyn Fn(FusedNodes<'_>) -> bool + Send + Sync;

/// What a simulated device is like.
#[derive(Clone)]
pub struct SimulatedOptions {
    /// Its id.
    pub id: String,
    /// What it poses as.
    pub kind: DeviceKind,
    /// What [`DeviceInfo::alignment`] says, a power of two.
    pub alignment: usize,
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: usize,
    /// Its memory, in bytes; without it there is no end to it.
    pub memory_bytes: Option<u64>,
    /// The names of the operations that it supports; all of them without it.
    pub ops: Option<Vec<&'static str>>,
    /// Further conditions on what it supports.
    pub supports: Option<Arc<Supports>>,
    /// The groups of supported nodes that it fuses; none without it.
    pub fuses: Option<Arc<Fuses>>,
    /// Whether products with quantised weights quantise their activations.
    pub activations: Activations,
    /// Floating-point operations per nanosecond, for estimates.
    pub flops_per_ns: f64,
    /// Bytes read or written per nanosecond, for estimates.
    pub bytes_per_ns: f64,
    /// Nanoseconds to begin a node, for estimates.
    pub latency_ns: f64,
    /// Whether queued work runs only when something waits for it, as late as a real queue may. Else
    /// it runs as it is queued.
    pub deferred: bool,
    /// What [`Backend::upload_ring_bytes`] says.
    pub upload_ring_bytes: usize,
    /// What [`Backend::readback_bytes`] says.
    pub readback_bytes: usize,
    /// Calls that fail.
    pub faults: Vec<Fault>,
    /// Where to record what happens on its queue.
    pub events: Option<Events>,
}

impl Default for SimulatedOptions {
    fn default() -> Self {
        Self {
            id: "sim0".to_owned(),
            kind: DeviceKind::Simulated,
            alignment: 64,
            max_buffer_bytes: usize::MAX / 2,
            memory_bytes: None,
            ops: None,
            supports: None,
            fuses: None,
            activations: Activations::Exact,
            flops_per_ns: 10.0,
            bytes_per_ns: 10.0,
            latency_ns: 1000.0,
            deferred: false,
            upload_ring_bytes: 0,
            readback_bytes: 0,
            faults: Vec::new(),
            events: None,
        }
    }
}

/// See the [module](self).
pub struct SimulatedDevice {
    info: DeviceInfo,
    options: SimulatedOptions,
    device: Arc<Device>,
    queue: SimulatedQueue,
}

impl Default for SimulatedDevice {
    fn default() -> Self {
        Self::new(SimulatedOptions::default())
    }
}

impl std::fmt::Debug for SimulatedDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SimulatedDevice")
            .field(&self.info.id)
            .finish()
    }
}

impl SimulatedDevice {
    /// A device of its own, even if the id is another's.
    pub fn new(options: SimulatedOptions) -> Self {
        let device = Arc::new(Device::new(&options));
        Self {
            info: DeviceInfo {
                id: options.id.clone(),
                kind: options.kind,
                name: "Simulated device".to_owned(),
                driver: concat!("kovar-testkit ", env!("CARGO_PKG_VERSION")).to_owned(),
                features: Vec::new(),
                memory_bytes: options.memory_bytes,
                alignment: options.alignment,
                max_buffer_bytes: options.max_buffer_bytes,
                threads: None,
            },
            queue: SimulatedQueue::new(device.clone(), options.deferred),
            device,
            options,
        }
    }

    /// Bytes in use.
    pub fn allocated_bytes(&self) -> u64 {
        self.device.allocated()
    }

    /// How often a kind of call was made, those that failed among them.
    pub fn calls(&self, call: Call) -> usize {
        self.device.faults.count(call)
    }

    fn buffer(&self, what: &str, contents: Contents) -> Result<Buffer, DeviceError> {
        Ok(Buffer::new(Arc::new(SimulatedMemory::new(
            &self.device,
            what,
            contents,
        )?)))
    }
}

impl Backend for SimulatedDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        let op = node.op().name();
        let listed = self.options.ops.as_ref();
        if listed.is_some_and(|ops| !ops.contains(&op)) {
            return Support::No(Reason::Op { op });
        }
        match &self.options.supports {
            Some(supports) => supports(node),
            None => Support::Yes,
        }
    }

    fn fuses(&self, group: FusedNodes<'_>) -> Support {
        let fuses = self.options.fuses.as_ref();
        if !fuses.is_some_and(|fuses| fuses(group)) {
            let fusion = group.fusion.name();
            return Support::No(Reason::Fusion { fusion });
        }
        let mut nodes = group.iter().map(|node| self.supports(node));
        nodes
            .find(|support| *support != Support::Yes)
            .unwrap_or(Support::Yes)
    }

    fn estimate(&self, node: NodeRef<'_>) -> f64 {
        let (options, cost) = (&self.options, node.cost());
        let bytes = (cost.bytes_read + cost.bytes_written) as f64;
        let work = cost.flops as f64 / options.flops_per_ns;
        options.latency_ns + work.max(bytes / options.bytes_per_ns)
    }

    fn upload_ring_bytes(&self) -> usize {
        self.options.upload_ring_bytes
    }

    fn readback_bytes(&self) -> usize {
        self.options.readback_bytes
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.device.call(Call::Alloc)?;
        // NaN in every float dtype, so that reading what was never written shows.
        self.buffer("a buffer", Contents::plain(vec![0xff; bytes]))
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        self.device.call(Call::Import)?;
        let contents = Contents::plain(bytes.as_slice().to_vec());
        Ok((self.buffer("imported memory", contents)?, Import::Copied))
    }

    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        _uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        self.device.call(Call::Prepare)?;
        if bytes.len() != weight.bytes {
            return Err(DeviceError::WeightSize {
                device: self.info.id.clone(),
                weight: weight.name.clone(),
                expected: weight.bytes,
                found: bytes.len(),
            });
        }
        let contents = Contents::Prepared(bytes.as_slice().to_vec());
        self.buffer(&weight.name, contents)
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        self.device.call(Call::Compile)?;
        for node in segment
            .nodes
            .iter()
            .filter_map(|&id| segment.graph.node(id))
        {
            if let Support::No(reason) = self.supports(node) {
                return Err(DeviceError::Unsupported {
                    device: self.info.id.clone(),
                    reason,
                });
            }
        }
        for group in segment.groups {
            if let Support::No(reason) = self.fuses(segment.group(group)) {
                return Err(DeviceError::Unsupported {
                    device: self.info.id.clone(),
                    reason,
                });
            }
        }
        Ok(Arc::new(SimulatedKernel {
            device: self.device.clone(),
            segment: segment.into(),
            activations: self.options.activations,
        }))
    }

    fn queue(&self) -> &dyn Queue {
        &self.queue
    }
}
