//! The estimated time of a placement: the nodes on their devices, the copies between devices, and
//! the launch of each segment.

use std::collections::BTreeMap;

use kovar_core::{StorageId, StorageKind};

use super::classes::Classes;
use super::inputs::Inputs;
use super::liveness::{Liveness, writes_whole_span};
use crate::device::{DeviceId, DeviceSet, Devices};
use crate::rates::Times;

/// Where a version of a storage is made or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Unit(usize),
    Device(DeviceId),
    Host,
}

/// What crosses between devices.
#[derive(Clone, Copy, Debug)]
enum Crossing {
    /// A version of a storage, by its size in bytes.
    Bytes(usize),
    /// Program order, this many times; a segment begins each time.
    Launches(usize),
}

/// What crosses from one place to others if they are on other devices.
#[derive(Debug)]
struct Flow {
    from: End,
    to: Vec<End>,
    crossing: Crossing,
}

/// The costs from which the time of a placement is computed.
#[derive(Debug)]
pub(crate) struct Costs<'t> {
    n_devices: usize,
    times: &'t Times,
    /// By unit and device; infinite if the device does not support the unit.
    compute: Vec<f64>,
    flows: Vec<Flow>,
    /// By unit, the flows that it takes part in.
    flows_of: Vec<Vec<usize>>,
}

impl<'t> Costs<'t> {
    pub(crate) fn new(
        inputs: Inputs<'_>,
        liveness: &Liveness,
        classes: &Classes,
        times: &'t Times,
    ) -> Self {
        let (n_units, n_devices) = (classes.units().len(), inputs.devices.len());
        let mut costs = Self {
            n_devices,
            times,
            compute: vec![f64::INFINITY; n_units * n_devices],
            flows: Vec::new(),
            flows_of: vec![Vec::new(); n_units],
        };
        costs.add_compute(inputs, liveness, classes);
        costs.add_flows(inputs, liveness, classes);
        costs
    }

    /// Adds the cost of launches.
    pub(crate) fn add_launches(&mut self, liveness: &Liveness, classes: &Classes) {
        let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for position in 1..liveness.nodes().len() {
            let (before, after) = (classes.unit_at(position - 1), classes.unit_at(position));
            if before != after {
                *counts.entry((before, after)).or_default() += 1;
            }
        }
        for ((before, after), count) in counts {
            let at = self.open(End::Unit(before), Crossing::Launches(count));
            self.need(at, End::Unit(after), 0);
        }
    }

    /// Adds the time of the nodes of each unit, and of the upload of weights with other homes.
    fn add_compute(&mut self, inputs: Inputs<'_>, liveness: &Liveness, classes: &Classes) {
        let (homes, n_devices) = (inputs.homes, self.n_devices.max(1));
        let units = classes.units().iter();
        for (unit, times) in units.zip(self.compute.chunks_mut(n_devices)) {
            for device in unit.devices.iter() {
                times[device.index()] = 0.0;
            }
            for (_, node) in unit.nodes(inputs.graph, liveness) {
                for (time, (device, backend)) in times.iter_mut().zip(inputs.devices.numbered()) {
                    if time.is_finite() {
                        *time += self.times.node(device, backend, node);
                    }
                }
                for (_, input) in node.weights() {
                    let storage = node.storage_of(input);
                    let home = homes.of(storage).index();
                    let streamed = homes.is_streamed(storage);
                    let bytes = input.byte_span().len();
                    let away = DeviceId::all(n_devices)
                        .zip(times.iter_mut())
                        .filter(|(device, _)| streamed || device.index() != home);
                    away.for_each(|(device, time)| *time += self.times.copy(None, device, bytes));
                }
            }
        }
    }

    fn add_flows(&mut self, inputs: Inputs<'_>, liveness: &Liveness, classes: &Classes) {
        let graph = inputs.graph;
        // By storage, the flow of its current version.
        let mut current: Vec<Option<usize>> = vec![None; graph.storages().len()];
        for (position, _, node) in liveness.in_order(graph) {
            let unit = classes.unit_at(position);
            for input in node.inputs() {
                let kept = input.byte_span().len();
                self.read(inputs, &mut current, input.storage, unit, kept);
            }
            for value in node.writes() {
                if !writes_whole_span(node) {
                    let kept = value.byte_span().len();
                    self.read(inputs, &mut current, value.storage, unit, kept);
                }
                let (slot, from) = (&mut current[value.storage.index()], End::Unit(unit));
                if slot.is_none_or(|at| self.flows[at].from != from) {
                    *slot = Some(self.open(from, Crossing::Bytes(0)));
                }
            }
        }
        for (storage, current) in graph.storages().iter().zip(current) {
            if storage.kind == StorageKind::State
                && let Some(at) = current
            {
                let home = End::Device(inputs.homes.of(storage));
                self.need(at, home, storage.bytes);
            }
        }
    }

    /// Adds a flow and returns its index.
    fn open(&mut self, from: End, crossing: Crossing) -> usize {
        let at = self.flows.len();
        if let End::Unit(unit) = from {
            self.flows_of[unit].push(at);
        }
        let to = Vec::new();
        self.flows.push(Flow { from, to, crossing });
        at
    }

    fn read(
        &mut self,
        inputs: Inputs<'_>,
        current: &mut [Option<usize>],
        id: StorageId,
        unit: usize,
        bytes: usize,
    ) {
        let (storage, slot) = (
            &inputs.graph.storages()[id.index()],
            &mut current[id.index()],
        );
        let from = match storage.kind {
            StorageKind::Weight => return,
            StorageKind::Input => End::Host,
            StorageKind::State => End::Device(inputs.homes.of(storage)),
            // A partial write to a storage that was not written yet keeps no earlier bytes.
            StorageKind::Temp | StorageKind::Output if slot.is_none() => return,
            StorageKind::Temp | StorageKind::Output => End::Unit(unit),
        };
        let at = *slot.get_or_insert_with(|| self.open(from, Crossing::Bytes(0)));
        self.need(at, End::Unit(unit), bytes);
    }

    fn need(&mut self, at: usize, end: End, bytes: usize) {
        let flow = &mut self.flows[at];
        if flow.from == end {
            return;
        }
        if let Crossing::Bytes(most) = &mut flow.crossing {
            *most = bytes.max(*most);
        }
        if flow.to.contains(&end) {
            return;
        }
        flow.to.push(end);
        if let End::Unit(unit) = end {
            self.flows_of[unit].push(at);
        }
    }

    /// The time of a unit's own nodes on a device, in nanoseconds.
    pub(crate) fn compute(&self, unit: usize, device: DeviceId) -> f64 {
        self.compute[unit * self.n_devices + device.index()]
    }

    /// The least time to continue on another device, in nanoseconds.
    pub(crate) fn least_crossing(&self, from: DeviceId, to: DeviceId) -> f64 {
        self.times.copy(Some(from), to, 0) + self.times.launch(to)
    }

    fn flow_time(&self, flow: &Flow, devices: &[DeviceId]) -> f64 {
        let place = |end: End| match end {
            End::Unit(unit) => Some(devices[unit]),
            End::Device(device) => Some(device),
            End::Host => None,
        };
        let from = place(flow.from);
        let mut reached = DeviceSet::default();
        let mut time = 0.0;
        for to in flow.to.iter().filter_map(|&end| place(end)) {
            if Some(to) != from && !reached.contains(to) {
                reached.insert(to);
                time += match flow.crossing {
                    Crossing::Bytes(bytes) => self.times.copy(from, to, bytes),
                    Crossing::Launches(count) => count as f64 * self.times.launch(to),
                };
            }
        }
        time
    }

    /// The time that changes when a unit moves: of its nodes, and of the flows that it takes part
    /// in. `devices` are the units' devices.
    pub(crate) fn around(&self, unit: usize, devices: &[DeviceId]) -> f64 {
        let flows = self.flows_of[unit].iter().map(|&at| &self.flows[at]);
        let flows = flows.map(|flow| self.flow_time(flow, devices));
        self.compute(unit, devices[unit]) + flows.sum::<f64>()
    }

    /// The time of all units, in nanoseconds.
    pub(crate) fn total(&self, devices: &[DeviceId]) -> f64 {
        let units = devices.iter().enumerate();
        let compute: f64 = units
            .map(|(unit, &device)| self.compute(unit, device))
            .sum();
        let flows = self.flows.iter();
        compute + flows.map(|flow| self.flow_time(flow, devices)).sum::<f64>()
    }
}
