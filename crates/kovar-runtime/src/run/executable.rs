//! A compiled graph as runs need it: its actions in order, and the memory that its programs are
//! bound to.

use std::sync::{Arc, Mutex, PoisonError};

use kovar_core::backend::{Backend, Binding, Buffer, Kernel, MemoryMap, Program, ReadTicket};
use kovar_core::error::DeviceError;
use kovar_core::{Graph, HostBytes, StorageId, StorageKind};

use crate::device::{DeviceId, DeviceSet, Devices};
use crate::passes::Passes;
use crate::schedule::{Action, Schedule, Segment};

/// The reads that were queued for copies, by copy; `None` for one without bytes in this run.
pub(crate) type Tickets = Vec<Option<Box<dyn ReadTicket>>>;

/// The programs of a plan and the memory that they use.
#[derive(Debug)]
pub(crate) struct Bound {
    /// By device.
    maps: Vec<MemoryMap>,
    /// By segment.
    pub(crate) programs: Vec<Arc<dyn Program>>,
    /// By upload, the weight's bytes and where they go.
    pub(crate) uploads: Vec<(HostBytes, Binding)>,
    /// By copy, where its storage lies on the device that has the bytes and on the one that needs
    /// them.
    pub(crate) copies: Vec<[Binding; 2]>,
}

impl Bound {
    pub(crate) fn new(n_devices: usize) -> Self {
        Self {
            maps: vec![MemoryMap::new(); n_devices],
            programs: Vec::new(),
            uploads: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// The bindings of a device.
    pub(crate) fn map(&self, device: DeviceId) -> &MemoryMap {
        &self.maps[device.index()]
    }

    /// Where a storage lies on a device; `None` if no segment of the device accesses it.
    pub(crate) fn binding(&self, device: DeviceId, storage: StorageId) -> Option<&Binding> {
        self.map(device).get(storage)
    }

    pub(crate) fn bind(
        &mut self,
        device: DeviceId,
        storage: StorageId,
        buffer: Buffer,
        offset: usize,
    ) {
        self.maps[device.index()].bind(storage, Binding { buffer, offset });
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
        self.estimates[segment]
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
    ) -> Result<(), DeviceError> {
        match bound.binding(device, storage) {
            Some(binding) if !bytes.is_empty() => {
                let queue = backend.queue();
                queue.write(&binding.buffer, binding.offset, bytes)
            }
            _ => Ok(()),
        }
    }

    /// Queues an action on its device; the write of a copy waits for its bytes.
    pub(crate) fn queue(
        &self,
        (action, backend): (Action, &dyn Backend),
        bound: &Bound,
        scalars: &[i32],
        tickets: &mut Tickets,
    ) -> Result<(), DeviceError> {
        let queue = backend.queue();
        let bytes_of = |at: usize| self.passes.schedule.copies[at].bytes_of(scalars);
        match action {
            Action::Launch(at) => queue.launch(bound.programs[at].as_ref(), scalars),
            Action::Upload(at) => {
                let (bytes, to) = &bound.uploads[at];
                queue.write(&to.buffer, to.offset, bytes.as_slice())
            }
            Action::Read(at) => {
                let (bytes, [from, _]) = (bytes_of(at), &bound.copies[at]);
                if !bytes.is_empty() {
                    let read = queue.read(&from.buffer, from.offset + bytes.start, bytes.len())?;
                    tickets[at] = Some(read);
                }
                Ok(())
            }
            Action::Write(at) => match tickets[at].take() {
                Some(read) => {
                    let (bytes, [_, to]) = (bytes_of(at), &bound.copies[at]);
                    queue.write(&to.buffer, to.offset + bytes.start, &read.wait()?)
                }
                None => Ok(()),
            },
        }
    }
}

/// The actions of a schedule, each with the device on whose queue it is.
fn with_devices(schedule: &Schedule) -> Vec<(Action, DeviceId)> {
    let device = |action: Action| match action {
        Action::Launch(at) => schedule.segments[at].device,
        Action::Upload(at) => schedule.uploads[at].device,
        Action::Read(at) => schedule.copies[at].from,
        Action::Write(at) => schedule.copies[at].to,
    };
    let actions = schedule.actions().into_iter();
    actions.map(|action| (action, device(action))).collect()
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
        let (device, backend) = (segment.device, devices.at(segment.device));
        let nodes = graph.nodes_of(&segment.nodes);
        nodes
            .map(|node| passes.times.node(device, backend, node))
            .sum()
    };
    passes.schedule.segments.iter().map(estimate).collect()
}
