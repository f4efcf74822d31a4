//! Compilation of a graph into a plan, and forecasts of it.

use kovar_core::Graph;

use super::Plan;
use super::budget::fit_budgets;
use super::error::CompileError;
use super::explain::explain;
use super::forecast::{Forecast, plan_memory};
use super::link::{compile_segments, link};
use crate::place::Policy;
use crate::session::{MemoryUsage, Session};

/// Compiles `graph` for the devices of `session`. The graph stays as it is and can be compiled
/// any number of times. Weights that no earlier plan read are prepared; states that no earlier plan
/// had are made and set to zero.
///
/// # Errors
/// See [`CompileError`]. Faults of the graph, and of the graph and the session together, are found
/// before any memory is allocated.
pub fn compile(graph: &Graph, session: &Session, policy: &Policy) -> Result<Plan, CompileError> {
    let nodes = graph.nodes().len();
    let _span = tracing::debug_span!("compile", nodes).entered();
    let core = &session.core;
    let mut guard = core.acquire_idle()?;
    let usage = MemoryUsage::of(core, &guard.state);
    let passes = fit_budgets(graph, core, policy, &usage)?;
    let kernels = compile_segments(core, graph, &passes)?;
    let bound = link(core, &mut guard.state, graph, &passes, &kernels)?;
    let plan = Plan::new(core, graph, passes, kernels, bound);
    guard.state.register(&plan.executable);
    let needed = plan.executable.passes.liveness.nodes().len();
    let arena: usize = plan.memory().iter().map(|memory| memory.arena).sum();
    tracing::debug!(needed, arena, "compiled");
    Ok(plan)
}

/// What [`compile`] would do, by the same passes, without any allocation on the devices.
///
/// # Errors
/// Those of [`compile`] that are found before any memory is allocated.
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

    /// Predicts what [`compile`] of `graph` would do after the graphs that were added before,
    /// without any allocation on the devices.
    ///
    /// # Errors
    /// Those of [`compile`] that are found before any memory is allocated.
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
