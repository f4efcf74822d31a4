//! Host memory as buffers through VK_EXT_external_memory_host.

use std::ffi::{CStr, c_void};

use ash::vk;
use kovar_core::HostBytes;

const EXTENSION: &CStr = ash::ext::external_memory_host::NAME;
const HANDLE: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

/// Memory is mapped in pages of at least this size, so whole pages around any bytes can be
/// imported.
const PAGE: u64 = 4096;

/// If the first element lies at a multiple of this, elements of any dtype lie at multiples of their
/// size.
const ELEMENT_ALIGNMENT: u64 = 16;

/// What imports need besides the device.
pub(in crate::seam) struct Importer {
    extension: ash::ext::external_memory_host::Device,
    /// Pointers and sizes must be multiples of this.
    alignment: u64,
}

/// Whether the driver lists the extension.
pub(super) fn offered(adapter: &::wgpu::Adapter) -> bool {
    // A discrete GPU would read the host's pages over its bus, so it gets copies. Moreover,
    // NVIDIA's driver (580.159) refuses pages of mapped files and then all larger allocations.
    let shares_memory = matches!(
        adapter.get_info().device_type,
        ::wgpu::DeviceType::IntegratedGpu | ::wgpu::DeviceType::Cpu
    );
    if !shares_memory {
        return false;
    }
    // SAFETY: nothing of the adapter is destroyed.
    let hal = unsafe { adapter.as_hal::<::wgpu::hal::api::Vulkan>() };
    hal.is_some_and(|hal| {
        hal.physical_device_capabilities()
            .supports_extension(EXTENSION)
    })
}

/// Opens a device with the extension; `None` if there is none or the driver refuses.
pub(super) fn open(
    adapter: &::wgpu::Adapter,
    descriptor: &::wgpu::DeviceDescriptor<'_>,
) -> Option<(Importer, (::wgpu::Device, ::wgpu::Queue))> {
    if !offered(adapter) {
        return None;
    }
    // SAFETY: nothing of the adapter is destroyed. The callback adds an extension that the
    // device supports and removes nothing; the device is opened with the features and limits of
    // the descriptor that wgpu gets.
    unsafe {
        let hal = adapter.as_hal::<::wgpu::hal::api::Vulkan>()?;
        let instance = hal.shared_instance().raw_instance();
        let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut host);
        instance.get_physical_device_properties2(hal.raw_physical_device(), &mut properties);
        let opened = hal
            .open_with_callback(
                descriptor.required_features,
                &descriptor.required_limits,
                &descriptor.memory_hints,
                Some(Box::new(|device| {
                    // The extension that this one depends on is part of Vulkan 1.1.
                    device.extensions.push(EXTENSION);
                })),
            )
            .ok()?;
        let extension =
            ash::ext::external_memory_host::Device::new(instance, opened.device.raw_device());
        let importer = Importer {
            extension,
            alignment: host.min_imported_host_pointer_alignment.max(1),
        };
        let opened = adapter.create_device_from_hal(opened, descriptor).ok()?;
        Some((importer, opened))
    }
}

/// Freed when wgpu no longer uses an imported buffer.
struct Release {
    device: ash::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    _bytes: HostBytes,
}

impl Drop for Release {
    fn drop(&mut self) {
        // SAFETY: both belong to this device and were created for this value alone. It is dropped
        // when no work uses the buffer any more, while the device is alive.
        unsafe {
            self.device.destroy_buffer(self.buffer, None);
            self.device.free_memory(self.memory, None);
        }
    }
}

impl Importer {
    /// A buffer of the pages around `bytes`, and the offset of `bytes` in it; `None` if the driver
    /// refuses.
    pub(super) fn import(
        &self,
        device: &::wgpu::Device,
        bytes: &HostBytes,
        max_bytes: u64,
    ) -> Option<(::wgpu::Buffer, u64)> {
        let slice = bytes.as_slice();
        let address = slice.as_ptr() as u64;
        let start = address % self.alignment;
        let len = (start + slice.len() as u64).next_multiple_of(self.alignment);
        let pages = self.alignment <= PAGE || (start == 0 && slice.len() as u64 == len);
        if slice.is_empty() || !pages || !start.is_multiple_of(ELEMENT_ALIGNMENT) || len > max_bytes
        {
            return None;
        }
        let pointer = (address - start) as *mut c_void;
        // SAFETY: the pages hold bytes that live as long as `Release`, so they stay mapped. The
        // device only reads them, as the buffer's usages say. wgpu gets the buffer with its own
        // size and usages, initialised.
        unsafe {
            let hal = device.as_hal::<::wgpu::hal::api::Vulkan>()?;
            let raw = hal.raw_device();
            let mut of_host = vk::MemoryHostPointerPropertiesEXT::default();
            (self.extension.fp().get_memory_host_pointer_properties_ext)(
                raw.handle(),
                HANDLE,
                pointer,
                &mut of_host,
            )
            .result()
            .ok()?;
            let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HANDLE);
            let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
            let info = vk::BufferCreateInfo::default()
                .size(len)
                .usage(usage)
                .sharing_mode(vk::SharingMode::EXCLUSIVE)
                .push_next(&mut external);
            let buffer = raw.create_buffer(&info, None).ok()?;
            let needs = raw.get_buffer_memory_requirements(buffer);
            let types = needs.memory_type_bits & of_host.memory_type_bits;
            let memory = (types != 0 && needs.size <= len)
                .then(|| {
                    let mut import = vk::ImportMemoryHostPointerInfoEXT::default()
                        .handle_type(HANDLE)
                        .host_pointer(pointer);
                    let info = vk::MemoryAllocateInfo::default()
                        .allocation_size(len)
                        .memory_type_index(types.trailing_zeros())
                        .push_next(&mut import);
                    raw.allocate_memory(&info, None).ok()
                })
                .flatten();
            let Some(memory) = memory else {
                raw.destroy_buffer(buffer, None);
                return None;
            };
            let release = Release {
                device: raw.clone(),
                buffer,
                memory,
                _bytes: bytes.clone(),
            };
            raw.bind_buffer_memory(buffer, memory, 0).ok()?;
            let imported = ::wgpu::hal::vulkan::Buffer::from_raw_externally_owned(
                buffer,
                Box::new(move || drop(release)),
            );
            let usage = ::wgpu::BufferUsages::STORAGE | ::wgpu::BufferUsages::COPY_SRC;
            let buffer = device.create_buffer_from_hal::<::wgpu::hal::api::Vulkan>(
                imported,
                &::wgpu::BufferDescriptor {
                    label: Some("host memory"),
                    size: len,
                    usage,
                    mapped_at_creation: false,
                },
            );
            Some((buffer, start))
        }
    }
}
