//! Compiled graphs.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, Weak};

use kovar_core::backend::Kernel;
use kovar_core::{Graph, NodeId, StorageId, StorageKind, ValueId};

use crate::arena::Running;
use crate::check::Violation;
use crate::compile::Passes;
use crate::device::{DeviceId, DeviceSet};
use crate::error::{CompileError, RunError};
use crate::explain::{NodeReport, explain};
use crate::flight::{Flight, StepFailure, Tickets};
use crate::forecast::{self, PlanMemory};
use crate::fusion;
use crate::host_slice::HostSlice;
use crate::link::{Linked, link};
use crate::observe::{Evaluated, Observer};
use crate::outputs::Outputs;
use crate::pins::LostPin;
use crate::segment::{Schedule, Segment, Step};
use crate::session::{Shared, lock};

/// A graph compiled for the devices of a session, to be run any number of times.
pub struct Plan {
    pub(crate) core: Arc<PlanCore>,
    pub(crate) shared: Arc<Shared>,
}

/// The kernel that runs a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeKernel {
    /// The node.
    pub node: NodeId,
    /// The device that it runs on.
    pub device: DeviceId,
    /// The kernel's name.
    pub kernel: &'static str,
}

pub(crate) struct PlanCore {
    pub(crate) graph: Graph,
    pub(crate) passes: Passes,
    inputs: Vec<StorageId>,
    /// With the device on whose queue each is.
    steps: Vec<(Step, DeviceId)>,
    /// By step, the devices of it and of those behind it.
    devices_from: Vec<DeviceSet>,
    /// By segment, in nanoseconds.
    estimates: Vec<f64>,
    kernels: Vec<NodeKernel>,
    memory: Vec<PlanMemory>,
    /// By segment.
    compiled: Vec<Arc<dyn Kernel>>,
    /// Empty after the session's arena grew. Only touched by who has the right to run.
    linked: Mutex<Option<Arc<Linked>>>,
}

impl PlanCore {
    pub(crate) fn steps(&self) -> &[(Step, DeviceId)] {
        &self.steps
    }

    /// The devices of a step and of those behind it.
    pub(crate) fn devices_from(&self, step: usize) -> DeviceSet {
        self.devices_from.get(step).copied().unwrap_or_default()
    }

    /// The estimated time of a segment, in nanoseconds.
    pub(crate) fn estimate_ns(&self, segment: usize) -> f64 {
        self.estimates.get(segment).copied().unwrap_or(0.0)
    }

    pub(crate) fn no_tickets(&self) -> Tickets {
        let copies = self.passes.schedule.copies.len();
        std::iter::repeat_with(|| None).take(copies).collect()
    }

    /// Queues a step; a copy's write waits for its bytes.
    pub(crate) fn queue(
        &self,
        shared: &Shared,
        linked: &Linked,
        step: Step,
        scalars: &[i32],
        tickets: &mut Tickets,
    ) -> Result<(), StepFailure> {
        let schedule = &self.passes.schedule;
        match step {
            Step::Launch(at) => {
                let launched = schedule.segments.get(at).zip(linked.programs().get(at));
                if let Some((segment, program)) = launched {
                    let queue = shared.backend(segment.device)?.queue();
                    queue.launch(program.as_ref(), scalars)?;
                }
            }
            Step::Upload(at) => {
                let upload = schedule.uploads.get(at).zip(linked.uploads().get(at));
                if let Some((upload, (bytes, to))) = upload {
                    let queue = shared.backend(upload.device)?.queue();
                    queue.write(&to.buffer, to.offset, bytes.as_slice())?;
                }
            }
            Step::Read(at) | Step::Write(at) => {
                let copy = schedule.copies.get(at).zip(tickets.get_mut(at));
                let Some((copy, ticket)) = copy else {
                    return Ok(());
                };
                let bytes = copy.bytes_of(scalars);
                if bytes.is_empty() {
                    return Ok(());
                }
                let reads = matches!(step, Step::Read(_));
                let device = if reads { copy.from } else { copy.to };
                let binding = linked.binding(device, copy.storage);
                let binding = binding.ok_or(Violation::NotRead { copy: at })?;
                let queue = shared.backend(device)?.queue();
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

    /// Lets go of the arena.
    pub(crate) fn unlink(&self) {
        *lock(&self.linked) = None;
    }
}

impl Plan {
    pub(crate) fn new(
        shared: Arc<Shared>,
        graph: &Graph,
        passes: Passes,
        compiled: Vec<Arc<dyn Kernel>>,
        linked: Linked,
    ) -> Self {
        let inputs = graph.storage_ids().zip(graph.storages());
        let inputs = inputs.filter(|(_, storage)| storage.kind == StorageKind::Input);
        let steps = steps(&passes.schedule);
        let core = PlanCore {
            graph: graph.clone(),
            inputs: inputs.map(|(id, _)| id).collect(),
            estimates: estimates(&shared, graph, &passes),
            kernels: kernels(&passes, &linked),
            memory: memory(&shared, graph, &passes, &linked),
            devices_from: devices_from(&steps),
            steps,
            passes,
            compiled,
            linked: Mutex::new(Some(Arc::new(linked))),
        };
        Self {
            core: Arc::new(core),
            shared,
        }
    }

    pub(crate) fn downgrade(&self) -> Weak<PlanCore> {
        Arc::downgrade(&self.core)
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.core.graph
    }

    /// The whole of the input of a name.
    pub fn input(&self, name: &str) -> Option<ValueId> {
        self.core.graph.whole(StorageKind::Input, name)
    }

    /// The whole of the output of a name.
    pub fn output(&self, name: &str) -> Option<ValueId> {
        self.core.graph.whole(StorageKind::Output, name)
    }

    /// Runs the plan. Every input of the graph is given once, whole, by a value on its storage;
    /// `scalars` holds the graph's run-time scalars by id. The work is queued on the devices, as far
    /// as it does not have to wait for bytes of another device; the rest follows with later runs and
    /// at the latest when something is waited for. The outputs can be read from what is returned.
    /// While that is held, no other run of the session begins.
    ///
    /// # Errors
    /// What is wrong with the inputs and scalars is found before anything runs. Errors of the
    /// work itself may come when the outputs are read or waited for; those of a run that nobody
    /// waited for come from a later run of the session, which went on from its states. Whoever is
    /// told of an error finds all devices idle, and the states undefined.
    pub fn run(
        &self,
        inputs: &[(ValueId, HostSlice<'_>)],
        scalars: &[i32],
    ) -> Result<Outputs<'_>, RunError> {
        self.run_observed(inputs, scalars, None)
    }

    /// [`run`](Self::run), calling an observer behind each segment.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), and [`RunError::Cancelled`] if the observer breaks off.
    pub fn run_observed(
        &self,
        inputs: &[(ValueId, HostSlice<'_>)],
        scalars: &[i32],
        observer: Option<&mut Observer<'_>>,
    ) -> Result<Outputs<'_>, RunError> {
        let span = tracing::trace_span!("run", nodes = self.core.passes.liveness.nodes().len());
        let _span = span.entered();
        self.check_inputs(inputs)?;
        self.check_scalars(scalars)?;
        let mut guard = self.shared.acquire()?;
        if let Some(failure) = guard.running.failed.take() {
            return Err(failure.into());
        }
        match self.begin(&mut guard.running, inputs, scalars, observer) {
            Ok(linked) => Ok(Outputs::new(self, linked, guard)),
            Err(error) => {
                // The error that counts is the first; the next run is not blamed for the others.
                let _ = guard.running.settle(&self.shared);
                Err(error)
            }
        }
    }

    /// Queues a run as far as it can be without waiting, if it is observed to its end.
    fn begin(
        &self,
        running: &mut Running,
        inputs: &[(ValueId, HostSlice<'_>)],
        scalars: &[i32],
        observer: Option<&mut Observer<'_>>,
    ) -> Result<Arc<Linked>, RunError> {
        let linked = self.linked(running)?;
        let copies = !self.core.passes.schedule.copies.is_empty();
        if observer.is_none() && (copies || !running.flights.is_empty()) {
            let inputs = inputs.iter().map(|(value, data)| {
                let storage = self.input_storage(*value)?;
                Ok((storage, data.bytes().to_vec()))
            });
            let inputs = inputs.collect::<Result<_, RunError>>()?;
            let flight = Flight::new(&self.core, linked.clone(), inputs, scalars);
            running.flights.push(&self.shared, flight)?;
            return Ok(linked);
        }
        running.flights.finish(&self.shared)?;
        for (value, data) in inputs {
            self.write_input(&linked, *value, data.bytes())?;
        }
        let mut tickets = self.core.no_tickets();
        self.queue_all(&linked, scalars, &mut tickets, observer)?;
        Ok(linked)
    }

    /// The programs, bound again after the arena grew.
    fn linked(&self, running: &mut Running) -> Result<Arc<Linked>, RunError> {
        let linked = lock(&self.core.linked).clone();
        if let Some(linked) = linked {
            return Ok(linked);
        }
        running.flights.finish(&self.shared)?;
        let core = &self.core;
        let again = link(
            &self.shared,
            running,
            &core.graph,
            &core.passes,
            &core.compiled,
        )
        .map_err(|error| RunError::Relink(Box::new(error)))?;
        let again = Arc::new(again);
        *lock(&self.core.linked) = Some(again.clone());
        Ok(again)
    }

    /// Queues all steps of a run.
    fn queue_all(
        &self,
        linked: &Linked,
        scalars: &[i32],
        tickets: &mut Tickets,
        mut observer: Option<&mut Observer<'_>>,
    ) -> Result<(), RunError> {
        let schedule = &self.core.passes.schedule;
        for &(step, device) in self.core.steps() {
            self.core
                .queue(&self.shared, linked, step, scalars, tickets)?;
            let (Step::Launch(at), Some(observer)) = (step, &mut observer) else {
                continue;
            };
            let launched = schedule.segments.get(at).zip(linked.programs().get(at));
            let Some((segment, program)) = launched else {
                continue;
            };
            let evaluated = Evaluated {
                graph: &self.core.graph,
                segment,
                backend: self.shared.backend(device)?.as_ref(),
                program: program.as_ref(),
                linked,
            };
            if observer(&evaluated).is_break() {
                return Err(RunError::Cancelled);
            }
        }
        Ok(())
    }

    /// The input storage that a value lies on.
    fn input_storage(&self, value: ValueId) -> Result<StorageId, RunError> {
        let found = self.core.graph.values().get(value.index());
        found
            .map(|value| value.storage)
            .filter(|storage| self.core.inputs.contains(storage))
            .ok_or(RunError::UnknownInput {
                index: value.index(),
            })
    }

    fn check_inputs(&self, inputs: &[(ValueId, HostSlice<'_>)]) -> Result<(), RunError> {
        let storages = self.core.graph.storages();
        for (i, (value, data)) in inputs.iter().enumerate() {
            let id = self.input_storage(*value)?;
            let Some(storage) = storages.get(id.index()) else {
                continue;
            };
            for (earlier, _) in inputs.iter().take(i) {
                if self.input_storage(*earlier)? == id {
                    return Err(RunError::DuplicateInput {
                        name: storage.name.clone(),
                    });
                }
            }
            if let Some(found) = data.dtype().filter(|dtype| *dtype != storage.dtype) {
                return Err(RunError::InputDType {
                    name: storage.name.clone(),
                    dtype: storage.dtype,
                    found,
                });
            }
            if data.bytes().len() != storage.bytes {
                return Err(RunError::InputSize {
                    name: storage.name.clone(),
                    expected: storage.bytes,
                    found: data.bytes().len(),
                });
            }
        }
        for id in &self.core.inputs {
            let given = |(value, _): &(ValueId, HostSlice<'_>)| {
                self.input_storage(*value).is_ok_and(|given| given == *id)
            };
            if !inputs.iter().any(given)
                && let Some(storage) = storages.get(id.index())
            {
                return Err(RunError::MissingInput {
                    name: storage.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn check_scalars(&self, values: &[i32]) -> Result<(), RunError> {
        let scalars = self.core.graph.scalars();
        if scalars.len() != values.len() {
            return Err(RunError::ScalarCount {
                expected: scalars.len(),
                found: values.len(),
            });
        }
        for (scalar, &value) in scalars.iter().zip(values) {
            if value < 0 || value > scalar.max {
                return Err(RunError::Scalar {
                    name: scalar.name.clone(),
                    value,
                    max: scalar.max,
                });
            }
        }
        Ok(())
    }

    /// Writes an input on every device that reads it. One that no needed node reads has no memory
    /// and is not written.
    fn write_input(&self, linked: &Linked, value: ValueId, bytes: &[u8]) -> Result<(), RunError> {
        let storage = self.input_storage(value)?;
        for device in DeviceId::all(self.shared.devices.len()) {
            let binding = linked.binding(device, storage);
            if let Some(binding) = binding.filter(|_| !bytes.is_empty()) {
                let queue = self.shared.backend(device)?.queue();
                queue.write(&binding.buffer, binding.offset, bytes)?;
            }
        }
        Ok(())
    }

    /// The kernel of each needed node, in program order.
    pub fn kernels(&self) -> &[NodeKernel] {
        &self.core.kernels
    }

    /// Device memory that the plan uses, by device.
    pub fn memory(&self) -> &[PlanMemory] {
        &self.core.memory
    }

    /// The segments and the copies between them.
    pub fn schedule(&self) -> &Schedule {
        &self.core.passes.schedule
    }

    /// Where each node runs and why, in program order.
    ///
    /// # Errors
    /// None for a plan that was compiled.
    pub fn explain(&self) -> Result<Vec<NodeReport>, CompileError> {
        let (graph, passes) = (&self.core.graph, &self.core.passes);
        explain(graph, passes, &self.shared.devices, &self.shared.homes)
    }

    /// Whether nodes are elsewhere than they would be, because a device is over its budget.
    pub fn is_crowded(&self) -> bool {
        self.core.passes.is_crowded
    }

    /// The pins that could not be followed.
    pub fn lost_pins(&self) -> &[LostPin] {
        self.core.passes.placement.lost_pins()
    }

    /// What each pass found, as text.
    pub fn describe(&self) -> String {
        let (graph, devices) = (&self.core.graph, &self.shared.devices);
        let passes = &self.core.passes;
        let mut text = passes.liveness.dump(graph);
        text += &passes.placement.dump(graph, devices);
        text += &passes.schedule.dump(graph, devices);
        text += &fusion::dump(graph, &passes.schedule);
        text += &passes.memory.dump(graph, devices);
        text += "kernels:\n";
        for kernel in &self.core.kernels {
            let device = devices.get(kernel.device.index());
            let device = device.map_or("?", |device| device.info().id.as_str());
            let op = graph.node(kernel.node).map_or("?", |node| node.op().name());
            let at = kernel.node.index();
            let _ = writeln!(text, "  {at:4}  {op}: {} on {device}", kernel.kernel);
        }
        text
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("nodes", &self.core.passes.liveness.nodes().len())
            .field("segments", &self.core.passes.schedule.segments.len())
            .field("memory", &self.core.memory)
            .finish_non_exhaustive()
    }
}

/// The steps of a run, each with the device on whose queue it is.
fn steps(schedule: &Schedule) -> Vec<(Step, DeviceId)> {
    let device = |step: Step| match step {
        Step::Launch(at) => Some(schedule.segments.get(at)?.device),
        Step::Upload(at) => Some(schedule.uploads.get(at)?.device),
        Step::Read(at) => Some(schedule.copies.get(at)?.from),
        Step::Write(at) => Some(schedule.copies.get(at)?.to),
    };
    let steps = schedule.steps().into_iter();
    steps
        .filter_map(|step| Some((step, device(step)?)))
        .collect()
}

/// The estimated time of each segment, in nanoseconds.
fn estimates(shared: &Shared, graph: &Graph, passes: &Passes) -> Vec<f64> {
    let segments = passes.schedule.segments.iter();
    let estimate = |segment: &Segment| {
        let backend = shared.devices.get(segment.device.index());
        let nodes = segment.nodes.iter().filter_map(|&id| graph.node(id));
        backend.map_or(0.0, |backend| {
            let times = nodes.map(|node| passes.times.node(segment.device, backend.as_ref(), node));
            times.sum()
        })
    };
    segments.map(estimate).collect()
}

fn devices_from(steps: &[(Step, DeviceId)]) -> Vec<DeviceSet> {
    let mut devices = DeviceSet::default();
    let mut from: Vec<DeviceSet> = Vec::with_capacity(steps.len());
    for &(_, device) in steps.iter().rev() {
        devices.insert(device);
        from.push(devices);
    }
    from.reverse();
    from
}

fn kernels(passes: &Passes, linked: &Linked) -> Vec<NodeKernel> {
    let segments = passes.schedule.segments.iter().zip(linked.programs());
    segments
        .flat_map(|(segment, program)| {
            let nodes = segment.nodes.iter().zip(program.kernels());
            nodes.map(|(&node, kernel)| NodeKernel {
                node,
                device: segment.device,
                kernel,
            })
        })
        .collect()
}

fn memory(shared: &Shared, graph: &Graph, passes: &Passes, linked: &Linked) -> Vec<PlanMemory> {
    let mut memory = forecast::memory(shared, graph, passes);
    memory.iter_mut().for_each(|memory| memory.programs = 0);
    for (segment, program) in passes.schedule.segments.iter().zip(linked.programs()) {
        if let Some(memory) = memory.get_mut(segment.device.index()) {
            memory.programs += program.own_bytes();
        }
    }
    memory
}
