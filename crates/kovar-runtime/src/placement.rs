//! Which device owns each storage.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use kovar_core::backend::{Backend, Support, WeightUse};
use kovar_core::{Graph, StorageId, StorageKind};

use crate::alias::{Classes, classify};
use crate::cost::Costs;
use crate::device::{DeviceId, DeviceSet};
use crate::error::CompileError;
use crate::favour::{Favour, Thresholds, favoured};
use crate::homes::Homes;
use crate::liveness::Liveness;
use crate::pins::{LostPin, pinned};
use crate::plural::plural;
use crate::rates::{FIXED_RATES, Rates, Times};

/// A storage from one position in [`Liveness::nodes`] on, until its next version begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The position of the first node that writes it.
    pub from: usize,
    /// The device that owns it.
    pub owner: DeviceId,
}

/// The owners of the storages of a graph. Nearly all storages have one for the whole run; one
/// whose writers no single device supports changes owners, a version for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// By storage, in order; never empty.
    versions: Vec<Vec<Version>>,
    /// By storage, where it is to be after the run.
    homes: Vec<DeviceId>,
    /// The devices on which a weight is for a part of the run only.
    streamed: HashSet<(StorageId, DeviceId)>,
    lost_pins: Vec<LostPin>,
}

impl Placement {
    /// A placement from the owners of all storages, by id.
    pub fn new(owners: Vec<DeviceId>) -> Self {
        let version = |&owner| vec![Version { from: 0, owner }];
        Self {
            versions: owners.iter().map(version).collect(),
            homes: owners,
            streamed: HashSet::new(),
            lost_pins: Vec::new(),
        }
    }

    /// The device that owns a storage at a position in [`Liveness::nodes`]; `None` for an id of
    /// another graph.
    pub fn owner(&self, storage: StorageId, position: usize) -> Option<DeviceId> {
        let versions = self.versions.get(storage.index())?;
        let after = versions.partition_point(|version| version.from <= position);
        let version = versions.get(after.saturating_sub(1));
        version.map(|version| version.owner)
    }

    /// The versions of a storage.
    pub fn versions(&self, storage: StorageId) -> &[Version] {
        let versions = self.versions.get(storage.index());
        versions.map_or(&[], Vec::as_slice)
    }

    /// Where a storage is after the run: a state at its home, an output with its last owner.
    pub fn home(&self, storage: StorageId) -> Option<DeviceId> {
        self.homes.get(storage.index()).copied()
    }

    /// Whether a weight crosses to a device in every run.
    pub fn is_streamed(&self, weight: StorageId, device: DeviceId) -> bool {
        self.streamed.contains(&(weight, device))
    }

    /// The pins that could not be followed.
    pub fn lost_pins(&self) -> &[LostPin] {
        &self.lost_pins
    }

    /// One line for each device with what it owns after the run, and one for each storage of
    /// several versions.
    pub fn dump(&self, graph: &Graph, devices: &[Arc<dyn Backend>]) -> String {
        let mut text = format!(
            "placement: {} on {}\n",
            plural(self.homes.len(), "storage"),
            plural(devices.len(), "device")
        );
        for (i, device) in devices.iter().enumerate() {
            let owned = || {
                let storages = graph.storages().iter().zip(&self.homes);
                storages.filter(move |(_, home)| home.index() == i)
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
                let owner = devices.get(version.owner.index());
                let owner = owner.map_or("?", |owner| owner.info().id.as_str());
                let _ = write!(text, " {owner} from {}", version.from);
            }
            text.push('\n');
        }
        for lost in &self.lost_pins {
            let _ = writeln!(text, "  {lost}");
        }
        text
    }
}

/// What decides between the devices that could own a storage.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'h> {
    /// Where weights and states are, and the user's pins.
    pub homes: &'h Homes,
    /// How fast the devices and the links to them are.
    pub rates: &'h Rates,
    /// Which kind of device is preferred where no pin decides.
    pub favour: Favour,
    /// What does not leave the CPU.
    pub thresholds: Thresholds,
    /// By device, the position in [`Liveness::nodes`] from which on it gets only what is pinned
    /// there and what no other device can run. Devices beyond the end have no limit.
    pub limits: &'h [usize],
}

impl<'h> Rules<'h> {
    /// The estimated time alone decides.
    pub fn new(homes: &'h Homes) -> Self {
        Self {
            homes,
            rates: &FIXED_RATES,
            favour: Favour::default(),
            thresholds: Thresholds::default(),
            limits: &[],
        }
    }

    /// The devices whose limit is at or before a position.
    fn avoided(&self, position: usize) -> DeviceSet {
        let mut avoided = DeviceSet::default();
        let limits = DeviceId::all(self.limits.len()).zip(self.limits);
        limits
            .filter(|(_, limit)| **limit <= position)
            .for_each(|(device, _)| avoided.insert(device));
        avoided
    }
}

/// Places the storages of `graph` so that the estimated time of a run is small: where their pins
/// want them if that is possible, else where computing and copying take least. Weights and states
/// are at their homes.
///
/// # Errors
/// [`CompileError::Unsupported`] for the first needed node that no device supports, with the
/// reasons of all devices.
pub fn place(
    graph: &Graph,
    liveness: &Liveness,
    devices: &[Arc<dyn Backend>],
    rules: &Rules<'_>,
) -> Result<Placement, CompileError> {
    let homes = rules.homes;
    let classes = classify(graph, liveness, devices)?;
    let mut lost_pins = Vec::new();
    let units = classes.units().iter();
    let candidates: Vec<DeviceSet> = units
        .map(|unit| {
            let pin = pinned(graph, liveness, devices, homes, unit, &mut lost_pins);
            if let Some(device) = pin {
                return DeviceSet::only(device);
            }
            let set = favoured(graph, liveness, devices, unit, rules);
            let first = unit.positions.first().copied().unwrap_or_default();
            let avoided = rules.avoided(first);
            let kept = [set, unit.devices].map(|set| set.without(avoided));
            kept.into_iter().find(|set| !set.is_empty()).unwrap_or(set)
        })
        .collect();
    let chosen = if devices.len() == 1 {
        vec![DeviceId::FIRST; candidates.len()]
    } else {
        let times = Times::new(rules.rates, devices);
        let mut costs = Costs::new(graph, liveness, devices, &classes, homes, &times);
        // Under a limit a device is to keep what fits, even where all would be better together on
        // another.
        if rules.limits.iter().all(|&limit| limit == usize::MAX) {
            costs.add_seams(liveness, &classes);
        }
        choose(&costs, &candidates, devices.len())
    };
    let mut placement = owners(graph, &classes, &chosen, homes, lost_pins);
    placement.streamed = streamed(graph, liveness, devices, homes, &placement);
    Ok(placement)
}

/// Rounds of improvement; a round that finds nothing ends them.
const ROUNDS: usize = 8;

/// The device of each unit. Moving one unit at a time finds no better place for a chain of which
/// every part pays for two copies when it moves alone, so the search starts from all units on one
/// device, for each device, from each unit where it computes fastest, and from each where the one
/// before it is unless computing elsewhere saves a copy's latency; the best result counts.
fn choose(costs: &Costs<'_>, candidates: &[DeviceSet], n_devices: usize) -> Vec<DeviceId> {
    let fastest = |unit: usize, set: DeviceSet| {
        let by_time = |a: &DeviceId, b: &DeviceId| {
            let (a, b) = (costs.compute(unit, *a), costs.compute(unit, *b));
            a.total_cmp(&b)
        };
        set.iter().min_by(by_time).unwrap_or(DeviceId::FIRST)
    };
    let units = || candidates.iter().copied().enumerate();
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
        if !set.contains(last) || saved > costs.crossing(last, best) {
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

/// Moves units one by one to where they cost less, until none does.
fn improve(costs: &Costs<'_>, candidates: &[DeviceSet], devices: &mut [DeviceId]) {
    for _ in 0..ROUNDS {
        let mut moved = false;
        for (unit, set) in candidates.iter().enumerate() {
            let Some(&before) = devices.get(unit) else {
                continue;
            };
            let (mut best, mut least) = (before, costs.around(unit, devices));
            for device in set.iter().filter(|&device| device != before) {
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

fn owners(
    graph: &Graph,
    classes: &Classes,
    chosen: &[DeviceId],
    homes: &Homes,
    lost_pins: Vec<LostPin>,
) -> Placement {
    let mut of_class: Vec<Vec<Version>> = vec![Vec::new(); graph.storages().len()];
    for (unit, &owner) in classes.units().iter().zip(chosen) {
        let Some(versions) = of_class.get_mut(unit.class) else {
            continue;
        };
        if versions.last().is_none_or(|version| version.owner != owner) {
            let from = unit.positions.first().copied().unwrap_or_default();
            versions.push(Version { from, owner });
        }
    }
    let mut placement = Placement {
        versions: Vec::with_capacity(of_class.len()),
        homes: Vec::with_capacity(of_class.len()),
        streamed: HashSet::new(),
        lost_pins,
    };
    for (id, storage) in graph.storage_ids().zip(graph.storages()) {
        let class = classes.of(id).and_then(|class| of_class.get(class));
        let mut versions = class.cloned().unwrap_or_default();
        let fixed = matches!(storage.kind, StorageKind::Weight | StorageKind::State);
        let home = match versions.last() {
            Some(last) if !fixed => last.owner,
            _ => homes.of(storage),
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

/// Weights below this many bytes stay on every device that reads them.
const RESIDENT_BYTES: usize = 1 << 20;

/// Which weights cross to which devices in every run: those that the user streams, and large ones
/// that are read away from a home which could have read them.
fn streamed(
    graph: &Graph,
    liveness: &Liveness,
    devices: &[Arc<dyn Backend>],
    homes: &Homes,
    placement: &Placement,
) -> HashSet<(StorageId, DeviceId)> {
    let mut uses: HashMap<(StorageId, DeviceId), Vec<WeightUse<'_>>> = HashMap::new();
    for (position, &id) in liveness.nodes().iter().enumerate() {
        let Some(node) = graph.node(id) else { continue };
        let Some(device) = placement.owner(node.output().storage, position) else {
            continue;
        };
        for (operand, value) in node.inputs().enumerate() {
            let storage = node.storage_of(value);
            let away = storage.bytes >= RESIDENT_BYTES && homes.of(storage) != device;
            if storage.kind == StorageKind::Weight && (away || homes.is_streamed(storage)) {
                let uses = uses.entry((value.storage, device)).or_default();
                uses.push(WeightUse { node, operand });
            }
        }
    }
    uses.retain(|&(id, device), uses| {
        let (Some(storage), Some(backend)) = (
            graph.storages().get(id.index()),
            devices.get(device.index()),
        ) else {
            return false;
        };
        let home = devices.get(homes.of(storage).index());
        let by_choice = home.is_some_and(|home| {
            uses.iter()
                .all(|weight_use| home.supports(weight_use.node) == Support::Yes)
        });
        (homes.is_streamed(storage) || by_choice) && backend.streams(storage, uses)
    });
    uses.into_keys().collect()
}
