//! Compiled graphs.

mod budget;
mod compile;
mod error;
mod explain;
mod forecast;
mod host_slice;
mod link;
mod observe;
mod outputs;

use std::fmt::{self, Write as _};
use std::sync::Arc;

use kovar_core::backend::Kernel;
use kovar_core::{Graph, NodeId, StorageId, StorageKind, ValueId};

use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::place::RejectedPin;
use crate::run::{Bound, Executable, InFlightRun};
use crate::schedule::{Action, Schedule, fusion};
use crate::session::{RunState, SessionCore};

pub use compile::compile;
pub use error::{CompileError, RunError};
use explain::explain;
pub use explain::{FusedIn, NodeReport, PlacementReason};
use forecast::plan_memory;
pub use forecast::{Forecast, Forecaster, PlanMemory, forecast};
pub use host_slice::HostSlice;
use link::link;
pub use observe::{ObservedSegment, Observer};
pub use outputs::Outputs;

/// A graph compiled for the devices of a session, to be run any number of times.
pub struct Plan {
    executable: Arc<Executable>,
    session: Arc<SessionCore>,
    kernels: Vec<NodeKernel>,
    memory: Vec<PlanMemory>,
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

impl Plan {
    fn new(
        session: &Arc<SessionCore>,
        graph: &Graph,
        passes: Passes,
        kernels: Vec<Arc<dyn Kernel>>,
        bound: Bound,
    ) -> Self {
        let devices = &session.devices;
        Self {
            kernels: node_kernels(&passes, &bound),
            memory: memory(session, graph, &passes, &bound),
            executable: Arc::new(Executable::new(graph, passes, devices, kernels, bound)),
            session: session.clone(),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.executable.graph
    }

    /// The whole of the input of a name.
    pub fn input(&self, name: &str) -> Option<ValueId> {
        self.executable.graph.whole(StorageKind::Input, name)
    }

    /// The whole of the output of a name.
    pub fn output(&self, name: &str) -> Option<ValueId> {
        self.executable.graph.whole(StorageKind::Output, name)
    }

    /// Runs the plan. Every input of the graph is given once, whole, by a value on its storage;
    /// `scalars` holds the graph's run-time scalars by id.
    ///
    /// The work is queued on the devices up to the first action that has to wait for bytes of
    /// another device. The rest is queued by later runs, or when something is waited for. The
    /// outputs can be read from the result; while the caller holds it, no other run of the session
    /// begins.
    ///
    /// # Errors
    /// Faults of the inputs and scalars are found before anything runs. Errors of the work itself
    /// may be returned when the outputs are read or waited for. Errors of a run that was not waited
    /// for are returned by a later run of the session, which has used the states that the failed
    /// one left. When a call returns an error, all devices are idle and the states are undefined.
    pub fn run(
        &self,
        inputs: &[(ValueId, HostSlice<'_>)],
        scalars: &[i32],
    ) -> Result<Outputs<'_>, RunError> {
        self.run_observed(inputs, scalars, None)
    }

    /// [`run`](Self::run), calling an observer after each segment.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), and [`RunError::Cancelled`] if the observer cancels it.
    pub fn run_observed(
        &self,
        inputs: &[(ValueId, HostSlice<'_>)],
        scalars: &[i32],
        observer: Option<&mut Observer<'_>>,
    ) -> Result<Outputs<'_>, RunError> {
        let nodes = self.executable.passes.liveness.nodes().len();
        let _span = tracing::trace_span!("run", nodes).entered();
        self.check_inputs(inputs)?;
        self.check_scalars(scalars)?;
        let mut guard = self.session.acquire().map_err(|_| RunError::Busy)?;
        if let Some(failure) = guard.state.failed.take() {
            return Err(failure.into());
        }
        match self.queue(&mut guard.state, inputs, scalars, observer) {
            Ok(bound) => Ok(Outputs::new(self, bound, guard)),
            Err(error) => {
                // The first error is returned; later ones must not reach the next run.
                let _ = guard.state.wait_until_idle(&self.session.devices);
                Err(error)
            }
        }
    }

    /// Queues a run: all of it if it is observed or nothing has to cross between devices, otherwise
    /// up to its first wait.
    fn queue(
        &self,
        state: &mut RunState,
        inputs: &[(ValueId, HostSlice<'_>)],
        scalars: &[i32],
        observer: Option<&mut Observer<'_>>,
    ) -> Result<Arc<Bound>, RunError> {
        let bound = self.bound(state)?;
        let devices = &self.session.devices;
        let has_copies = !self.schedule().copies.is_empty();
        if observer.is_none() && (has_copies || !state.in_flight.is_empty()) {
            let inputs = inputs.iter().map(|given| {
                let (storage, bytes) = self.input_of(given)?;
                Ok((storage, bytes.to_vec()))
            });
            let inputs = inputs.collect::<Result<_, RunError>>()?;
            let run = InFlightRun::new(&self.executable, bound.clone(), inputs, scalars);
            state.in_flight.push(devices, run)?;
            return Ok(bound);
        }
        state.in_flight.finish(devices)?;
        for given in inputs {
            let (storage, bytes) = self.input_of(given)?;
            for target in devices.numbered() {
                Executable::write_input(&bound, target, storage, bytes)?;
            }
        }
        self.queue_all(&bound, scalars, observer)?;
        Ok(bound)
    }

    /// The programs, bound again if the session's activation memory grew.
    fn bound(&self, state: &mut RunState) -> Result<Arc<Bound>, RunError> {
        let executable = &self.executable;
        if let Some(bound) = executable.bound() {
            return Ok(bound);
        }
        state.in_flight.finish(&self.session.devices)?;
        let Executable {
            graph,
            passes,
            kernels,
            ..
        } = executable.as_ref();
        let again = link(&self.session, state, graph, passes, kernels);
        let again = Arc::new(again.map_err(|error| RunError::Relink(Box::new(error)))?);
        executable.rebind(again.clone());
        Ok(again)
    }

    /// Queues all actions of a run.
    fn queue_all(
        &self,
        bound: &Bound,
        scalars: &[i32],
        mut observer: Option<&mut Observer<'_>>,
    ) -> Result<(), RunError> {
        let (executable, devices) = (&self.executable, &self.session.devices);
        let mut tickets = executable.no_tickets();
        for &(action, device) in executable.actions() {
            let backend = devices.at(device);
            executable.queue((action, backend), bound, scalars, &mut tickets)?;
            if let (Action::Launch(at), Some(observer)) = (action, &mut observer) {
                let observed = ObservedSegment {
                    graph: self.graph(),
                    segment: &self.schedule().segments[at],
                    backend,
                    program: bound.programs[at].as_ref(),
                    bound,
                };
                if observer(&observed).is_break() {
                    return Err(RunError::Cancelled);
                }
            }
        }
        Ok(())
    }

    /// The input storage that a value lies on.
    fn input_storage(&self, value: ValueId) -> Option<StorageId> {
        let id = self.graph().values().get(value.index())?.storage;
        self.executable.inputs.contains(&id).then_some(id)
    }

    /// The storage of an input and all its bytes.
    fn input_of<'d>(
        &self,
        (value, data): &(ValueId, HostSlice<'d>),
    ) -> Result<(StorageId, &'d [u8]), RunError> {
        let (id, index) = (self.input_storage(*value), value.index());
        let id = id.ok_or(RunError::UnknownInput { index })?;
        let storage = &self.graph().storages()[id.index()];
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
        Ok((id, data.bytes()))
    }

    /// Verifies that each input is given once, whole. Allocates nothing unless that fails.
    fn check_inputs(&self, inputs: &[(ValueId, HostSlice<'_>)]) -> Result<(), RunError> {
        let name = |id: StorageId| self.graph().storages()[id.index()].name.clone();
        let is_given = |id: StorageId, inputs: &[(ValueId, HostSlice<'_>)]| {
            let mut given = inputs.iter();
            given.any(|(value, _)| self.input_storage(*value) == Some(id))
        };
        for (i, given) in inputs.iter().enumerate() {
            let (id, _) = self.input_of(given)?;
            if is_given(id, &inputs[..i]) {
                return Err(RunError::DuplicateInput { name: name(id) });
            }
        }
        let mut all = self.executable.inputs.iter();
        match all.find(|&&id| !is_given(id, inputs)) {
            Some(&id) => Err(RunError::MissingInput { name: name(id) }),
            None => Ok(()),
        }
    }

    fn check_scalars(&self, values: &[i32]) -> Result<(), RunError> {
        let scalars = self.executable.graph.scalars();
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

    /// The kernel of each needed node, in program order.
    pub fn kernels(&self) -> &[NodeKernel] {
        &self.kernels
    }

    /// Device memory that the plan uses, by device.
    pub fn memory(&self) -> &[PlanMemory] {
        &self.memory
    }

    /// The segments and the copies between them.
    pub fn schedule(&self) -> &Schedule {
        &self.executable.passes.schedule
    }

    /// Where each node runs and why, in program order.
    pub fn explain(&self) -> Vec<NodeReport> {
        let (graph, passes) = (self.graph(), &self.executable.passes);
        explain(graph, passes, &self.session.devices)
    }

    /// Whether a device gave nodes to others to keep its budget.
    pub fn is_spilled(&self) -> bool {
        self.executable.passes.is_spilled
    }

    /// The pins that could not be followed.
    pub fn rejected_pins(&self) -> &[RejectedPin] {
        self.executable.passes.placement.rejected_pins()
    }

    /// The results of the passes, as text.
    pub fn describe(&self) -> String {
        let (graph, devices) = (&self.executable.graph, &self.session.devices);
        let passes = &self.executable.passes;
        let mut text = passes.liveness.dump(graph);
        text += &passes.classes.dump(graph, devices);
        text += &passes.placement.dump(graph, devices);
        text += &passes.schedule.dump(graph, devices);
        text += &fusion::dump(graph, &passes.schedule);
        text += &passes.memory.dump(graph, devices);
        text += "kernels:\n";
        for kernel in &self.kernels {
            let device = devices.name(kernel.device);
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
            .field("nodes", &self.executable.passes.liveness.nodes().len())
            .field("segments", &self.executable.passes.schedule.segments.len())
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

fn node_kernels(passes: &Passes, bound: &Bound) -> Vec<NodeKernel> {
    let segments = passes.schedule.segments.iter().zip(&bound.programs);
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

fn memory(session: &SessionCore, graph: &Graph, passes: &Passes, bound: &Bound) -> Vec<PlanMemory> {
    let mut memory = plan_memory(session, graph, passes);
    memory.iter_mut().for_each(|memory| memory.programs = 0);
    for (segment, program) in passes.schedule.segments.iter().zip(&bound.programs) {
        memory[segment.device.index()].programs += program.own_bytes();
    }
    memory
}
