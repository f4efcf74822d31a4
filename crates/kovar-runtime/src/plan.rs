//! Compiled graphs.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, Weak};

use kovar_core::backend::ReadTicket;
use kovar_core::{Graph, NodeId, StorageId, StorageKind, ValueId};

use crate::arena::Running;
use crate::check::Violation;
use crate::compile::Passes;
use crate::device::DeviceId;
use crate::error::{CompileError, RunError};
use crate::explain::{NodeReport, explain};
use crate::forecast::{self, PlanMemory};
use crate::fusion;
use crate::host_slice::HostSlice;
use crate::link::{Linked, link};
use crate::observe::{Evaluated, Observer};
use crate::outputs::Outputs;
use crate::pins::LostPin;
use crate::segment::{Schedule, Step};
use crate::session::{Shared, lock};
use crate::settle::settle;
use crate::transfer::Copy;

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
    steps: Vec<Step>,
    kernels: Vec<NodeKernel>,
    memory: Vec<PlanMemory>,
    /// Empty after the session's arena grew. Only touched by who has the right to run.
    linked: Mutex<Option<Arc<Linked>>>,
}

impl PlanCore {
    /// Lets go of the arena.
    pub(crate) fn unlink(&self) {
        *lock(&self.linked) = None;
    }
}

impl Plan {
    pub(crate) fn new(shared: Arc<Shared>, graph: &Graph, passes: Passes, linked: Linked) -> Self {
        let inputs = graph.storage_ids().zip(graph.storages());
        let inputs = inputs.filter(|(_, storage)| storage.kind == StorageKind::Input);
        let core = PlanCore {
            graph: graph.clone(),
            inputs: inputs.map(|(id, _)| id).collect(),
            kernels: kernels(&passes, &linked),
            memory: memory(&shared, graph, &passes, &linked),
            steps: passes.schedule.steps(),
            passes,
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
    /// `scalars` holds the graph's run-time scalars by id. The work is queued on the devices, and
    /// the outputs can be read from what is returned. While that is held, no other run of the
    /// session begins.
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
        if let Some(error) = guard.running.failed.take() {
            return Err(error.into());
        }
        match self.queue_all(&mut guard.running, inputs, scalars, observer) {
            Ok(linked) => Ok(Outputs::new(self, linked, guard)),
            Err(error) => {
                // The error that counts is the first; the next run is not blamed for the others.
                let _ = settle(&self.shared.devices);
                guard.running.unsettled = false;
                Err(error)
            }
        }
    }

    /// Queues all steps of a run.
    fn queue_all(
        &self,
        running: &mut Running,
        inputs: &[(ValueId, HostSlice<'_>)],
        scalars: &[i32],
        mut observer: Option<&mut Observer<'_>>,
    ) -> Result<Arc<Linked>, RunError> {
        let linked = lock(&self.core.linked).clone();
        let linked = match linked {
            Some(linked) => linked,
            None => {
                let core = &self.core;
                let again = link(&self.shared, running, &core.graph, &core.passes)
                    .map_err(|error| RunError::Relink(Box::new(error)))?;
                let again = Arc::new(again);
                *lock(&core.linked) = Some(again.clone());
                again
            }
        };
        for (value, data) in inputs {
            self.write_input(&linked, *value, data.bytes())?;
        }
        let schedule = &self.core.passes.schedule;
        let mut tickets: Vec<Option<Box<dyn ReadTicket>>> = Vec::new();
        tickets.resize_with(schedule.copies.len(), || None);
        for &step in &self.core.steps {
            match step {
                Step::Launch(at) => {
                    let segment = schedule.segments.get(at).zip(linked.programs().get(at));
                    let Some((segment, program)) = segment else {
                        continue;
                    };
                    let queue = self.shared.backend(segment.device)?.queue();
                    queue.launch(program.as_ref(), scalars)?;
                    if let Some(observer) = &mut observer {
                        let evaluated = Evaluated {
                            graph: &self.core.graph,
                            segment,
                            backend: self.shared.backend(segment.device)?.as_ref(),
                            program: program.as_ref(),
                            linked: &linked,
                        };
                        if observer(&evaluated).is_break() {
                            return Err(RunError::Cancelled);
                        }
                    }
                }
                Step::Upload(at) => {
                    let upload = schedule.uploads.get(at).zip(linked.uploads().get(at));
                    let Some((upload, (bytes, to))) = upload else {
                        continue;
                    };
                    let queue = self.shared.backend(upload.device)?.queue();
                    queue.write(&to.buffer, to.offset, bytes.as_slice())?;
                }
                Step::Read(at) | Step::Write(at) => {
                    let copy = schedule.copies.get(at).zip(tickets.get_mut(at));
                    if let Some((copy, ticket)) = copy {
                        self.copy(&linked, copy, ticket, at)?;
                    }
                }
            }
        }
        Ok(linked)
    }

    /// The read of a copy, or with its ticket the write.
    fn copy(
        &self,
        linked: &Linked,
        copy: &Copy,
        ticket: &mut Option<Box<dyn ReadTicket>>,
        at: usize,
    ) -> Result<(), RunError> {
        let read = ticket.take();
        let device = if read.is_some() { copy.to } else { copy.from };
        let binding = linked.binding(device, copy.storage);
        let binding = binding.ok_or(Violation::NotRead { copy: at })?;
        let queue = self.shared.backend(device)?.queue();
        let offset = binding.offset + copy.bytes.start;
        match read {
            Some(read) => queue.write(&binding.buffer, offset, &read.wait()?)?,
            None => *ticket = Some(queue.read(&binding.buffer, offset, copy.bytes.len())?),
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
    for (segment, program) in passes.schedule.segments.iter().zip(linked.programs()) {
        if let Some(memory) = memory.get_mut(segment.device.index()) {
            memory.programs += program.own_bytes();
        }
    }
    memory
}
