//! The device memory that a session holds, and will hold once further plans are compiled.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::Graph;
use kovar_core::backend::Backend;

use super::{RunState, SessionCore};
use crate::device::{DeviceId, Devices};
use crate::passes::Passes;
use crate::schedule::memory::{grow_arena, staging_bytes};

/// Device memory that a session holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUsage {
    /// The device's id.
    pub device: String,
    /// Prepared weights, in bytes.
    pub weights: usize,
    /// States, in bytes.
    pub states: usize,
    /// Activation memory, in bytes.
    pub arena: usize,
}

impl DeviceUsage {
    /// All of it, in bytes.
    pub fn total(&self) -> u64 {
        let held = [self.weights, self.states, self.arena];
        let held = held.into_iter().map(|bytes| bytes as u64);
        held.fold(0, u64::saturating_add)
    }
}

/// A device that would hold more than its budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} would hold {} bytes of weights, {} bytes of states, {} bytes of activations and {staging} \
     bytes for transfers, its budget is {budget} bytes",
    usage.device, usage.weights, usage.states, usage.arena
)]
pub struct OverBudget {
    /// What it would hold.
    pub usage: DeviceUsage,
    /// What its queue would hold for transfers, in bytes.
    pub staging: u64,
    /// The budget, in bytes.
    pub budget: u64,
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
pub(crate) struct MemoryUsage(Vec<DeviceMemory>);

impl MemoryUsage {
    /// Nothing on any of `n` devices.
    pub(crate) fn new(n: usize) -> Self {
        Self(vec![DeviceMemory::default(); n])
    }

    /// What a session holds.
    pub(crate) fn of(session: &SessionCore, state: &RunState) -> Self {
        let (weights, states) = (session.weights(), session.states());
        let named = |(name, bytes): (&str, usize)| (name.to_owned(), bytes);
        let held = DeviceId::all(session.devices.len()).map(|device| {
            let there = states.iter().filter(|state| state.info.device == device);
            DeviceMemory {
                weights: weights.prepared(device).map(named).collect(),
                states: there
                    .map(|state| (state.info.name.clone(), state.buffer.len()))
                    .collect(),
                arena: state.chunk_sizes(device),
            }
        });
        Self(held.collect())
    }

    /// The same without activation memory.
    pub(crate) fn without_arenas(&self) -> Self {
        let mut usage = self.clone();
        usage.0.iter_mut().for_each(|held| held.arena.clear());
        usage
    }

    /// Adds what a plan needs: weights in the device's form and states are shared by all plans, and
    /// the activation memory is that of the plan that needs most.
    pub(crate) fn add(&mut self, session: &SessionCore, graph: &Graph, passes: &Passes) {
        let weights = session.weights();
        for weight in passes.weight_uses(graph) {
            let (held, name) = (&mut self.0[weight.device.index()], &weight.storage.name);
            if !held.weights.contains_key(name) {
                let bytes = weights.bytes_of(&weight, session.devices.at(weight.device));
                held.weights.insert(name.clone(), bytes);
            }
        }
        let each = DeviceId::all(self.0.len()).zip(&mut self.0);
        for ((device, held), arena) in each.zip(passes.memory.arenas()) {
            for (name, bytes) in passes.states_on(graph, device) {
                held.states.entry(name.to_owned()).or_insert(bytes);
            }
            grow_arena(&mut held.arena, &arena.chunks);
        }
    }

    /// The devices that would hold more than their budgets once a plan is compiled.
    pub(crate) fn over_budget(
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
        let each = session
            .devices
            .numbered()
            .zip(after.by_device(&session.devices));
        each.filter_map(|((device, backend), usage)| {
            let budget = homes.budget_of(device)?;
            // A device that holds nothing transfers nothing.
            let is_used = usage.total() > 0;
            let staging = if is_used { staging_bytes(backend) } else { 0 };
            let over = usage.total().saturating_add(staging) > budget;
            let found = OverBudget {
                usage,
                staging,
                budget,
            };
            over.then_some((device, found))
        })
        .collect()
    }

    /// The totals, by device.
    pub(crate) fn by_device(&self, devices: &[Arc<dyn Backend>]) -> Vec<DeviceUsage> {
        let each = devices.iter().zip(&self.0);
        each.map(|(device, held)| DeviceUsage {
            device: device.info().id.clone(),
            weights: held.weights.values().sum(),
            states: held.states.values().sum(),
            arena: held.arena.iter().sum(),
        })
        .collect()
    }
}
