//! Which device owns each storage.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::{Backend, Support, WeightUse};
use kovar_core::{Graph, StorageId, StorageKind};

use super::candidates::{Candidates, candidates};
use super::classes::Classes;
use super::cost::Costs;
use super::error::RejectedPin;
use super::inputs::Inputs;
use super::liveness::Liveness;
use crate::device::{DeviceId, DeviceSet, Devices};
use crate::plural::plural;
use crate::rates::Times;

/// A storage from one position in [`Liveness::nodes`] until its next version begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The position of the first node that writes it.
    pub from: usize,
    /// The device that owns it.
    pub owner: DeviceId,
}

/// The owners of the storages of a graph. Nearly all storages have one owner for the whole run. If
/// no single device supports all writers of a storage, it has several versions, each with an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// By storage, in order; never empty.
    versions: Vec<Vec<Version>>,
    /// By storage, the device that has it after the run.
    homes: Vec<DeviceId>,
    /// The devices that have a weight for a part of the run only.
    streamed: HashSet<(StorageId, DeviceId)>,
    /// By unit, the devices among which the time decided.
    candidates: Vec<Candidates>,
    rejected_pins: Vec<RejectedPin>,
}

impl Placement {
    /// The device that owns a storage at a position in [`Liveness::nodes`].
    pub fn owner(&self, storage: StorageId, position: usize) -> DeviceId {
        let versions = &self.versions[storage.index()];
        let after = versions.partition_point(|version| version.from <= position);
        versions[after.saturating_sub(1)].owner
    }

    /// The device that has a storage after the run: the home of a state, the last owner of an
    /// output.
    pub fn home(&self, storage: StorageId) -> DeviceId {
        self.homes[storage.index()]
    }

    /// Whether a weight is uploaded to a device in every run.
    pub fn is_streamed(&self, weight: StorageId, device: DeviceId) -> bool {
        self.streamed.contains(&(weight, device))
    }

    /// Gives a storage another owner for the whole run.
    #[cfg(test)]
    pub(crate) fn set_owner(&mut self, storage: StorageId, owner: DeviceId) {
        self.versions[storage.index()] = vec![Version { from: 0, owner }];
    }

    /// The devices among which the time decided for a unit.
    pub(crate) fn candidates(&self, unit: usize) -> &Candidates {
        &self.candidates[unit]
    }

    /// The pins that could not be followed.
    pub fn rejected_pins(&self) -> &[RejectedPin] {
        &self.rejected_pins
    }

    /// One line for each device with what it owns after the run, and one for each storage of
    /// several versions.
    pub fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
        let mut text = format!(
            "placement: {} on {}\n",
            plural(self.homes.len(), "storage"),
            plural(devices.len(), "device")
        );
        for (id, device) in devices.numbered() {
            let owned = || {
                let storages = graph.storages().iter().zip(&self.homes);
                storages.filter(move |(_, home)| **home == id)
            };
            let bytes: usize = owned().map(|(storage, _)| storage.bytes).sum();
            let _ = writeln!(
                text,
                "  {}: {}, {}",
                device.info().id,
                plural(owned().count(), "storage"),
                plural(bytes, "byte")
            );
        }
        for (storage, versions) in graph.storages().iter().zip(&self.versions) {
            if versions.len() < 2 {
                continue;
            }
            let _ = write!(text, "  {} `{}`:", storage.kind.name(), storage.name);
            for version in versions {
                let owner = devices.name(version.owner);
                let _ = write!(text, " {owner} from {}", version.from);
            }
            text.push('\n');
        }
        for rejected in &self.rejected_pins {
            let _ = writeln!(text, "  {rejected}");
        }
        text
    }
}

/// Places the storages of a graph so that the estimated time of a run is small. A pinned storage is
/// where its pin says if that device supports its writers; others are where computing and copying
/// take the least time. Weights and states are at their homes.
pub(crate) fn place(inputs: Inputs<'_>, liveness: &Liveness, classes: &Classes) -> Placement {
    let mut rejected_pins = Vec::new();
    let units = classes.units().iter();
    let candidates: Vec<Candidates> = units
        .map(|unit| candidates(inputs, liveness, unit, &mut rejected_pins))
        .collect();
    let n_devices = inputs.devices.len();
    let chosen = if n_devices == 1 {
        vec![DeviceId::FIRST; candidates.len()]
    } else {
        let times = Times::new(&inputs.policy.rates, inputs.devices);
        let mut costs = Costs::new(inputs, liveness, classes, &times);
        // A device with a cutoff keeps the nodes before it, even if it would take less time to run
        // all nodes together on another device.
        if inputs.cutoffs.iter().all(|&cutoff| cutoff == usize::MAX) {
            costs.add_launches(liveness, classes);
        }
        choose(&costs, &candidates, n_devices)
    };
    let mut placement = owners(inputs, classes, &chosen);
    placement.streamed = streamed(inputs, liveness, &placement);
    placement.candidates = candidates;
    placement.rejected_pins = rejected_pins;
    placement
}

/// The most rounds of improvement; a round without an improvement is the last.
const ROUNDS: usize = 8;

/// The device of each unit, by local search that moves one unit at a time.
///
/// Moving one unit at a time cannot move a chain of units if moving any of them alone costs two
/// more copies. So the search starts from several placements and keeps the best result: every unit
/// where it computes fastest; for each device, all units there; and each unit with the one before
/// it unless computing elsewhere saves more than the latency of a copy.
fn choose(costs: &Costs<'_>, candidates: &[Candidates], n_devices: usize) -> Vec<DeviceId> {
    let fastest = |unit: usize, set: DeviceSet| {
        let by_time = |a: &DeviceId, b: &DeviceId| {
            let (a, b) = (costs.compute(unit, *a), costs.compute(unit, *b));
            a.total_cmp(&b)
        };
        set.iter().min_by(by_time).unwrap_or(DeviceId::FIRST)
    };
    let units = || candidates.iter().map(|unit| unit.devices).enumerate();
    let on_one = |device: Option<DeviceId>| -> Vec<DeviceId> {
        let at = |(unit, set): (usize, DeviceSet)| match device {
            Some(device) if set.contains(device) => device,
            _ => fastest(unit, set),
        };
        units().map(at).collect()
    };
    let mut last = DeviceId::FIRST;
    let followed = units().map(|(unit, set)| {
        let best = fastest(unit, set);
        let saved = costs.compute(unit, last) - costs.compute(unit, best);
        if !set.contains(last) || saved > costs.least_crossing(last, best) {
            last = best;
        }
        last
    });
    let followed: Vec<DeviceId> = followed.collect();
    let starts = std::iter::once(None).chain(DeviceId::all(n_devices).map(Some));
    let mut best: Option<(f64, Vec<DeviceId>)> = None;
    for mut devices in starts.map(on_one).chain([followed]) {
        improve(costs, candidates, &mut devices);
        let total = costs.total(&devices);
        if best.as_ref().is_none_or(|(least, _)| total < *least) {
            best = Some((total, devices));
        }
    }
    best.map_or_else(Vec::new, |(_, devices)| devices)
}

/// Moves units one by one to devices where they take less time, until no move helps.
fn improve(costs: &Costs<'_>, candidates: &[Candidates], devices: &mut [DeviceId]) {
    for _ in 0..ROUNDS {
        let mut moved = false;
        for (unit, allowed) in candidates.iter().enumerate() {
            let before = devices[unit];
            let (mut best, mut least) = (before, costs.around(unit, devices));
            for device in allowed.devices.iter().filter(|&device| device != before) {
                devices[unit] = device;
                let time = costs.around(unit, devices);
                if time < least {
                    (best, least) = (device, time);
                }
            }
            devices[unit] = best;
            moved |= best != before;
        }
        if !moved {
            return;
        }
    }
}

fn owners(inputs: Inputs<'_>, classes: &Classes, chosen: &[DeviceId]) -> Placement {
    let graph = inputs.graph;
    let mut of_class: Vec<Vec<Version>> = vec![Vec::new(); graph.storages().len()];
    for (unit, &owner) in classes.units().iter().zip(chosen) {
        let versions = &mut of_class[unit.class];
        if versions.last().is_none_or(|version| version.owner != owner) {
            let from = unit.positions.first().copied().unwrap_or_default();
            versions.push(Version { from, owner });
        }
    }
    let mut placement = Placement::default();
    for (id, storage) in graph.storage_ids().zip(graph.storages()) {
        let class = classes.of(id).and_then(|class| of_class.get(class));
        let mut versions = class.cloned().unwrap_or_default();
        let fixed = matches!(storage.kind, StorageKind::Weight | StorageKind::State);
        let home = match versions.last() {
            Some(last) if !fixed => last.owner,
            _ => inputs.homes.of(storage),
        };
        if versions.is_empty() {
            versions.push(Version {
                from: 0,
                owner: home,
            });
        }
        placement.versions.push(versions);
        placement.homes.push(home);
    }
    placement
}

/// Weights of fewer bytes are kept on every device that reads them.
const RESIDENT_BYTES: usize = 1 << 20;

/// The weights that are uploaded in every run, with the devices: those that the user streams, and
/// large ones that another device reads although their home supports all nodes that read them.
fn streamed(
    inputs: Inputs<'_>,
    liveness: &Liveness,
    placement: &Placement,
) -> HashSet<(StorageId, DeviceId)> {
    let (graph, homes, devices) = (inputs.graph, inputs.homes, inputs.devices);
    let mut uses: HashMap<(StorageId, DeviceId), Vec<WeightUse<'_>>> = HashMap::new();
    for (position, _, node) in liveness.in_order(graph) {
        let device = placement.owner(node.output().storage, position);
        for (operand, value) in node.weights() {
            let storage = node.storage_of(value);
            let away = storage.bytes >= RESIDENT_BYTES && homes.of(storage) != device;
            if away || homes.is_streamed(storage) {
                let uses = uses.entry((value.storage, device)).or_default();
                uses.push(WeightUse { node, operand });
            }
        }
    }
    uses.retain(|&(id, device), uses| {
        let storage = &graph.storages()[id.index()];
        let home = devices.at(homes.of(storage));
        let mut nodes = uses.iter().map(|weight_use| weight_use.node);
        let by_choice = nodes.all(|node| home.supports(node) == Support::Yes);
        (homes.is_streamed(storage) || by_choice) && devices.at(device).streams(storage, uses)
    });
    uses.into_keys().collect()
}
