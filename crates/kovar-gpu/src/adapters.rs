//! The machine's GPUs, and those that are open.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::backend::{GpuError, GpuOptions};
use crate::kernel::Features;
use crate::pipelines::Pipelines;
use crate::queue::Engine;
use crate::seam::{self, Adapter, AdapterKey, Caps, Device, MatrixShape, MemoryBudget};

/// A GPU of the machine as `kovar devices` shows it.
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
    /// Memory that is the device's own, or that it may use of the host's, in bytes.
    pub memory_bytes: Option<u64>,
    /// What the platform lets this process take of it, where it says.
    pub budget: Option<MemoryBudget>,
    /// Limits of buffers and kernels.
    pub limits: GpuLimits,
    /// The fewest and the most invocations of a subgroup, if there are subgroups.
    pub subgroup_sizes: Option<(u32, u32)>,
    /// Cooperative matrices that kernels may use.
    pub matrices: Vec<MatrixShape>,
    /// What kernels have variants for, and whether this device uses them.
    pub features: Vec<(&'static str, FeatureState)>,
    /// Whether dispatches can be timed on the device.
    pub timestamps: bool,
    /// Whether the host and the device share their memory.
    pub unified_memory: bool,
    /// How bytes come to the device.
    pub transfers: Transfers,
}

/// Limits of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuLimits {
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// The largest window of a buffer that a kernel sees at once, in bytes. Larger tensors are
    /// worked on in parts.
    pub max_binding_bytes: u64,
    /// Bytes that windows begin at multiples of.
    pub binding_alignment: u64,
    /// The most workgroups along a dimension.
    pub max_workgroups: u32,
    /// The most invocations of a workgroup.
    pub max_workgroup_size: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
}

/// Whether a feature is used, and why not.
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

/// How bytes come to a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfers {
    /// Transfers and launches queue without blocking the caller.
    pub asynchronous: bool,
    /// Uploads go through host memory that the device reads itself.
    pub host_buffer: bool,
    /// The device can read mapped files and other host memory where it lies.
    pub from_host_ptr: bool,
    /// Points in the queue can be waited for.
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

/// The GPUs of the machine with these features masked, hardware before software. Nothing is opened.
pub fn adapters(masked: Features) -> Vec<AdapterInfo> {
    let adapters = seam::adapters().into_iter().enumerate();
    adapters
        .map(|(index, (_, adapter))| {
            AdapterInfo::new(index, format!("gpu{index}"), &adapter, masked)
        })
        .collect()
}

/// An open device: one for all who use the same GPU.
#[derive(Debug)]
pub(crate) struct Opened {
    pub owner: Arc<()>,
    pub device: Arc<dyn Device>,
    pub pipelines: Arc<Pipelines>,
    pub engine: Arc<Engine>,
    pub info: AdapterInfo,
    pub adapter: Adapter,
}

/// What tells open devices apart: the GPU, and the stand-in for a further one in tests.
type Key = (AdapterKey, u32);

/// The GPUs that this process has open. A GPU has one queue, so whoever opens it gets the same.
static OPENED: Mutex<Vec<(Key, Weak<Opened>)>> = Mutex::new(Vec::new());

/// The device of the options' adapter, opened if it is not.
pub(crate) fn open(options: &GpuOptions) -> Result<Arc<Opened>, GpuError> {
    let mut found = seam::adapters();
    // Software stands in where there is nothing else.
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
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|(_, device)| device.strong_count() > 0);
    let open = opened.iter().find(|(other, _)| *other == key);
    if let Some(device) = open.and_then(|(_, device)| device.upgrade())
        // A lost device is not given out again: a fresh one may work.
        && device.device.lost().is_none()
    {
        return Ok(device);
    }
    let device = Arc::new(Opened::new(index, adapter, options)?);
    opened.retain(|(other, _)| *other != key);
    opened.push((key, Arc::downgrade(&device)));
    Ok(device)
}

impl Opened {
    fn new(index: usize, adapter: Adapter, options: &GpuOptions) -> Result<Self, GpuError> {
        let failed = |reason: String| GpuError::Open { reason };
        let device = adapter
            .open(options.cache_folder.as_deref())
            .map_err(|error| failed(error.to_string()))?;
        let pipelines = Arc::new(Pipelines::default());
        let mut queue = options.queue.clone();
        queue.timeout = options.timeout.unwrap_or(match adapter.software() {
            true => 5 * queue.timeout,
            false => queue.timeout,
        });
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
