//! The activation memory of a session and its runs in flight, which all its plans share.

use std::sync::{Arc, Weak};

use kovar_core::backend::{Backend, Buffer};
use kovar_core::error::DeviceError;

use crate::device::DeviceId;
use crate::run::{Executable, InFlightRuns, wait_until_idle};

/// What one run uses at a time.
#[derive(Default)]
pub(crate) struct RunState {
    /// The buffers of each device's arena, as large as the largest plan needs.
    arenas: Vec<Vec<Buffer>>,
    plans: Vec<Weak<Executable>>,
    /// The runs that are not all queued yet.
    pub(crate) in_flight: InFlightRuns,
    /// Whether devices may still be at work on a run that was not waited for.
    pub(crate) may_be_busy: bool,
    /// The first error of runs that were not waited for.
    pub(crate) failed: Option<DeviceError>,
}

impl RunState {
    pub(super) fn new(n_devices: usize) -> Self {
        Self {
            arenas: vec![Vec::new(); n_devices],
            ..Self::default()
        }
    }

    /// Queues the rest of the runs in flight. If that fails, waits until all devices are idle.
    pub(crate) fn queue_all(&mut self, devices: &[Arc<dyn Backend>]) -> Result<(), DeviceError> {
        let queued = self.in_flight.finish(devices);
        if queued.is_err() {
            // The first error is reported; later ones must not reach the next run.
            let _ = wait_until_idle(devices);
            self.may_be_busy = false;
        }
        queued
    }

    /// Queues the rest of the runs in flight and waits until all devices are idle. Returns the
    /// first error, that of earlier runs that were not waited for included.
    pub(crate) fn wait_until_idle(
        &mut self,
        devices: &[Arc<dyn Backend>],
    ) -> Result<(), DeviceError> {
        let earlier = self.failed.take().map_or(Ok(()), Err);
        let queued = self.in_flight.finish(devices);
        let done = wait_until_idle(devices);
        self.may_be_busy = false;
        earlier.and(queued).and(done)
    }

    /// Keeps a plan that uses the arenas.
    pub(crate) fn register(&mut self, plan: &Arc<Executable>) {
        self.plans.retain(|plan| plan.strong_count() > 0);
        self.plans.push(Arc::downgrade(plan));
    }

    /// A buffer of a device's arena.
    pub(crate) fn chunk(&self, device: DeviceId, chunk: usize) -> &Buffer {
        &self.arenas[device.index()][chunk]
    }

    /// The sizes of the buffers of a device's arena.
    pub(crate) fn chunk_sizes(&self, device: DeviceId) -> Vec<usize> {
        let chunks = self.arenas[device.index()].iter();
        chunks.map(Buffer::len).collect()
    }

    /// Makes the buffers of a device's arena at least as large as `sizes`. If one has to grow, all
    /// plans release the arena first, so that the old memory is free before more is allocated; they
    /// are bound again by their next runs.
    pub(crate) fn grow(
        &mut self,
        (device, backend): (DeviceId, &dyn Backend),
        sizes: &[usize],
    ) -> Result<(), DeviceError> {
        let chunks = &mut self.arenas[device.index()];
        let outgrown = |chunk: &Buffer, size: &usize| chunk.len() < *size;
        let first = chunks.iter().zip(sizes).position(|(c, s)| outgrown(c, s));
        let mut wanted: Vec<usize> = sizes.to_vec();
        if let Some(first) = first {
            for plan in self.plans.iter().filter_map(Weak::upgrade) {
                plan.unbind();
            }
            for (i, chunk) in chunks.drain(first..).enumerate() {
                match wanted.get_mut(first + i) {
                    Some(size) => *size = chunk.len().max(*size),
                    None => wanted.push(chunk.len()),
                }
            }
        }
        for &size in wanted.iter().skip(chunks.len()) {
            chunks.push(backend.alloc(size)?);
        }
        Ok(())
    }
}
