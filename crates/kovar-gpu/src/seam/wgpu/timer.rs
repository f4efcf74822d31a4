//! Times of dispatches from timestamp queries.

use super::device::{WgpuDevice, bytes_of};
use crate::seam::{MAX_TIMED, SeamError, Timer};

/// Two queries for each dispatch, and the buffers of their results.
pub(super) struct Timestamps {
    pub(super) queries: ::wgpu::QuerySet,
    pub(super) resolved: ::wgpu::Buffer,
    pub(super) readback: ::wgpu::Buffer,
    /// Dispatches recorded so far.
    pub(super) count: u32,
}

impl Timestamps {
    pub(super) fn new(device: &WgpuDevice) -> Result<Self, SeamError> {
        use ::wgpu::BufferUsages as Usages;
        let count = 2 * MAX_TIMED as u32;
        let size = u64::from(count) * size_of::<u64>() as u64;
        device.scoped("timestamp queries", size, || {
            let buffer = |usage| {
                device.device.create_buffer(&::wgpu::BufferDescriptor {
                    label: Some("timestamps"),
                    size,
                    usage,
                    mapped_at_creation: false,
                })
            };
            Self {
                queries: device.device.create_query_set(&::wgpu::QuerySetDescriptor {
                    label: Some("timestamps"),
                    ty: ::wgpu::QueryType::Timestamp,
                    count,
                }),
                resolved: buffer(Usages::QUERY_RESOLVE | Usages::COPY_SRC),
                readback: buffer(Usages::COPY_DST | Usages::MAP_READ),
                count: 0,
            }
        })
    }

    /// Records copies of the results to the host.
    pub(super) fn resolve(&self, encoder: &mut ::wgpu::CommandEncoder) {
        if self.count == 0 {
            return;
        }
        let bytes = u64::from(2 * self.count) * size_of::<u64>() as u64;
        encoder.resolve_query_set(&self.queries, 0..2 * self.count, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.readback, 0, bytes);
    }
}

/// Timestamps of a finished recording.
pub(super) struct WgpuTimer {
    pub(super) timestamps: Timestamps,
    pub(super) device: ::wgpu::Device,
    /// Nanoseconds of a tick.
    pub(super) period: f32,
}

impl Timer for WgpuTimer {
    fn read(&self) -> Result<Vec<(u64, u64)>, SeamError> {
        let count = self.timestamps.count as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let len = 2 * count * size_of::<u64>();
        let mut bytes = vec![0u8; len];
        let slice = self.timestamps.readback.slice(..len as u64);
        slice.map_async(::wgpu::MapMode::Read, |_| {});
        super::device::poll(&self.device, ::wgpu::PollType::Poll)?;
        bytes_of(&slice, &mut bytes)?;
        let ticks = bytemuck::pod_collect_to_vec::<u8, u64>(&bytes);
        let nanoseconds = |ticks: u64| (ticks as f64 * f64::from(self.period)) as u64;
        Ok(ticks
            .chunks_exact(2)
            .map(|pair| (nanoseconds(pair[0]), nanoseconds(pair[1])))
            .collect())
    }
}
