//! Host memory as buffers through newBufferWithBytesNoCopy.

use std::ffi::c_void;
use std::ptr::NonNull;

use block2::RcBlock;
use kovar_core::HostBytes;
use objc2_metal::{MTLDevice as _, MTLResourceOptions};

/// The largest page size of Apple's systems. Smaller page sizes divide it.
const PAGE: usize = 16 << 10;

/// If the first element lies at a multiple of this, elements of any dtype lie at multiples of their
/// size.
const ELEMENT_ALIGNMENT: usize = 16;

/// Imports need nothing besides the device.
#[derive(Debug)]
pub(in crate::seam) struct Importer;

/// Metal always offers it.
pub(super) fn offered(_adapter: &::wgpu::Adapter) -> bool {
    true
}

/// Opens a device.
pub(super) fn open(
    adapter: &::wgpu::Adapter,
    descriptor: &::wgpu::DeviceDescriptor<'_>,
) -> Option<(Importer, (::wgpu::Device, ::wgpu::Queue))> {
    let opened = pollster::block_on(adapter.request_device(descriptor)).ok()?;
    Some((Importer, opened))
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
        let address = slice.as_ptr() as usize;
        let start = address % PAGE;
        let len = (start + slice.len()).next_multiple_of(PAGE);
        if slice.is_empty() || start % ELEMENT_ALIGNMENT != 0 || len as u64 > max_bytes {
            return None;
        }
        let pages = NonNull::new((address - start) as *mut c_void)?;
        let kept = bytes.clone();
        // Metal drops the block, and with it the bytes, together with the buffer.
        let release = RcBlock::new(move |_: NonNull<c_void>, _: usize| {
            let _ = &kept;
        });
        // SAFETY: the pages hold bytes that the block keeps mapped. The device only reads them.
        // wgpu gets the buffer with its own size and usages, initialised.
        unsafe {
            let hal = device.as_hal::<::wgpu::hal::api::Metal>()?;
            let raw = hal
                .raw_device()
                .newBufferWithBytesNoCopy_length_options_deallocator(
                    pages,
                    len,
                    MTLResourceOptions::StorageModeShared,
                    Some(&release),
                )?;
            let imported = ::wgpu::hal::metal::Device::buffer_from_raw(raw, len as u64);
            let usage = ::wgpu::BufferUsages::STORAGE | ::wgpu::BufferUsages::COPY_SRC;
            let buffer = device.create_buffer_from_hal::<::wgpu::hal::api::Metal>(
                imported,
                &::wgpu::BufferDescriptor {
                    label: Some("host memory"),
                    size: len as u64,
                    usage,
                    mapped_at_creation: false,
                },
            );
            Some((buffer, start as u64))
        }
    }
}
