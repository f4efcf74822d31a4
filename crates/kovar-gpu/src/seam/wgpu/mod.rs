//! The seam over wgpu: Metal, Vulkan and DirectX 12.

mod cache;
mod device;
mod memory;
mod open;
mod timer;

#[cfg(target_vendor = "apple")]
#[path = "import_metal.rs"]
mod import;
#[cfg(not(target_vendor = "apple"))]
#[path = "import_vulkan.rs"]
mod import;

use ::wgpu::{Backend, Backends, DeviceType};

use super::caps::{MatrixElement, MatrixShape, MemoryBudget};
use crate::kernel::Features;

/// A GPU of the machine that can be opened.
#[derive(Clone, Debug)]
pub(crate) struct Adapter(pub(super) ::wgpu::Adapter);

/// What identifies a GPU of the machine within a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdapterKey {
    backend: Backend,
    vendor: u32,
    device: u32,
    bus: String,
    name: String,
    /// Its number among GPUs whose other fields are equal.
    number: usize,
}

/// The loaded drivers.
#[derive(Debug)]
pub(crate) struct Instance(::wgpu::Instance);

const BACKENDS: Backends = Backends::VULKAN
    .union(Backends::METAL)
    .union(Backends::DX12);

impl Instance {
    pub(crate) fn new() -> Self {
        Self(::wgpu::Instance::new(::wgpu::InstanceDescriptor {
            backends: BACKENDS,
            ..::wgpu::InstanceDescriptor::new_without_display_handle()
        }))
    }

    /// The GPUs of the machine with their keys, hardware before software. A GPU that several APIs
    /// offer is listed once.
    pub(crate) fn adapters(&self) -> Vec<(AdapterKey, Adapter)> {
        list(pollster::block_on(self.0.enumerate_adapters(BACKENDS)))
    }
}

fn list(mut found: Vec<::wgpu::Adapter>) -> Vec<(AdapterKey, Adapter)> {
    // Vulkan before DirectX, which has neither cooperative matrices nor imported host memory here.
    let rank = |adapter: &::wgpu::Adapter| {
        let info = adapter.get_info();
        let software = info.device_type == DeviceType::Cpu;
        (software, info.backend == Backend::Dx12)
    };
    found.sort_by_key(rank);
    let mut listed: Vec<(AdapterKey, Adapter)> = Vec::new();
    for adapter in found {
        let info = adapter.get_info();
        // The same GPU through another API or another driver.
        let known = listed.iter().any(|(key, _)| {
            let same = (key.vendor, key.device) == (info.vendor, info.device);
            let bus = &info.device_pci_bus_id;
            same && (key.backend != info.backend || (!bus.is_empty() && key.bus == *bus))
        });
        if known {
            continue;
        }
        let mut key = AdapterKey {
            backend: info.backend,
            vendor: info.vendor,
            device: info.device,
            bus: info.device_pci_bus_id,
            name: info.name,
            number: 0,
        };
        while listed.iter().any(|(other, _)| *other == key) {
            key.number += 1;
        }
        listed.push((key, Adapter(adapter)));
    }
    listed
}

/// Our features and wgpu's.
const FEATURES: [(Features, ::wgpu::Features); 3] = [
    (Features::SUBGROUPS, ::wgpu::Features::SUBGROUP),
    (Features::F16, ::wgpu::Features::SHADER_F16),
    (
        Features::MATRICES,
        ::wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX,
    ),
];

impl Adapter {
    /// Whether it is a software implementation on the CPU.
    pub(crate) fn software(&self) -> bool {
        self.0.get_info().device_type == DeviceType::Cpu
    }

    /// The kind of device that the driver reports.
    pub(crate) fn kind(&self) -> &'static str {
        match self.0.get_info().device_type {
            DeviceType::DiscreteGpu => "discrete",
            DeviceType::IntegratedGpu => "integrated",
            DeviceType::VirtualGpu => "virtual",
            DeviceType::Cpu => "software",
            DeviceType::Other => "other",
        }
    }

    /// The properties and limits of its device, with all features.
    pub(crate) fn caps(&self) -> super::Caps {
        let info = self.0.get_info();
        let limits = self.0.limits();
        let offered = self.0.features();
        let mut features = Features::NONE;
        for (ours, theirs) in FEATURES {
            if offered.contains(theirs) {
                features = features.with(ours);
            }
        }
        let heaps = memory::heaps(&self.0);
        let alignment = limits
            .min_storage_buffer_offset_alignment
            .max(limits.min_uniform_buffer_offset_alignment);
        let unified = matches!(
            info.device_type,
            DeviceType::IntegratedGpu | DeviceType::Cpu
        );
        let caps = super::Caps {
            name: info.name,
            driver: format!("{} {} {}", info.backend, info.driver, info.driver_info),
            features,
            subgroup_sizes: (info.subgroup_min_size, info.subgroup_max_size),
            matrices: self.matrices(),
            binding_alignment: u64::from(alignment),
            // Kernels count bytes and elements in 32 bits; Metal allows more.
            max_binding_bytes: limits.max_storage_buffer_binding_size.min(i32::MAX as u64),
            max_buffer_bytes: limits.max_buffer_size,
            max_workgroups: limits.max_compute_workgroups_per_dimension,
            max_workgroup_size: limits.max_compute_invocations_per_workgroup,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            unified_memory: heaps.unified.unwrap_or(unified),
            memory_bytes: heaps.bytes,
            timestamps: offered.contains(::wgpu::Features::TIMESTAMP_QUERY),
            imports_host: import::offered(&self.0),
            software: info.device_type == DeviceType::Cpu,
        };
        // Features that the driver does not offer are treated like masked ones.
        caps.without(Features::ALL.without(features))
    }

    /// The present memory budget, where the platform reports one.
    pub(crate) fn memory_budget(&self) -> Option<MemoryBudget> {
        memory::heaps(&self.0).budget
    }

    fn matrices(&self) -> Vec<MatrixShape> {
        use ::wgpu::CooperativeScalarType as Theirs;
        let element = |theirs| match theirs {
            Theirs::F32 => MatrixElement::F32,
            Theirs::F16 => MatrixElement::F16,
            Theirs::I32 => MatrixElement::I32,
            Theirs::U32 => MatrixElement::U32,
        };
        let mut shapes = Vec::new();
        for theirs in self.0.cooperative_matrix_properties() {
            let shape = MatrixShape {
                m: theirs.m_size,
                n: theirs.n_size,
                k: theirs.k_size,
                inputs: element(theirs.ab_type),
                result: element(theirs.cr_type),
            };
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        shapes
    }
}
