//! A compiled graph as runs need it: its actions in order, and the memory that its programs are
//! bound to.

use std::sync::{Arc, Mutex, PoisonError};

use kovar_core::backend::{Backend, Binding, Buffer, Kernel, MemoryMap, Program};
use kovar_core::{Graph, HostBytes, StorageId, StorageKind};

use super::error::ActionError;
use super::in_flight::Tickets;
use crate::device::{DeviceId, DeviceSet, Devices};
use crate::passes::Passes;
use crate::schedule::{Action, Schedule, Segment};
use crate::violation::Violation;

/// The programs of a plan and the memory that they use.
#[derive(Debug)]
pub(crate) struct Bound {
    /// By device.
    maps: Vec<MemoryMap>,
    /// By segment.
    pub(crate) programs: Vec<Arc<dyn Program>>,
    /// By upload, the weight's bytes and where they go.
    pub(crate) uploads: Vec<(HostBytes, Binding)>,
}

impl Bound {
    pub(crate) fn new(n_devices: usize) -> Self {
        Self {
            maps: vec![MemoryMap::new(); n_devices],
            programs: Vec::new(),
            uploads: Vec::new(),
        }
    }

    /// The bindings of a device.
    pub(crate) fn map(&self, device: DeviceId) -> Result<&MemoryMap, Violation> {
        let map = self.maps.get(device.index());
        map.ok_or(Violation::NoDevice {
            device: device.index(),
        })
    }

    /// Where a storage lies on a device.
    pub(crate) fn binding(&self, device: DeviceId, storage: StorageId) -> Option<&Binding> {
        self.map(device).ok()?.get(storage)
    }

    pub(crate) fn bind(
        &mut self,
        device: DeviceId,
        storage: StorageId,
        buffer: Buffer,
        offset: usize,
    ) {
        if let Some(map) = self.maps.get_mut(device.index()) {
            map.bind(storage, Binding { buffer, offset });
        }
    }
}

/// A compiled graph as runs need it.
pub(crate) struct Executable {
    pub(crate) graph: Graph,
    pub(crate) passes: Passes,
    pub(crate) inputs: Vec<StorageId>,
    /// By segment.
    pub(crate) kernels: Vec<Arc<dyn Kernel>>,
    /// Each with the device on whose queue it is.
    actions: Vec<(Action, DeviceId)>,
    /// By action, the devices of it and of those after it.
    devices_from: Vec<DeviceSet>,
    /// By segment, the estimated time in nanoseconds.
    estimates: Vec<f64>,
    /// Empty after the session's activation memory grew. Only the current run touches it.
    bound: Mutex<Option<Arc<Bound>>>,
}

impl Executable {
    pub(crate) fn new(
        graph: &Graph,
        passes: Passes,
        devices: &[Arc<dyn Backend>],
        kernels: Vec<Arc<dyn Kernel>>,
        bound: Bound,
    ) -> Self {
        let inputs = graph.storage_ids().zip(graph.storages());
        let inputs = inputs.filter(|(_, storage)| storage.kind == StorageKind::Input);
        let actions = with_devices(&passes.schedule);
        Self {
            graph: graph.clone(),
            inputs: inputs.map(|(id, _)| id).collect(),
            devices_from: devices_from(&actions),
            estimates: estimates(graph, &passes, devices),
            actions,
            passes,
            kernels,
            bound: Mutex::new(Some(Arc::new(bound))),
        }
    }

    pub(crate) fn actions(&self) -> &[(Action, DeviceId)] {
        &self.actions
    }

    /// The devices of an action and of those after it.
    pub(crate) fn devices_from(&self, action: usize) -> DeviceSet {
        self.devices_from.get(action).copied().unwrap_or_default()
    }

    /// The estimated time of a segment, in nanoseconds.
    pub(crate) fn estimate_ns(&self, segment: usize) -> f64 {
        self.estimates.get(segment).copied().unwrap_or(0.0)
    }

    /// One empty place for each copy.
    pub(crate) fn no_tickets(&self) -> Tickets {
        let copies = self.passes.schedule.copies.len();
        std::iter::repeat_with(|| None).take(copies).collect()
    }

    /// The memory that the programs are bound to, if they still are.
    pub(crate) fn bound(&self) -> Option<Arc<Bound>> {
        self.slot().clone()
    }

    /// Keeps what the programs were bound to again.
    pub(crate) fn rebind(&self, bound: Arc<Bound>) {
        *self.slot() = Some(bound);
    }

    /// Releases the session's activation memory; the next run binds the programs again.
    pub(crate) fn unbind(&self) {
        *self.slot() = None;
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Arc<Bound>>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an input on a device that reads it. An input that no needed node reads has no memory
    /// and is not written.
    pub(crate) fn write_input(
        bound: &Bound,
        (device, backend): (DeviceId, &dyn Backend),
        storage: StorageId,
        bytes: &[u8],
    ) -> Result<(), ActionError> {
        let binding = bound.binding(device, storage);
        if let Some(binding) = binding.filter(|_| !bytes.is_empty()) {
            let queue = backend.queue();
            queue.write(&binding.buffer, binding.offset, bytes)?;
        }
        Ok(())
    }

    /// Queues an action; the write of a copy waits for its bytes.
    pub(crate) fn queue(
        &self,
        devices: &[Arc<dyn Backend>],
        bound: &Bound,
        action: Action,
        scalars: &[i32],
        tickets: &mut Tickets,
    ) -> Result<(), ActionError> {
        let schedule = &self.passes.schedule;
        match action {
            Action::Launch(at) => {
                let launched = schedule.segments.get(at).zip(bound.programs.get(at));
                if let Some((segment, program)) = launched {
                    let queue = backend(devices, segment.device)?.queue();
                    queue.launch(program.as_ref(), scalars)?;
                }
            }
            Action::Upload(at) => {
                let upload = schedule.uploads.get(at).zip(bound.uploads.get(at));
                if let Some((upload, (bytes, to))) = upload {
                    let queue = backend(devices, upload.device)?.queue();
                    queue.write(&to.buffer, to.offset, bytes.as_slice())?;
                }
            }
            Action::Read(at) | Action::Write(at) => {
                let copy = schedule.copies.get(at).zip(tickets.get_mut(at));
                let Some((copy, ticket)) = copy else {
                    return Ok(());
                };
                let bytes = copy.bytes_of(scalars);
                if bytes.is_empty() {
                    return Ok(());
                }
                let reads = matches!(action, Action::Read(_));
                let device = if reads { copy.from } else { copy.to };
                let binding = bound.binding(device, copy.storage);
                let binding = binding.ok_or(Violation::NotRead { copy: at })?;
                let queue = backend(devices, device)?.queue();
                let offset = binding.offset + bytes.start;
                if reads {
                    *ticket = Some(queue.read(&binding.buffer, offset, bytes.len())?);
                } else {
                    let read = ticket.take().ok_or(Violation::NotRead { copy: at })?;
                    queue.write(&binding.buffer, offset, &read.wait()?)?;
                }
            }
        }
        Ok(())
    }
}

/// A device by its position.
pub(crate) fn backend(
    devices: &[Arc<dyn Backend>],
    device: DeviceId,
) -> Result<&dyn Backend, Violation> {
    devices.at(device).ok_or(Violation::NoDevice {
        device: device.index(),
    })
}

/// The actions of a schedule, each with the device on whose queue it is.
fn with_devices(schedule: &Schedule) -> Vec<(Action, DeviceId)> {
    let device = |action: Action| match action {
        Action::Launch(at) => Some(schedule.segments.get(at)?.device),
        Action::Upload(at) => Some(schedule.uploads.get(at)?.device),
        Action::Read(at) => Some(schedule.copies.get(at)?.from),
        Action::Write(at) => Some(schedule.copies.get(at)?.to),
    };
    let actions = schedule.actions().into_iter();
    actions
        .filter_map(|action| Some((action, device(action)?)))
        .collect()
}

fn devices_from(actions: &[(Action, DeviceId)]) -> Vec<DeviceSet> {
    let mut devices = DeviceSet::default();
    let mut from: Vec<DeviceSet> = Vec::with_capacity(actions.len());
    for &(_, device) in actions.iter().rev() {
        devices.insert(device);
        from.push(devices);
    }
    from.reverse();
    from
}

/// The estimated time of each segment, in nanoseconds.
fn estimates(graph: &Graph, passes: &Passes, devices: &[Arc<dyn Backend>]) -> Vec<f64> {
    let estimate = |segment: &Segment| {
        let nodes = graph.nodes_of(&segment.nodes);
        backend(devices, segment.device).map_or(0.0, |backend| {
            let times = nodes.map(|node| passes.times.node(segment.device, backend, node));
            times.sum()
        })
    };
    passes.schedule.segments.iter().map(estimate).collect()
}
