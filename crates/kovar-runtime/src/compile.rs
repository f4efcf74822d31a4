//! Runs the passes over a graph.

use std::sync::Arc;

use kovar_core::{Graph, StorageKind};

use crate::check;
use crate::error::CompileError;
use crate::link::link;
use crate::liveness::{self, Liveness};
use crate::memory::{self, MemoryPlan};
use crate::placement::{self, Placement};
use crate::plan::Plan;
use crate::segment::{self, Segment};
use crate::session::Session;

/// How a graph is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Whether storages that are not needed at the same time may share memory.
    pub reuse_memory: bool,
    /// Whether the checker verifies the plan; by default in builds with debug assertions.
    pub check_plan: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            reuse_memory: true,
            check_plan: cfg!(debug_assertions),
        }
    }
}

/// What the passes before backend compilation found.
#[derive(Debug)]
pub(crate) struct Passes {
    pub(crate) liveness: Liveness,
    pub(crate) placement: Placement,
    pub(crate) segments: Vec<Segment>,
    pub(crate) memory: MemoryPlan,
}

/// Compiles `graph` for the devices of `session`. The graph stays as it is and can be compiled
/// any number of times. Weights that no earlier plan read are prepared, states that no earlier
/// plan had are made and set to zero.
///
/// # Errors
/// See [`CompileError`]. What is wrong with the graph, or between it and the session, is found
/// before any memory is asked for.
pub fn compile(graph: &Graph, session: &Session, policy: &Policy) -> Result<Plan, CompileError> {
    let nodes = graph.nodes().len();
    let _span = tracing::debug_span!("compile", nodes).entered();
    let shared = &session.shared;
    let devices = session.devices();
    shared.weights().check(graph)?;
    {
        let states = shared.states();
        let kinds = graph.storages().iter();
        let mut of_graph = kinds.filter(|storage| storage.kind == StorageKind::State);
        of_graph.try_for_each(|storage| states.check(storage))?;
    }
    let liveness = liveness::analyse(graph)?;
    let placement = placement::place(graph, &liveness, devices, session.homes())?;
    let segments = segment::cut(graph, &liveness, &placement);
    let memory = memory::plan(graph, &liveness, &placement, devices, policy.reuse_memory)?;
    if policy.check_plan {
        check::check_segments(graph, &liveness, &placement, &segments)?;
        check::check_memory(graph, &liveness, &placement, &memory)?;
    }
    let passes = Passes {
        liveness,
        placement,
        segments,
        memory,
    };
    let mut guard = shared.acquire()?;
    let linked = link(shared, &mut guard.running, graph, &passes)?;
    let plan = Plan::new(Arc::clone(shared), graph, passes, linked);
    guard.running.register(plan.downgrade());
    let needed = plan.core.passes.liveness.nodes().len();
    let arena: usize = plan.memory().iter().map(|memory| memory.arena).sum();
    tracing::debug!(needed, arena, "compiled");
    Ok(plan)
}
