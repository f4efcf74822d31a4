//! Runs the passes over a graph.

use std::num::NonZeroUsize;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{Graph, NodeId, StorageKind};

use crate::check;
use crate::error::CompileError;
use crate::explain::explain;
use crate::favour::{Favour, Thresholds};
use crate::flow::check_flow;
use crate::forecast::{self, Forecast};
use crate::fusion;
use crate::holdings::Holdings;
use crate::homes::Homes;
use crate::link::{compile_segments, link};
use crate::liveness::{self, Liveness};
use crate::memory::{self, MemoryPlan};
use crate::pins::LostPin;
use crate::placement::{self, Placement, Rules};
use crate::plan::Plan;
use crate::plural::plural;
use crate::rates::{Rates, Times};
use crate::segment::{self, Cuts, Schedule};
use crate::session::Session;

/// How a graph is compiled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Policy {
    /// Whether storages that are not needed at the same time may share memory.
    pub reuse_memory: bool,
    /// Whether the checker verifies the plan; by default in builds with debug assertions.
    pub check_plan: bool,
    /// Whether a pin that cannot be followed is an error rather than a warning.
    pub strict: bool,
    /// How fast the devices and the links to them are.
    pub rates: Rates,
    /// Which kind of device is preferred where no pin decides.
    pub favour: Favour,
    /// What does not leave the CPU.
    pub thresholds: Thresholds,
    /// Whether devices may run several nodes as one kernel where they have one.
    pub fuse: bool,
    /// The most nodes in a segment; with 1, an observed run shows the result of each node.
    pub max_segment_nodes: Option<NonZeroUsize>,
    /// Nodes that begin a segment, in program order: between segments a run can be broken off.
    pub segment_starts: Vec<NodeId>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            reuse_memory: true,
            check_plan: cfg!(debug_assertions),
            strict: false,
            rates: Rates::default(),
            favour: Favour::default(),
            thresholds: Thresholds::default(),
            fuse: true,
            max_segment_nodes: None,
            segment_starts: Vec::new(),
        }
    }
}

/// What the passes before backend compilation found.
#[derive(Debug)]
pub(crate) struct Passes {
    pub(crate) liveness: Liveness,
    pub(crate) placement: Placement,
    pub(crate) schedule: Schedule,
    pub(crate) memory: MemoryPlan,
    pub(crate) times: Times,
    /// Whether a device over its budget gave up nodes.
    pub(crate) is_crowded: bool,
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
    let mut guard = shared.acquire_settled()?;
    let holdings = Holdings::of(shared, &guard.running);
    let passes = run_passes(graph, session, policy, &holdings)?;
    let compiled = compile_segments(shared, graph, &passes)?;
    let linked = link(shared, &mut guard.running, graph, &passes, &compiled)?;
    let plan = Plan::new(Arc::clone(shared), graph, passes, compiled, linked);
    guard.running.register(plan.downgrade());
    let needed = plan.core.passes.liveness.nodes().len();
    let arena: usize = plan.memory().iter().map(|memory| memory.arena).sum();
    tracing::debug!(needed, arena, "compiled");
    Ok(plan)
}

/// What [`compile`] would do, by the same passes, without asking the devices for anything.
///
/// # Errors
/// Those of [`compile`] that are found before any memory is asked for.
pub fn forecast(
    graph: &Graph,
    session: &Session,
    policy: &Policy,
) -> Result<Forecast, CompileError> {
    let mut foresight = Foresight::new(session)?;
    foresight.add(graph, policy)
}

/// What a session would hold if plans were compiled one after another.
pub struct Foresight<'s> {
    session: &'s Session,
    holdings: Holdings,
}

impl<'s> Foresight<'s> {
    /// Begins with what a session holds.
    ///
    /// # Errors
    /// [`CompileError::Busy`].
    pub fn new(session: &'s Session) -> Result<Self, CompileError> {
        let shared = &session.shared;
        let guard = shared.acquire()?;
        let holdings = Holdings::of(shared, &guard.running);
        Ok(Self { session, holdings })
    }

    /// What [`compile`] of a graph would do behind the graphs before, without asking the devices for
    /// anything.
    ///
    /// # Errors
    /// Those of [`compile`] that are found before any memory is asked for.
    pub fn add(&mut self, graph: &Graph, policy: &Policy) -> Result<Forecast, CompileError> {
        let (session, shared) = (self.session, &self.session.shared);
        let passes = run_passes(graph, session, policy, &self.holdings)?;
        self.holdings.add(shared, graph, &passes);
        Ok(Forecast {
            memory: forecast::memory(shared, graph, &passes),
            nodes: explain(graph, &passes, session.devices(), session.homes())?,
            lost_pins: passes.placement.lost_pins().to_vec(),
            is_crowded: passes.is_crowded,
            held: self.holdings.sums(shared),
            schedule: passes.schedule,
        })
    }
}

/// The passes before backend compilation. If a device would hold more than its budget, it keeps as
/// many of the first nodes as fit, and what others can run of the rest moves off it.
fn run_passes(
    graph: &Graph,
    session: &Session,
    policy: &Policy,
    holdings: &Holdings,
) -> Result<Passes, CompileError> {
    let shared = &session.shared;
    shared.weights().check(graph)?;
    {
        let states = shared.states();
        let kinds = graph.storages().iter();
        let mut of_graph = kinds.filter(|storage| storage.kind == StorageKind::State);
        of_graph.try_for_each(|storage| states.check(storage))?;
    }
    let (devices, homes) = (session.devices(), session.homes());
    let plan = |limits: &[usize]| place_and_plan(graph, devices, homes, policy, limits);
    let over =
        |passes: &Passes, holdings: &Holdings| holdings.over_budget(shared, graph, passes, homes);
    let mut unfused = policy.clone();
    unfused.fuse = false;
    let mut limits = vec![usize::MAX; devices.len()];
    // At first what fits an empty arena, so that a graph that fitted once does so again; then what
    // fits beside the arena that there is.
    let empty = holdings.without_arenas();
    let mut searches = vec![[&empty, holdings].into_iter(); devices.len()];
    loop {
        let mut passes = plan(&limits)?;
        let Some((device, excess)) = over(&passes, holdings).into_iter().next() else {
            warn_of_lost_pins(&passes.placement, policy)?;
            passes.is_crowded = limits.iter().any(|&limit| limit != usize::MAX);
            return Ok(passes);
        };
        // What a group touches lives longer, which may be what does not fit.
        if policy.fuse {
            let mut passes = place_and_plan(graph, devices, homes, &unfused, &limits)?;
            if over(&passes, holdings).is_empty() {
                warn_of_lost_pins(&passes.placement, policy)?;
                passes.is_crowded = limits.iter().any(|&limit| limit != usize::MAX);
                return Ok(passes);
            }
        }
        let at = device.index();
        let search = searches.get_mut(at).and_then(Iterator::next);
        let (Some(beside), Some(&limit)) = (search, limits.get(at)) else {
            return Err(excess.into());
        };
        let (mut kept, mut most) = (0, limit.min(passes.liveness.nodes().len()));
        tracing::debug!("{excess}");
        while kept + 1 < most {
            let middle = kept.midpoint(most);
            limits[at] = middle;
            let fits = over(&plan(&limits)?, beside)
                .iter()
                .all(|(d, _)| *d != device);
            *(if fits { &mut kept } else { &mut most }) = middle;
        }
        limits[at] = kept;
    }
}

/// Tells of the pins that cannot be followed, of those that are alike in one line.
fn warn_of_lost_pins(placement: &Placement, policy: &Policy) -> Result<(), CompileError> {
    let all = placement.lost_pins();
    if let Some(lost) = all.first().filter(|_| policy.strict) {
        return Err(CompileError::LostPin(lost.clone()));
    }
    let alike =
        |a: &LostPin, b: &LostPin| (&a.wanted, a.op, &a.cause) == (&b.wanted, b.op, &b.cause);
    for (at, lost) in all.iter().enumerate() {
        if all[..at].iter().any(|earlier| alike(earlier, lost)) {
            continue;
        }
        match all[at + 1..]
            .iter()
            .filter(|later| alike(later, lost))
            .count()
        {
            0 => tracing::warn!("{lost}"),
            more => tracing::warn!("{lost}; the same holds for {}", plural(more, "other pin")),
        }
    }
    Ok(())
}

pub(crate) fn place_and_plan(
    graph: &Graph,
    devices: &[Arc<dyn Backend>],
    homes: &Homes,
    policy: &Policy,
    limits: &[usize],
) -> Result<Passes, CompileError> {
    let liveness = liveness::analyse(graph)?;
    let rules = Rules {
        homes,
        rates: &policy.rates,
        favour: policy.favour,
        thresholds: policy.thresholds,
        limits,
    };
    let placement = placement::place(graph, &liveness, devices, &rules)?;
    let cuts = Cuts {
        max_nodes: policy.max_segment_nodes,
        starts: &policy.segment_starts,
    };
    let mut schedule = segment::schedule_with(graph, &liveness, &placement, cuts);
    if policy.fuse {
        fusion::fuse(graph, &liveness, devices, &mut schedule);
    }
    let reuse = policy.reuse_memory;
    let memory = memory::plan(graph, &liveness, &placement, &schedule, devices, reuse)?;
    if policy.check_plan {
        check::check_segments(graph, &liveness, &placement, &schedule)?;
        check::check_groups(graph, &schedule, devices)?;
        check::check_memory(graph, &placement, &schedule, &memory)?;
        check_flow(graph, &liveness, &placement, &schedule, &memory)?;
    }
    Ok(Passes {
        liveness,
        placement,
        schedule,
        memory,
        times: Times::new(&policy.rates, devices),
        is_crowded: false,
    })
}
