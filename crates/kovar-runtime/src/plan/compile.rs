//! Compilation of a graph into a plan.

use kovar_core::Graph;

use super::Plan;
use super::budget::fit_budgets;
use super::error::CompileError;
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
