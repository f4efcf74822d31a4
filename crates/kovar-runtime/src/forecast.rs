//! What a plan asks of its devices, known before anything is made.

use kovar_core::backend::Backend;
use kovar_core::{Graph, Storage, StorageKind};

use crate::compile::Passes;
use crate::device::DeviceId;
use crate::explain::NodeReport;
use crate::pins::LostPin;
use crate::segment::Schedule;
use crate::session::{DeviceUse, Shared};
use crate::weights::{WeightUses, weight_uses};

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
    /// What the arena cannot go below, in bytes: the most that is needed at one time.
    pub arena_lower_bound: usize,
    /// What the device's queue holds for writes under way, in bytes.
    pub upload_ring: usize,
    /// What the device's queue holds for reads under way, in bytes.
    pub readback: usize,
    /// Outputs that the device has at the end of a run, for the host to read, in bytes.
    pub outputs: usize,
    /// What the programs hold for themselves, in bytes; before they are compiled, what the device
    /// estimates.
    pub programs: usize,
}

/// A plan before anything is made.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Device memory, by device.
    pub memory: Vec<PlanMemory>,
    /// Where each node runs and why, in program order.
    pub nodes: Vec<NodeReport>,
    /// The segments and the copies between them.
    pub schedule: Schedule,
    /// The pins that could not be followed.
    pub lost_pins: Vec<LostPin>,
    /// Whether nodes are elsewhere than they would be, because a device is over its budget.
    pub is_crowded: bool,
    /// What the session holds once this plan and those that were forecast before it are made, by
    /// device, but for what programs hold for themselves.
    pub held: Vec<DeviceUse>,
}

/// A session that would ask for more than a device's budget.
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
    /// What its queue holds for writes and reads under way, in bytes.
    pub staging: u64,
    /// The budget, in bytes.
    pub budget: u64,
}

/// The memory of a plan, by device.
pub(crate) fn memory(shared: &Shared, graph: &Graph, passes: &Passes) -> Vec<PlanMemory> {
    let weights = shared.weights();
    let uses = weight_uses(graph, passes);
    let each = DeviceId::all(shared.devices.len()).zip(&shared.devices);
    each.zip(passes.memory.arenas())
        .map(|((device, backend), arena)| {
            let weights = on(&uses, device)
                .map(|weight| weights.bytes_of(weight, backend.as_ref()))
                .sum();
            let states = states(graph, passes, device).map(|(_, bytes)| bytes).sum();
            // Nothing goes to and from a device that holds nothing.
            let used = weights + states + arena.bytes() > 0;
            PlanMemory {
                device: backend.info().id.clone(),
                weights,
                states,
                arena: arena.bytes(),
                arena_lower_bound: arena.lower_bound,
                upload_ring: if used { backend.upload_ring_bytes() } else { 0 },
                readback: if used { backend.readback_bytes() } else { 0 },
                outputs: kept(graph, passes, StorageKind::Output, device)
                    .map(|storage| storage.bytes)
                    .sum(),
                programs: scratch(graph, passes, device, backend.as_ref()),
            }
        })
        .collect()
}

impl OverBudget {
    /// All that the device would hold, in bytes.
    pub fn total(&self) -> u64 {
        let held = [self.weights, self.states, self.arena, self.staging];
        held.into_iter().fold(0, u64::saturating_add)
    }
}

/// What a device estimates that its programs take for themselves.
fn scratch(graph: &Graph, passes: &Passes, device: DeviceId, backend: &dyn Backend) -> usize {
    let segments = passes.schedule.segments.iter();
    let nodes = segments.filter(|segment| segment.device == device);
    let nodes = nodes.flat_map(|segment| &segment.nodes);
    let nodes = nodes.filter_map(|&id| graph.node(id));
    nodes
        .map(|node| backend.scratch_bytes(node))
        .max()
        .unwrap_or(0)
}

fn on<'u, 'g>(
    uses: &'u [WeightUses<'g>],
    device: DeviceId,
) -> impl Iterator<Item = &'u WeightUses<'g>> {
    uses.iter().filter(move |weight| weight.device == device)
}

/// Memory that a device's queue holds for itself, in bytes.
pub(crate) fn staging(backend: &dyn Backend) -> u64 {
    (backend.upload_ring_bytes() as u64).saturating_add(backend.readback_bytes() as u64)
}

/// The states that have their home on a device, with the bytes that are asked for.
pub(crate) fn states<'g>(
    graph: &'g Graph,
    passes: &Passes,
    device: DeviceId,
) -> impl Iterator<Item = (&'g str, usize)> {
    kept(graph, passes, StorageKind::State, device)
        .map(|storage| (storage.name.as_str(), storage.bytes.max(1)))
}

/// The storages of a kind that are on a device after a run.
fn kept<'g>(
    graph: &'g Graph,
    passes: &Passes,
    kind: StorageKind,
    device: DeviceId,
) -> impl Iterator<Item = &'g Storage> {
    let storages = graph.storage_ids().zip(graph.storages());
    storages
        .filter(move |(id, storage)| {
            storage.kind == kind && passes.placement.home(*id) == Some(device)
        })
        .map(|(_, storage)| storage)
}
