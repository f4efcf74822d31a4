//! A device that computes with the oracle and has memory of its own: it refuses memory, weights and
//! programs of any other device, as real devices would fault on them. It stands for devices of any
//! kind in tests of the harness, of the scheduler and of callers.
//!
//! [`SimulatedOptions`] puts it together: an [`Executor`], what it supports and fuses, limits and
//! rates, when queued work runs, planted [`Fault`]s and spoiled results, and a log of [`Events`].
//!
//! Errors of queued work come back from the next `wait` or ticket, as those of a real queue do.

mod events;
mod faults;
mod memory;
mod options;
mod program;
mod queue;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kovar_core::backend::{
    Backend, Buffer, DeviceInfo, Import, Kernel, Queue, Reason, Segment, Support, WeightUse,
    check_weight,
};
use kovar_core::error::DeviceError;
use kovar_core::fusion::FusedNodes;
use kovar_core::{HostBytes, NodeRef, Storage};

pub use events::{Event, Events, Stage};
pub use faults::{Call, Fault, FaultKind};
pub use options::{AfterLaunch, Executor, Fuses, SimulatedOptions, Supports};
pub use program::Launched;

use memory::{Device, SimulatedMemory};
use program::SimulatedKernel;
use queue::SimulatedQueue;

/// See the [module](self).
pub struct SimulatedDevice {
    info: DeviceInfo,
    device: Arc<Device>,
    queue: SimulatedQueue,
    prepared: Mutex<Vec<(String, usize)>>,
}

impl Default for SimulatedDevice {
    fn default() -> Self {
        Self::new(SimulatedOptions::default())
    }
}

impl fmt::Debug for SimulatedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimulatedDevice")
            .field(&self.info.id)
            .finish()
    }
}

impl SimulatedDevice {
    /// A device of its own, even if another device has the same id.
    pub fn new(options: SimulatedOptions) -> Self {
        let info = DeviceInfo {
            id: options.id.clone(),
            kind: options.kind,
            name: "Simulated device".to_owned(),
            driver: concat!("kovar-testkit ", env!("CARGO_PKG_VERSION")).to_owned(),
            features: Vec::new(),
            memory_bytes: options.memory_bytes,
            alignment: options.alignment,
            max_buffer_bytes: options.max_buffer_bytes,
            threads: None,
        };
        let device = Arc::new(Device::new(options));
        Self {
            info,
            queue: SimulatedQueue::new(device.clone()),
            device,
            prepared: Mutex::default(),
        }
    }

    /// Bytes in use.
    pub fn allocated_bytes(&self) -> u64 {
        self.device.allocated()
    }

    /// How often a kind of call was made, including the calls that failed. Queued work counts when
    /// it runs.
    pub fn calls(&self, call: Call) -> usize {
        self.device.faults.count(call)
    }

    /// The weights that were prepared, in order, each with its number of uses.
    pub fn prepared(&self) -> Vec<(String, usize)> {
        let prepared = self.prepared.lock();
        prepared.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn buffer(
        &self,
        what: &str,
        is_prepared: bool,
        len: usize,
        content: impl FnOnce() -> Vec<u8>,
    ) -> Result<Buffer, DeviceError> {
        let memory = SimulatedMemory::new(&self.device, what, is_prepared, len, content)?;
        Ok(Buffer::new(Arc::new(memory)))
    }
}

impl Backend for SimulatedDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, node: NodeRef<'_>) -> Support {
        let supports = self.device.options.supports.as_ref();
        supports.map_or(Support::Yes, |supports| supports(node))
    }

    fn fuses(&self, group: FusedNodes<'_>) -> Support {
        let fuses = self.device.options.fuses.as_ref();
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
        let (options, cost) = (&self.device.options, node.cost());
        let bytes = (cost.bytes_read + cost.bytes_written) as f64;
        let work = cost.flops as f64 / options.flops_per_ns;
        options.latency_ns + work.max(bytes / options.bytes_per_ns)
    }

    fn upload_ring_bytes(&self) -> usize {
        self.device.options.upload_ring_bytes
    }

    fn readback_bytes(&self) -> usize {
        self.device.options.readback_bytes
    }

    fn streams(&self, _weight: &Storage, _uses: &[WeightUse<'_>]) -> bool {
        self.device.options.streams
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.device.faults.call(Call::Alloc)?;
        // NaN in every float dtype, so that reading what was never written shows.
        self.buffer("a buffer", false, bytes, || vec![0xff; bytes])
    }

    fn import_host(&self, bytes: &HostBytes) -> Result<(Buffer, Import), DeviceError> {
        self.device.faults.call(Call::Import)?;
        let content = || bytes.as_slice().to_vec();
        let buffer = self.buffer("imported memory", false, bytes.len(), content)?;
        Ok((buffer, Import::Copied))
    }

    fn prepare(
        &self,
        weight: &Storage,
        bytes: &HostBytes,
        uses: &[WeightUse<'_>],
    ) -> Result<Buffer, DeviceError> {
        self.device.faults.call(Call::Prepare)?;
        check_weight(&self.info.id, weight, bytes)?;
        let content = || bytes.as_slice().to_vec();
        let buffer = self.buffer(&weight.name, true, bytes.len(), content)?;
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        prepared.push((weight.name.clone(), uses.len()));
        Ok(buffer)
    }

    fn compile(&self, segment: Segment<'_>) -> Result<Arc<dyn Kernel>, DeviceError> {
        self.device.faults.call(Call::Compile)?;
        let nodes = segment.graph.nodes_of(segment.nodes);
        let groups = segment.groups.iter().map(|group| segment.group(group));
        let mut supports = nodes
            .map(|node| self.supports(node))
            .chain(groups.map(|group| self.fuses(group)));
        if let Some(Support::No(reason)) = supports.find(|support| *support != Support::Yes) {
            return Err(DeviceError::Unsupported {
                device: self.info.id.clone(),
                reason,
            });
        }
        Ok(Arc::new(SimulatedKernel {
            device: self.device.clone(),
            segment: segment.into(),
        }))
    }

    fn queue(&self) -> &dyn Queue {
        &self.queue
    }
}
