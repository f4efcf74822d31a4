//! The device memory that a session holds, and will hold once further plans are made.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::Graph;
use kovar_core::backend::Backend;

use crate::arena::{Running, grow_sizes};
use crate::compile::Passes;
use crate::device::DeviceId;
use crate::forecast::{OverBudget, staging, states};
use crate::homes::Homes;
use crate::session::{DeviceUse, Shared};
use crate::weights::weight_uses;

/// What one device holds, in bytes.
#[derive(Clone, Debug, Default)]
struct Held {
    weights: HashMap<String, usize>,
    states: HashMap<String, usize>,
    /// The buffers of its arena.
    arena: Vec<usize>,
}

/// What the devices of a session hold.
#[derive(Clone, Debug)]
pub(crate) struct Holdings(Vec<Held>);

impl Holdings {
    /// What a session holds.
    pub(crate) fn of(shared: &Shared, running: &Running) -> Self {
        let (weights, states) = (shared.weights(), shared.states());
        let named = |(name, bytes): (&str, usize)| (name.to_owned(), bytes);
        let held = DeviceId::all(shared.devices.len()).map(|device| {
            let at = device.index();
            let there = states.iter().filter(|state| state.info.device == device);
            Held {
                weights: weights.prepared(at).map(named).collect(),
                states: there
                    .map(|state| (state.info.name.clone(), state.buffer.len()))
                    .collect(),
                arena: running.chunk_sizes(at),
            }
        });
        Self(held.collect())
    }

    /// The same without activation memory.
    pub(crate) fn without_arenas(&self) -> Self {
        let mut holdings = self.clone();
        holdings.0.iter_mut().for_each(|held| held.arena.clear());
        holdings
    }

    /// Adds what a plan needs beside what is there: weights in the device's form and states once for
    /// all plans, of activation memory as much as the plan that needs most.
    pub(crate) fn add(&mut self, shared: &Shared, graph: &Graph, passes: &Passes) {
        let weights = shared.weights();
        for weight in weight_uses(graph, passes) {
            let at = weight.device.index();
            if let (Some(held), Some(backend)) = (self.0.get_mut(at), shared.devices.get(at)) {
                let name = &weight.storage.name;
                if !held.weights.contains_key(name) {
                    let bytes = weights.bytes_of(&weight, backend.as_ref());
                    held.weights.insert(name.clone(), bytes);
                }
            }
        }
        let each = DeviceId::all(self.0.len()).zip(&mut self.0);
        for ((device, held), arena) in each.zip(passes.memory.arenas()) {
            for (name, bytes) in states(graph, passes, device) {
                held.states.entry(name.to_owned()).or_insert(bytes);
            }
            grow_sizes(&mut held.arena, &arena.chunks);
        }
    }

    /// The devices that would hold more than their budgets once a plan is made.
    pub(crate) fn over_budget(
        &self,
        shared: &Shared,
        graph: &Graph,
        passes: &Passes,
        homes: &Homes,
    ) -> Vec<(DeviceId, OverBudget)> {
        if !homes.has_budgets() {
            return Vec::new();
        }
        let mut after = self.clone();
        after.add(shared, graph, passes);
        let each = DeviceId::all(shared.devices.len()).zip(&shared.devices);
        each.zip(&after.0)
            .filter_map(|((device, backend), held)| {
                let budget = homes.budget_of(device)?;
                let over = held.against(backend, budget);
                (over.total() > budget).then_some((device, over))
            })
            .collect()
    }

    /// In all, by device.
    pub(crate) fn sums(&self, shared: &Shared) -> Vec<DeviceUse> {
        let each = shared.devices.iter().zip(&self.0);
        each.map(|(device, held)| DeviceUse {
            device: device.info().id.clone(),
            weights: held.weights.values().sum(),
            states: held.states.values().sum(),
            arena: held.arena.iter().sum(),
        })
        .collect()
    }
}

impl Held {
    fn against(&self, backend: &Arc<dyn Backend>, budget: u64) -> OverBudget {
        let sum = |sizes: &HashMap<String, usize>| sizes.values().map(|&size| size as u64).sum();
        let mut held = OverBudget {
            device: backend.info().id.clone(),
            weights: sum(&self.weights),
            states: sum(&self.states),
            arena: self.arena.iter().map(|&size| size as u64).sum(),
            staging: 0,
            budget,
        };
        // Nothing goes to and from a device that holds nothing.
        if held.total() > 0 {
            held.staging = staging(backend.as_ref());
        }
        held
    }
}
