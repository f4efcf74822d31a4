//! The machine's GPUs and the devices that are open on them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::backend::{GpuBackend, GpuError, GpuOptions};
use crate::kernel::Features;
use crate::pipelines::Pipelines;
use crate::queue::Engine;
use crate::seam::{Adapter, AdapterKey, Caps, Device, Instance, MatrixShape, MemoryBudget};

/// A GPU of the machine, as `kovar devices` shows it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdapterInfo {
    /// Its number, hardware first: [`GpuOptions::index`] where hardware and software count.
    pub index: usize,
    /// The id of its device.
    pub id: String,
    /// The product's name.
    pub name: String,
    /// The API and the driver with its version.
    pub driver: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// The device's own memory, or the host memory that it may use, in bytes.
    pub memory_bytes: Option<u64>,
    /// How much of it the platform lets this process use, where the platform reports that.
    pub budget: Option<MemoryBudget>,
    /// Limits of buffers and kernels.
    pub limits: GpuLimits,
    /// The fewest and the most invocations of a subgroup, if there are subgroups.
    pub subgroup_sizes: Option<(u32, u32)>,
    /// Cooperative matrices that kernels may use.
    pub matrices: Vec<MatrixShape>,
    /// The features that kernels have variants for, and whether this device uses them.
    pub features: Vec<(&'static str, FeatureState)>,
    /// Whether dispatches can be timed on the device.
    pub timestamps: bool,
    /// Whether the host and the device share their memory.
    pub unified_memory: bool,
    /// How bytes are transferred to the device.
    pub transfers: Transfers,
}

/// Limits of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuLimits {
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// The largest window of a buffer that can be bound to a kernel, in bytes. Larger tensors are
    /// processed in several dispatches.
    pub max_binding_bytes: u64,
    /// Windows begin at multiples of this, in bytes.
    pub binding_alignment: u64,
    /// The most workgroups along a dimension.
    pub max_workgroups: u32,
    /// The most invocations of a workgroup.
    pub max_workgroup_size: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
}

/// Whether a feature is used, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureState {
    /// Kernels use it.
    On,
    /// The driver does not offer it.
    NotOffered,
    /// The user masked it.
    Masked,
}

impl std::fmt::Display for FeatureState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::NotOffered => "off: not offered by the driver",
            Self::Masked => "off: masked by the user",
        })
    }
}

/// How bytes are transferred to a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfers {
    /// Transfers and launches queue without blocking the caller.
    pub asynchronous: bool,
    /// Uploads are staged in host memory that the device can read.
    pub host_buffer: bool,
    /// The device can read mapped files and other host memory in place.
    pub from_host_ptr: bool,
    /// The host can wait for points in the queue.
    pub events: bool,
}

impl AdapterInfo {
    pub(crate) fn new(index: usize, id: String, adapter: &Adapter, masked: Features) -> Self {
        let offered = adapter.caps();
        let all = offered.features;
        let caps = offered.without(masked);
        let state = |feature| match (all.contains(feature), masked.contains(feature)) {
            (false, _) => FeatureState::NotOffered,
            (true, true) => FeatureState::Masked,
            (true, false) => FeatureState::On,
        };
        let features = [Features::SUBGROUPS, Features::F16, Features::MATRICES];
        let subgroups = caps.features.contains(Features::SUBGROUPS);
        Self {
            index,
            id,
            kind: adapter.kind(),
            budget: adapter.memory_budget(),
            features: features
                .into_iter()
                .flat_map(|feature| feature.names().map(move |name| (name, state(feature))))
                .collect(),
            limits: limits(&caps),
            subgroup_sizes: subgroups.then_some(caps.subgroup_sizes),
            timestamps: caps.timestamps,
            unified_memory: caps.unified_memory,
            transfers: Transfers {
                asynchronous: true,
                host_buffer: true,
                from_host_ptr: caps.imports_host,
                events: true,
            },
            memory_bytes: caps.memory_bytes,
            name: caps.name,
            driver: caps.driver,
            matrices: caps.matrices,
        }
    }
}

fn limits(caps: &Caps) -> GpuLimits {
    GpuLimits {
        max_buffer_bytes: caps.max_buffer_bytes,
        max_binding_bytes: caps.max_binding_bytes,
        binding_alignment: caps.binding_alignment,
        max_workgroups: caps.max_workgroups,
        max_workgroup_size: caps.max_workgroup_size,
        workgroup_bytes: caps.workgroup_bytes,
    }
}

/// An open device. All users of a GPU share it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub owner: Arc<()>,
    pub device: Arc<dyn Device>,
    pub pipelines: Arc<Pipelines>,
    pub engine: Arc<Engine>,
    pub info: AdapterInfo,
    pub adapter: Adapter,
}

/// What identifies an open device: the GPU, and for tests which stand-in for a further GPU it is.
type Key = (AdapterKey, u32);

/// The machine's GPUs, and the devices that are open on them. A GPU has one queue: opening it again
/// from the same value or a clone gives the same device. The drivers are loaded at the first use.
#[derive(Clone, Debug, Default)]
pub struct Gpus(Arc<GpusState>);

#[derive(Debug, Default)]
struct GpusState {
    instance: OnceLock<Instance>,
    opened: Mutex<Vec<(Key, Weak<Opened>)>>,
}

impl Gpus {
    /// No device is open.
    pub fn new() -> Self {
        Self::default()
    }

    /// The GPUs of the machine with these features masked, hardware before software. No device is
    /// opened.
    pub fn adapters(&self, masked: Features) -> Vec<AdapterInfo> {
        let adapters = self.found().into_iter().enumerate();
        adapters
            .map(|(index, (_, adapter))| {
                AdapterInfo::new(index, format!("gpu{index}"), &adapter, masked)
            })
            .collect()
    }

    /// Opens a GPU. If it is open already, the backends share the device, its queue and its memory.
    /// Each backend has its own masked features.
    ///
    /// # Errors
    /// [`GpuError::None`] if there is no such GPU, [`GpuError::Open`] if its driver refuses.
    pub fn open(&self, options: GpuOptions) -> Result<GpuBackend, GpuError> {
        let opened = self.device(&options)?;
        Ok(GpuBackend::new(opened, options))
    }

    fn found(&self) -> Vec<(AdapterKey, Adapter)> {
        self.0.instance.get_or_init(Instance::new).adapters()
    }

    /// The device of the options' adapter, opened if it is not.
    fn device(&self, options: &GpuOptions) -> Result<Arc<Opened>, GpuError> {
        let mut found = self.found();
        // Software implementations are used where there is nothing else.
        if !options.software && found.iter().any(|(_, adapter)| !adapter.software()) {
            found.retain(|(_, adapter)| !adapter.software());
        }
        let index = options.index;
        let (count, nth) = (found.len(), found.into_iter().nth(index));
        let (key, adapter) = nth.ok_or(GpuError::None {
            index,
            found: count,
        })?;
        let key = (key, options.virtual_id);
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|(_, device)| device.strong_count() > 0);
        let open = opened.iter().find(|(other, _)| *other == key);
        if let Some(device) = open.and_then(|(_, device)| device.upgrade())
            // A lost device is not given out again: a newly opened one may work.
            && device.device.lost().is_none()
        {
            return Ok(device);
        }
        let device = Arc::new(Opened::new(index, adapter, options)?);
        opened.retain(|(other, _)| *other != key);
        opened.push((key, Arc::downgrade(&device)));
        Ok(device)
    }
}

impl Opened {
    fn new(index: usize, adapter: Adapter, options: &GpuOptions) -> Result<Self, GpuError> {
        let failed = |reason: String| GpuError::Open { reason };
        let device = adapter
            .open(options.cache_folder.as_deref())
            .map_err(|error| failed(error.to_string()))?;
        let pipelines = Arc::new(Pipelines::default());
        let mut queue = options.queue.clone();
        let factor = if adapter.software() { 5 } else { 1 };
        queue.timeout = options.timeout.unwrap_or(factor * queue.timeout);
        let engine = Engine::new(device.clone(), pipelines.clone(), queue);
        let id = format!("gpu{index}");
        Ok(Self {
            owner: Arc::new(()),
            pipelines,
            engine: Arc::new(engine.map_err(|error| failed(error.to_string()))?),
            info: AdapterInfo::new(index, id, &adapter, Features::NONE),
            adapter,
            device,
        })
    }
}
