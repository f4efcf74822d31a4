//! Runs the passes over a graph, and chooses the homes of weights and states by their results.

mod layers;
mod policy;
mod states;

use std::sync::Arc;

use kovar_core::Graph;
use kovar_core::backend::Backend;

use crate::check;
use crate::place::classes::{Classes, classify};
use crate::place::liveness::{self, Liveness};
use crate::place::placement::{self, Placement, Rules};
use crate::place::{Homes, PlaceError};
use crate::rates::Times;
use crate::schedule::memory::{self, MemoryPlan};
use crate::schedule::{Schedule, SegmentLimits, WeightUses, fusion, schedule, weight_uses};

pub use layers::place_layers;
pub use policy::Policy;
pub use states::place_states;

/// The results of the passes.
#[derive(Debug)]
pub(crate) struct Passes {
    pub(crate) liveness: Liveness,
    pub(crate) classes: Classes,
    pub(crate) placement: Placement,
    pub(crate) schedule: Schedule,
    pub(crate) memory: MemoryPlan,
    pub(crate) times: Times,
    /// Whether a device gave nodes to others to keep its budget.
    pub(crate) is_spilled: bool,
}

impl Passes {
    /// Runs the passes. Each device gets nodes before its position in `limits` only, but for nodes
    /// that are pinned there and those that no other device supports; a device without an entry has
    /// no limit.
    pub(crate) fn run(
        graph: &Graph,
        devices: &[Arc<dyn Backend>],
        homes: &Homes,
        policy: &Policy,
        limits: &[usize],
    ) -> Result<Self, PlaceError> {
        let liveness = liveness::analyse(graph)?;
        let classes = classify(graph, &liveness, devices)?;
        let rules = Rules {
            homes,
            rates: &policy.rates,
            preference: policy.preference,
            thresholds: policy.thresholds,
            limits,
        };
        let placement = placement::place(graph, &liveness, &classes, devices, &rules);
        let segment_limits = SegmentLimits {
            max_nodes: policy.max_segment_nodes,
            starts: &policy.segment_starts,
        };
        let mut schedule = schedule(graph, &liveness, &placement, segment_limits);
        if policy.fuse {
            fusion::fuse(graph, &liveness, devices, &mut schedule);
        }
        let reuse = policy.reuse_memory;
        let memory = memory::plan(graph, &liveness, &placement, &schedule, devices, reuse)?;
        let passes = Self {
            liveness,
            classes,
            placement,
            schedule,
            memory,
            times: Times::new(&policy.rates, devices),
            is_spilled: false,
        };
        if policy.check_plan {
            passes.check(graph, devices)?;
        }
        Ok(passes)
    }

    fn check(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> Result<(), PlaceError> {
        let Self {
            liveness,
            placement,
            schedule,
            memory,
            ..
        } = self;
        check::check_segments(graph, liveness, placement, schedule)?;
        check::check_groups(graph, schedule, devices)?;
        check::check_memory(graph, placement, schedule, memory)?;
        check::check_flow(graph, liveness, placement, schedule, memory)?;
        Ok(())
    }

    /// The weights that each device keeps for its segments, in the order of their first use.
    pub(crate) fn weight_uses<'g>(&self, graph: &'g Graph) -> Vec<WeightUses<'g>> {
        weight_uses(graph, &self.placement, &self.schedule)
    }
}
