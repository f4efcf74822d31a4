//! The device memory that a session holds, and will hold once further plans are compiled.

use std::collections::HashMap;

use kovar_core::Graph;
use kovar_core::backend::Backend;

use super::forecast::states;
use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::schedule::memory::{grow_arena, staging_bytes};
use crate::session::{DeviceUsage, RunState, SessionCore};

/// A device that would hold more than its budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{device} would hold {weights} bytes of weights, {states} bytes of states, {arena} bytes of \
     activations and {staging} bytes for transfers, its budget is {budget} bytes"
)]
pub struct OverBudget {
    /// The device's id.
    pub device: String,
    /// Weights in the device's form, in bytes.
    pub weights: u64,
    /// States, in bytes.
    pub states: u64,
    /// Activation memory, in bytes.
    pub arena: u64,
    /// What its queue holds for transfers, in bytes.
    pub staging: u64,
    /// The budget, in bytes.
    pub budget: u64,
}

impl OverBudget {
    /// All that the device would hold, in bytes.
    pub fn total(&self) -> u64 {
        let held = [self.weights, self.states, self.arena, self.staging];
        held.into_iter().fold(0, u64::saturating_add)
    }
}

/// What one device holds, in bytes.
#[derive(Clone, Debug, Default)]
struct DeviceMemory {
    weights: HashMap<String, usize>,
    states: HashMap<String, usize>,
    /// The buffers of its arena.
    arena: Vec<usize>,
}

/// What the devices of a session hold.
#[derive(Clone, Debug)]
pub(super) struct MemoryUsage(Vec<DeviceMemory>);

impl MemoryUsage {
    /// What a session holds.
    pub(super) fn of(session: &SessionCore, state: &RunState) -> Self {
        let (weights, states) = (session.weights(), session.states());
        let named = |(name, bytes): (&str, usize)| (name.to_owned(), bytes);
        let held = DeviceId::all(session.devices.len()).map(|device| {
            let at = device.index();
            let there = states.iter().filter(|state| state.info.device == device);
            DeviceMemory {
                weights: weights.prepared(at).map(named).collect(),
                states: there
                    .map(|state| (state.info.name.clone(), state.buffer.len()))
                    .collect(),
                arena: state.chunk_sizes(at),
            }
        });
        Self(held.collect())
    }

    /// The same without activation memory.
    pub(super) fn without_arenas(&self) -> Self {
        let mut usage = self.clone();
        usage.0.iter_mut().for_each(|held| held.arena.clear());
        usage
    }

    /// Adds what a plan needs: weights in the device's form and states are shared by all plans, and
    /// the activation memory is that of the plan that needs most.
    pub(super) fn add(&mut self, session: &SessionCore, graph: &Graph, passes: &Passes) {
        let weights = session.weights();
        for weight in passes.weight_uses(graph) {
            let at = weight.device.index();
            if let (Some(held), Some(backend)) =
                (self.0.get_mut(at), session.devices.at(weight.device))
            {
                let name = &weight.storage.name;
                if !held.weights.contains_key(name) {
                    let bytes = weights.bytes_of(&weight, backend);
                    held.weights.insert(name.clone(), bytes);
                }
            }
        }
        let each = DeviceId::all(self.0.len()).zip(&mut self.0);
        for ((device, held), arena) in each.zip(passes.memory.arenas()) {
            for (name, bytes) in states(graph, passes, device) {
                held.states.entry(name.to_owned()).or_insert(bytes);
            }
            grow_arena(&mut held.arena, &arena.chunks);
        }
    }

    /// The devices that would hold more than their budgets once a plan is compiled.
    pub(super) fn over_budget(
        &self,
        session: &SessionCore,
        graph: &Graph,
        passes: &Passes,
    ) -> Vec<(DeviceId, OverBudget)> {
        let homes = &session.homes;
        if !homes.has_budgets() {
            return Vec::new();
        }
        let mut after = self.clone();
        after.add(session, graph, passes);
        let each = session.devices.numbered();
        each.zip(&after.0)
            .filter_map(|((device, backend), held)| {
                let budget = homes.budget_of(device)?;
                let over = held.against(backend, budget);
                (over.total() > budget).then_some((device, over))
            })
            .collect()
    }

    /// The totals, by device.
    pub(super) fn sums(&self, session: &SessionCore) -> Vec<DeviceUsage> {
        let each = session.devices.iter().zip(&self.0);
        each.map(|(device, held)| DeviceUsage {
            device: device.info().id.clone(),
            weights: held.weights.values().sum(),
            states: held.states.values().sum(),
            arena: held.arena.iter().sum(),
        })
        .collect()
    }
}

impl DeviceMemory {
    fn against(&self, backend: &dyn Backend, budget: u64) -> OverBudget {
        let sum = |sizes: &HashMap<String, usize>| sizes.values().map(|&size| size as u64).sum();
        let mut held = OverBudget {
            device: backend.info().id.clone(),
            weights: sum(&self.weights),
            states: sum(&self.states),
            arena: self.arena.iter().map(|&size| size as u64).sum(),
            staging: 0,
            budget,
        };
        // A device that holds nothing transfers nothing.
        if held.total() > 0 {
            held.staging = staging_bytes(backend);
        }
        held
    }
}
