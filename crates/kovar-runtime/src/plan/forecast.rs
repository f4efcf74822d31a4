//! What a compilation would do, predicted before anything is allocated.

use kovar_core::backend::Backend;
use kovar_core::{Graph, StorageKind};

use super::budget::fit_budgets;
use super::error::CompileError;
use super::explain::{NodeReport, explain};
use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::place::{Policy, RejectedPin};
use crate::schedule::Schedule;
use crate::session::{DeviceUsage, MemoryUsage, Session, SessionCore};

/// Device memory that a plan uses. Weights, states and the arena are shared with other plans of
/// the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanMemory {
    /// The device's id.
    pub device: String,
    /// Weights that the plan reads, in the device's form, in bytes.
    pub weights: usize,
    /// States, in bytes.
    pub states: usize,
    /// Inputs, temporaries, outputs and copies of other devices' states, in bytes.
    pub arena: usize,
    /// A lower bound of the arena, in bytes: the most that is needed at one time.
    pub arena_lower_bound: usize,
    /// What the device's queue holds for writes in flight, in bytes.
    pub upload_ring: usize,
    /// What the device's queue holds for reads in flight, in bytes.
    pub readback: usize,
    /// Outputs that the device has at the end of a run, in bytes.
    pub outputs: usize,
    /// Scratch memory and parameters of the compiled programs, in bytes; an estimate of the device
    /// before they are compiled.
    pub programs: usize,
}

/// A plan before anything is allocated.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Device memory, by device.
    pub memory: Vec<PlanMemory>,
    /// Where each node runs and why, in program order.
    pub nodes: Vec<NodeReport>,
    /// The segments and the copies between them.
    pub schedule: Schedule,
    /// The pins that could not be followed.
    pub rejected_pins: Vec<RejectedPin>,
    /// Whether a device gave nodes to others to keep its budget.
    pub is_spilled: bool,
    /// What the session holds once this plan and the plans that were forecast before it are
    /// compiled, by device, without the memory of compiled programs.
    pub held: Vec<DeviceUsage>,
}

/// What [`compile`](super::compile()) would do, by the same passes, without any allocation on the
/// devices.
///
/// # Errors
/// Those of [`compile`](super::compile()) that are found before any memory is allocated.
pub fn forecast(
    graph: &Graph,
    session: &Session,
    policy: &Policy,
) -> Result<Forecast, CompileError> {
    Forecaster::new(session)?.add(graph, policy)
}

/// Predicts what a session would hold if plans were compiled one after another.
pub struct Forecaster<'s> {
    session: &'s Session,
    usage: MemoryUsage,
}

impl<'s> Forecaster<'s> {
    /// Begins with what a session holds.
    ///
    /// # Errors
    /// [`SessionError::Busy`](crate::SessionError::Busy).
    pub fn new(session: &'s Session) -> Result<Self, CompileError> {
        let guard = session.core.acquire()?;
        let usage = MemoryUsage::of(&session.core, &guard.state);
        Ok(Self { session, usage })
    }

    /// Predicts what [`compile`](super::compile()) of `graph` would do after the graphs that were
    /// added before, without any allocation on the devices.
    ///
    /// # Errors
    /// Those of [`compile`](super::compile()) that are found before any memory is allocated.
    pub fn add(&mut self, graph: &Graph, policy: &Policy) -> Result<Forecast, CompileError> {
        let core = &self.session.core;
        let passes = fit_budgets(graph, core, policy, &self.usage)?;
        self.usage.add(core, graph, &passes);
        Ok(Forecast {
            memory: plan_memory(core, graph, &passes),
            nodes: explain(graph, &passes, &core.devices),
            rejected_pins: passes.placement.rejected_pins().to_vec(),
            is_spilled: passes.is_spilled,
            held: self.usage.by_device(&core.devices),
            schedule: passes.schedule,
        })
    }
}

/// The memory of a plan, by device.
pub(super) fn plan_memory(
    session: &SessionCore,
    graph: &Graph,
    passes: &Passes,
) -> Vec<PlanMemory> {
    let weights = session.weights();
    let uses = passes.weight_uses(graph);
    let each = session.devices.numbered();
    each.zip(passes.memory.arenas())
        .map(|((device, backend), arena)| {
            let here = uses.iter().filter(|weight| weight.device == device);
            let weights = here.map(|weight| weights.bytes_of(weight, backend)).sum();
            let states = passes
                .states_on(graph, device)
                .map(|(_, bytes)| bytes)
                .sum();
            // A device that holds nothing transfers nothing.
            let used = weights + states + arena.bytes() > 0;
            PlanMemory {
                device: backend.info().id.clone(),
                weights,
                states,
                arena: arena.bytes(),
                arena_lower_bound: arena.lower_bound,
                upload_ring: if used { backend.upload_ring_bytes() } else { 0 },
                readback: if used { backend.readback_bytes() } else { 0 },
                outputs: passes
                    .kept_on(graph, StorageKind::Output, device)
                    .map(|storage| storage.bytes)
                    .sum(),
                programs: scratch_bytes(graph, passes, device, backend),
            }
        })
        .collect()
}

/// The device's estimate of the scratch memory of its programs, in bytes.
fn scratch_bytes(graph: &Graph, passes: &Passes, device: DeviceId, backend: &dyn Backend) -> usize {
    let segments = passes.schedule.segments.iter();
    let nodes = segments.filter(|segment| segment.device == device);
    let nodes = graph.nodes_of(nodes.flat_map(|segment| &segment.nodes));
    let scratch = nodes.map(|node| backend.scratch_bytes(node));
    scratch.max().unwrap_or(0)
}
