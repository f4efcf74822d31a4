//! Backend compilation: compiles each segment, and binds it to memory.

use std::sync::Arc;

use kovar_core::backend::Kernel;
use kovar_core::{Graph, StorageId};

use super::error::CompileError;
use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::place::PlaceError;
use crate::run::{Bound, wait_until_idle};
use crate::schedule::fusion::backend_segment;
use crate::session::{RunState, SessionCore};
use crate::violation::Violation;

/// Compiles the segments for their devices.
pub(super) fn compile_segments(
    session: &SessionCore,
    graph: &Graph,
    passes: &Passes,
) -> Result<Vec<Arc<dyn Kernel>>, CompileError> {
    let segments = passes.schedule.segments.iter();
    let kernels = segments.map(|segment| {
        let device = session.devices.at(segment.device);
        Ok(device.compile(backend_segment(graph, segment))?)
    });
    idle_if_failed(session, kernels.collect())
}

/// Prepares weights, makes states, grows the arenas and binds the kernels of the segments.
pub(super) fn link(
    session: &SessionCore,
    state: &mut RunState,
    graph: &Graph,
    passes: &Passes,
    kernels: &[Arc<dyn Kernel>],
) -> Result<Bound, CompileError> {
    idle_if_failed(session, bind(session, state, graph, passes, kernels))
}

/// After a failure, waits for all devices: the first error is returned, and later ones must not
/// reach the next run.
fn idle_if_failed<T>(
    session: &SessionCore,
    outcome: Result<T, CompileError>,
) -> Result<T, CompileError> {
    if outcome.is_err() {
        let _ = wait_until_idle(&session.devices);
    }
    outcome
}

fn bind(
    session: &SessionCore,
    state: &mut RunState,
    graph: &Graph,
    passes: &Passes,
    kernels: &[Arc<dyn Kernel>],
) -> Result<Bound, CompileError> {
    let segments = &passes.schedule.segments;
    let _span = tracing::debug_span!("link", segments = segments.len()).entered();
    let devices = &session.devices;
    let mut bound = Bound::new(devices.len());
    for (storage, device, buffer) in session.weights().prepare(graph, passes, devices)? {
        bound.bind(device, storage, buffer, 0);
    }
    for (device, arena) in devices.numbered().zip(passes.memory.arenas()) {
        state.grow(device, &arena.chunks)?;
    }
    let states = session
        .states()
        .prepare(graph, &passes.placement, devices)?;
    for (id, device, buffer) in states {
        bound.bind(device, id, buffer, 0);
    }
    for (storage, device, slot) in passes.memory.slots() {
        let chunk = state.chunk(device, slot.chunk).clone();
        bound.bind(device, storage, chunk, slot.offset);
    }
    let binding = |bound: &Bound, device: DeviceId, storage: StorageId| {
        bound.binding(device, storage).cloned().ok_or_else(|| {
            let storage = graph.storages()[storage.index()].name.clone();
            PlaceError::Invalid(Violation::NoMemory { storage })
        })
    };
    for upload in &passes.schedule.uploads {
        let weight = &graph.storages()[upload.weight.index()];
        let host = session.weights().host(&weight.name)?;
        let to = binding(&bound, upload.device, upload.weight)?;
        bound.uploads.push((host, to));
    }
    for copy in &passes.schedule.copies {
        let from = binding(&bound, copy.from, copy.storage)?;
        let to = binding(&bound, copy.to, copy.storage)?;
        bound.copies.push([from, to]);
    }
    for (segment, kernel) in segments.iter().zip(kernels) {
        let program = kernel.bind(bound.map(segment.device))?;
        bound.programs.push(program);
    }
    Ok(bound)
}
