//! Backend compilation: binds the storages to memory and compiles each segment.

use kovar_core::Graph;

use super::error::CompileError;
use crate::passes::Passes;
use crate::run::{Bound, backend, wait_until_idle};
use crate::schedule::fusion::backend_segment;
use crate::session::{RunState, SessionCore, SessionError};

/// Prepares weights, makes states, grows the arenas and compiles the segments. An error is returned
/// here and reaches no later run.
pub(super) fn link(
    session: &SessionCore,
    state: &mut RunState,
    graph: &Graph,
    passes: &Passes,
) -> Result<Bound, CompileError> {
    let bound = bind_and_compile(session, state, graph, passes);
    if bound.is_err() {
        // The first error is reported; later ones must not reach the next run.
        let _ = wait_until_idle(&session.devices);
    }
    bound
}

fn bind_and_compile(
    session: &SessionCore,
    state: &mut RunState,
    graph: &Graph,
    passes: &Passes,
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
        let storage = graph.storages().get(upload.weight.index());
        let name = storage.map_or("", |storage| storage.name.as_str());
        let host = session.weights().host(name);
        let binding = bound.binding(upload.device, upload.weight).cloned();
        let (Some(host), Some(binding)) = (host, binding) else {
            let name = name.to_owned();
            return Err(SessionError::MissingWeight { name }.into());
        };
        bound.uploads.push((host, binding));
    }
    for segment in segments {
        let device = backend(devices, segment.device)?;
        let nodes = backend_segment(graph, segment);
        let program = device.compile(nodes, bound.map(segment.device)?)?;
        bound.programs.push(program);
    }
    Ok(bound)
}
