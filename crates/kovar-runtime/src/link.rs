//! Backend compilation: compiles each segment, and binds it to memory.

use std::sync::Arc;

use kovar_core::backend::{Binding, Buffer, Kernel, MemoryMap, Program};
use kovar_core::{Graph, HostBytes, StorageId};

use crate::arena::Running;
use crate::check::Violation;
use crate::compile::Passes;
use crate::device::DeviceId;
use crate::error::CompileError;
use crate::fusion::backend_segment;
use crate::session::Shared;
use crate::settle::settle;

/// The programs of a plan and the memory that they use.
#[derive(Debug)]
pub(crate) struct Linked {
    /// By device.
    maps: Vec<MemoryMap>,
    /// By segment.
    programs: Vec<Arc<dyn Program>>,
    /// By upload, the weight's bytes and where they go.
    uploads: Vec<(HostBytes, Binding)>,
}

impl Linked {
    pub(crate) fn programs(&self) -> &[Arc<dyn Program>] {
        &self.programs
    }

    /// The bytes of each upload and where they go.
    pub(crate) fn uploads(&self) -> &[(HostBytes, Binding)] {
        &self.uploads
    }

    /// Where a storage lies on a device.
    pub(crate) fn binding(&self, device: DeviceId, storage: StorageId) -> Option<&Binding> {
        self.maps.get(device.index())?.get(storage)
    }

    fn bind(&mut self, device: DeviceId, storage: StorageId, buffer: Buffer, offset: usize) {
        if let Some(map) = self.maps.get_mut(device.index()) {
            map.bind(storage, Binding { buffer, offset });
        }
    }
}

/// Compiles the segments for their devices.
pub(crate) fn compile_segments(
    shared: &Shared,
    graph: &Graph,
    passes: &Passes,
) -> Result<Vec<Arc<dyn Kernel>>, CompileError> {
    let segments = passes.schedule.segments.iter();
    let kernels = segments.map(|segment| {
        let backend = shared.backend(segment.device)?;
        Ok(backend.compile(backend_segment(graph, segment))?)
    });
    settled(shared, kernels.collect())
}

/// Prepares weights, makes states, grows the arenas and binds the kernels of the segments.
pub(crate) fn link(
    shared: &Shared,
    running: &mut Running,
    graph: &Graph,
    passes: &Passes,
    kernels: &[Arc<dyn Kernel>],
) -> Result<Linked, CompileError> {
    settled(shared, make(shared, running, graph, passes, kernels))
}

/// After a failure, waits for all devices, so that no later work is blamed for it.
fn settled<T>(shared: &Shared, result: Result<T, CompileError>) -> Result<T, CompileError> {
    if result.is_err() {
        // The error that counts is the first.
        let _ = settle(&shared.devices);
    }
    result
}

fn make(
    shared: &Shared,
    running: &mut Running,
    graph: &Graph,
    passes: &Passes,
    kernels: &[Arc<dyn Kernel>],
) -> Result<Linked, CompileError> {
    let _span = tracing::debug_span!("link", segments = passes.schedule.segments.len()).entered();
    let Passes {
        placement,
        schedule,
        memory,
        ..
    } = passes;
    let segments = &schedule.segments;
    let devices = &shared.devices;
    let mut linked = Linked {
        maps: vec![MemoryMap::new(); devices.len()],
        programs: Vec::with_capacity(segments.len()),
        uploads: Vec::with_capacity(schedule.uploads.len()),
    };
    let weights = shared.weights().prepare(graph, passes, devices)?;
    for (storage, device, buffer) in weights {
        linked.bind(device, storage, buffer, 0);
    }
    for (i, (backend, arena)) in devices.iter().zip(memory.arenas()).enumerate() {
        running.grow(i, backend.as_ref(), &arena.chunks)?;
    }
    for (id, device, buffer) in shared.states().prepare(graph, placement, devices)? {
        linked.bind(device, id, buffer, 0);
    }
    for (storage, device, slot) in memory.slots() {
        if let Some(chunk) = running.chunk(device.index(), slot.chunk) {
            linked.bind(device, storage, chunk.clone(), slot.offset);
        }
    }
    for upload in &schedule.uploads {
        let name = graph
            .storages()
            .get(upload.weight.index())
            .map(|s| s.name.as_str());
        let host = name.and_then(|name| shared.weights().host(name));
        let binding = linked.binding(upload.device, upload.weight).cloned();
        let (Some(host), Some(binding)) = (host, binding) else {
            return Err(CompileError::MissingWeight {
                name: name.unwrap_or_default().to_owned(),
            });
        };
        linked.uploads.push((host, binding));
    }
    for (segment, kernel) in segments.iter().zip(kernels) {
        let no_memory = Violation::NoDevice {
            device: segment.device.index(),
        };
        let map = linked.maps.get(segment.device.index());
        linked.programs.push(kernel.bind(map.ok_or(no_memory)?)?);
    }
    Ok(linked)
}
