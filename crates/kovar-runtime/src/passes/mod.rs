//! Runs the passes over a graph, and chooses the homes of weights and states by their results.

mod layers;
mod states;
#[cfg(test)]
mod tests;

use kovar_core::{Graph, Storage, StorageKind};

use crate::check;
use crate::device::DeviceId;
use crate::place::classes::{Classes, classify};
use crate::place::liveness::{self, Liveness};
use crate::place::placement::{Placement, place};
use crate::place::{Inputs, PlaceError};
use crate::rates::Times;
use crate::schedule::memory::{self, ArenaPlan};
use crate::schedule::{Schedule, WeightUses, fusion, schedule, weight_uses};

pub use layers::place_layers;
pub use states::place_states;

/// The results of the passes.
#[derive(Debug)]
pub(crate) struct Passes {
    pub(crate) liveness: Liveness,
    pub(crate) classes: Classes,
    pub(crate) placement: Placement,
    pub(crate) schedule: Schedule,
    pub(crate) memory: ArenaPlan,
    pub(crate) times: Times,
    /// Whether a device gave nodes to others to keep its budget.
    pub(crate) is_spilled: bool,
}

impl Passes {
    pub(crate) fn run(inputs: Inputs<'_>) -> Result<Self, PlaceError> {
        let liveness = liveness::analyse(inputs.graph)?;
        let classes = classify(inputs, &liveness)?;
        let placement = place(inputs, &liveness, &classes);
        let mut schedule = schedule(inputs, &liveness, &placement);
        if inputs.policy.fuse {
            fusion::fuse(inputs, &liveness, &mut schedule);
        }
        let memory = memory::plan(inputs, &liveness, &placement, &schedule)?;
        let passes = Self {
            liveness,
            classes,
            placement,
            schedule,
            memory,
            times: Times::new(&inputs.policy.rates, inputs.devices),
            is_spilled: false,
        };
        if inputs.policy.check_plan {
            passes.check(inputs)?;
        }
        Ok(passes)
    }

    fn check(&self, inputs: Inputs<'_>) -> Result<(), PlaceError> {
        let graph = inputs.graph;
        let Self {
            liveness,
            placement,
            schedule,
            memory,
            ..
        } = self;
        check::check_segments(graph, liveness, placement, schedule)?;
        check::check_groups(graph, schedule, inputs.devices)?;
        check::check_memory(graph, placement, schedule, memory)?;
        check::check_flow(graph, liveness, placement, schedule, memory)?;
        Ok(())
    }

    /// The weights that each device keeps for its segments, in the order of their first use.
    pub(crate) fn weight_uses<'g>(&self, graph: &'g Graph) -> Vec<WeightUses<'g>> {
        weight_uses(graph, &self.placement, &self.schedule)
    }

    /// The storages of a kind that are on a device after a run.
    pub(crate) fn kept_on<'g>(
        &self,
        graph: &'g Graph,
        kind: StorageKind,
        device: DeviceId,
    ) -> impl Iterator<Item = &'g Storage> {
        let storages = graph.storage_ids().zip(graph.storages());
        let kept =
            storages.filter(move |(id, s)| s.kind == kind && self.placement.home(*id) == device);
        kept.map(|(_, storage)| storage)
    }

    /// The states that have their homes on a device, with their sizes in bytes.
    pub(crate) fn states_on<'g>(
        &self,
        graph: &'g Graph,
        device: DeviceId,
    ) -> impl Iterator<Item = (&'g str, usize)> {
        let states = self.kept_on(graph, StorageKind::State, device);
        states.map(|storage| (storage.name.as_str(), storage.bytes.max(1)))
    }
}
