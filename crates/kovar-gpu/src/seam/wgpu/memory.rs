//! The memory of a GPU as the platform reports it.

use crate::seam::MemoryBudget;

/// The memory of an adapter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heaps {
    /// Bytes of the device's own memory, or of the host memory that it may use.
    pub bytes: Option<u64>,
    pub budget: Option<MemoryBudget>,
    /// Whether the host and the device share all memory.
    pub unified: Option<bool>,
}

pub(super) fn heaps(adapter: &::wgpu::Adapter) -> Heaps {
    #[cfg(target_vendor = "apple")]
    return metal(adapter).unwrap_or_default();
    #[cfg(not(target_vendor = "apple"))]
    {
        #[cfg(windows)]
        if let Some(heaps) = dx12(adapter) {
            return heaps;
        }
        vulkan(adapter).unwrap_or_default()
    }
}

/// The largest heap of the device's own memory, with VK_EXT_memory_budget where it exists.
#[cfg(not(target_vendor = "apple"))]
fn vulkan(adapter: &::wgpu::Adapter) -> Option<Heaps> {
    use ash::vk;
    // SAFETY: nothing of the adapter is destroyed.
    let hal = unsafe { adapter.as_hal::<::wgpu::hal::api::Vulkan>() }?;
    let has_budget = hal
        .physical_device_capabilities()
        .supports_extension(ash::ext::memory_budget::NAME);
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut properties = vk::PhysicalDeviceMemoryProperties2::default();
    if has_budget {
        properties = properties.push_next(&mut budget);
    }
    // SAFETY: the physical device belongs to this instance, which wgpu keeps alive. Where instances
    // of wgpu list memory budgets, they have Vulkan 1.1 or the extension with this call.
    unsafe {
        let instance = hal.shared_instance().raw_instance();
        let device = hal.raw_physical_device();
        if has_budget {
            instance.get_physical_device_memory_properties2(device, &mut properties);
        } else {
            properties.memory_properties = instance.get_physical_device_memory_properties(device);
        }
    }
    let memory = properties.memory_properties;
    let count = memory.memory_heap_count as usize;
    let local = |heap: &vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
    let all = memory.memory_heaps.get(..count)?;
    let (at, heap) = all
        .iter()
        .enumerate()
        .filter(|(_, heap)| local(heap))
        .max_by_key(|(_, heap)| heap.size)?;
    Some(Heaps {
        bytes: Some(heap.size),
        budget: has_budget.then(|| MemoryBudget {
            budget: budget.heap_budget[at],
            used: budget.heap_usage[at],
        }),
        unified: Some(all.iter().all(local)),
    })
}

#[cfg(windows)]
fn dx12(adapter: &::wgpu::Adapter) -> Option<Heaps> {
    // SAFETY: nothing of the adapter is destroyed.
    let hal = unsafe { adapter.as_hal::<::wgpu::hal::api::Dx12>() }?;
    // The default group is the one of the device's own memory.
    let info = hal
        .raw_adapter()
        .query_video_memory_info(Default::default());
    // SAFETY: a plain query of a live adapter.
    let description = unsafe { hal.raw_adapter().GetDesc() }.ok();
    Some(Heaps {
        bytes: description.map(|description| description.DedicatedVideoMemory as u64),
        budget: info.ok().map(|info| MemoryBudget {
            budget: info.Budget,
            used: info.CurrentUsage,
        }),
        unified: None,
    })
}

#[cfg(target_vendor = "apple")]
fn metal(adapter: &::wgpu::Adapter) -> Option<Heaps> {
    use objc2_metal::MTLDevice as _;
    // SAFETY: nothing of the adapter is destroyed.
    let hal = unsafe { adapter.as_hal::<::wgpu::hal::api::Metal>() }?;
    let device = hal.raw_device();
    let budget = device.recommendedMaxWorkingSetSize();
    Some(Heaps {
        bytes: Some(budget),
        budget: Some(MemoryBudget {
            budget,
            used: device.currentAllocatedSize() as u64,
        }),
        unified: Some(device.hasUnifiedMemory()),
    })
}
