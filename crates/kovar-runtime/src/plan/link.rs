//! Backend compilation: compiles each segment, and binds it to memory.

use std::sync::Arc;

use kovar_core::Graph;
use kovar_core::backend::Kernel;

use super::error::CompileError;
use crate::passes::Passes;
use crate::run::{Bound, backend, wait_until_idle};
use crate::schedule::fusion::backend_segment;
use crate::session::{RunState, SessionCore, SessionError};

/// Compiles the segments for their devices.
pub(super) fn compile_segments(
    session: &SessionCore,
    graph: &Graph,
    passes: &Passes,
) -> Result<Vec<Arc<dyn Kernel>>, CompileError> {
    let segments = passes.schedule.segments.iter();
    let kernels = segments.map(|segment| {
        let device = backend(&session.devices, segment.device)?;
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

/// After a failure, waits for all devices: the first error is returned, and later ones must not reach
/// the next run.
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
    for (i, (backend, arena)) in devices.iter().zip(passes.memory.arenas()).enumerate() {
        state.grow(i, backend.as_ref(), &arena.chunks)?;
    }
    let states = session
        .states()
        .prepare(graph, &passes.placement, devices)?;
    for (id, device, buffer) in states {
        bound.bind(device, id, buffer, 0);
    }
    for (storage, device, slot) in passes.memory.slots() {
        if let Some(chunk) = state.chunk(device.index(), slot.chunk) {
            bound.bind(device, storage, chunk.clone(), slot.offset);
        }
    }
    for upload in &passes.schedule.uploads {
        let storage = graph.storage(upload.weight);
        let name = storage.map_or("", |storage| storage.name.as_str());
        let host = session.weights().host(name);
        let binding = bound.binding(upload.device, upload.weight).cloned();
        let (Some(host), Some(binding)) = (host, binding) else {
            let name = name.to_owned();
            return Err(SessionError::MissingWeight { name }.into());
        };
        bound.uploads.push((host, binding));
    }
    for (segment, kernel) in segments.iter().zip(kernels) {
        let program = kernel.bind(bound.map(segment.device)?)?;
        bound.programs.push(program);
    }
    Ok(bound)
}
