//! The activation memory of a session, shared by all its plans.

use std::sync::Weak;

use kovar_core::backend::{Backend, Buffer};
use kovar_core::error::DeviceError;

use crate::flight::{Flights, StepFailure};
use crate::plan::PlanCore;
use crate::session::Shared;
use crate::settle::settle;

/// Makes the buffers of an arena, given by their sizes, as large as another plan needs them.
pub(crate) fn grow_sizes(arena: &mut Vec<usize>, sizes: &[usize]) {
    arena.resize(arena.len().max(sizes.len()), 0);
    let both = arena.iter_mut().zip(sizes);
    both.for_each(|(chunk, &size)| *chunk = size.max(*chunk));
}

/// What a run needs for itself: only one run of a session is under way at a time.
#[derive(Default)]
pub(crate) struct Running {
    /// The buffers of each device's arena, as large as the largest plan needs.
    arenas: Vec<Vec<Buffer>>,
    plans: Vec<Weak<PlanCore>>,
    /// The runs that are not all queued yet.
    pub(crate) flights: Flights,
    /// Whether there was a run of which nobody knows yet that all devices are done with it.
    pub(crate) unsettled: bool,
    /// What failed of runs that nobody waited for.
    pub(crate) failed: Option<StepFailure>,
}

impl Running {
    pub(crate) fn new(n_devices: usize) -> Self {
        Self {
            arenas: vec![Vec::new(); n_devices],
            plans: Vec::new(),
            flights: Flights::default(),
            unsettled: false,
            failed: None,
        }
    }

    /// Queues what is left of the runs so far, and if they fail waits until all devices are idle.
    pub(crate) fn finish(&mut self, shared: &Shared) -> Result<(), StepFailure> {
        let queued = self.flights.finish(shared);
        if queued.is_err() {
            // The error that counts is the first; the next run is not blamed for the others.
            let _ = settle(&shared.devices);
            self.unsettled = false;
        }
        queued
    }

    /// Queues what is left of the runs so far and waits until all devices are idle. Returns what
    /// failed, of the runs that nobody waited for before too.
    pub(crate) fn settle(&mut self, shared: &Shared) -> Result<(), StepFailure> {
        let before = self.failed.take().map_or(Ok(()), Err);
        let queued = self.flights.finish(shared);
        let done = settle(&shared.devices);
        self.unsettled = false;
        before.and(queued).and(Ok(done?))
    }

    /// Remembers a plan that uses the arenas.
    pub(crate) fn register(&mut self, plan: Weak<PlanCore>) {
        self.plans.retain(|plan| plan.strong_count() > 0);
        self.plans.push(plan);
    }

    /// A buffer of a device's arena.
    pub(crate) fn chunk(&self, device: usize, chunk: usize) -> Option<&Buffer> {
        self.arenas.get(device)?.get(chunk)
    }

    /// The size of a device's arena.
    pub(crate) fn bytes(&self, device: usize) -> usize {
        let chunks = self.arenas.get(device);
        chunks.map_or(0, |chunks| chunks.iter().map(Buffer::len).sum())
    }

    /// The sizes of the buffers of a device's arena.
    pub(crate) fn chunk_sizes(&self, device: usize) -> Vec<usize> {
        let chunks = self.arenas.get(device).into_iter().flatten();
        chunks.map(Buffer::len).collect()
    }

    /// Makes a device's arena at least as large as `sizes`. Plans that used a buffer that has to
    /// grow let go of it first, so that the old memory is free before the larger is asked for;
    /// they are linked again at their next run.
    pub(crate) fn grow(
        &mut self,
        device: usize,
        backend: &dyn Backend,
        sizes: &[usize],
    ) -> Result<(), DeviceError> {
        let Some(chunks) = self.arenas.get_mut(device) else {
            return Ok(());
        };
        let outgrown = |chunk: &Buffer, size: &usize| chunk.len() < *size;
        let first = chunks.iter().zip(sizes).position(|(c, s)| outgrown(c, s));
        let mut wanted: Vec<usize> = sizes.to_vec();
        if let Some(first) = first {
            for plan in self.plans.iter().filter_map(Weak::upgrade) {
                plan.unlink();
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
