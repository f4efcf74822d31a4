//! The estimated time of a placement: the nodes on their devices, the copies between devices, and
//! the launch of each segment.

use std::collections::HashMap;

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

/// A version of a storage: where it is made, and where it is read.
#[derive(Debug)]
struct Flow {
    from: End,
    to: Vec<End>,
    bytes: usize,
}

/// Two units with consecutive nodes in program order. If they are on different devices, a segment
/// begins there.
#[derive(Debug)]
struct Boundary {
    units: [usize; 2],
    count: usize,
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
    boundaries: Vec<Boundary>,
    /// By unit, the boundaries that it is at.
    boundaries_of: Vec<Vec<usize>>,
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
            boundaries: Vec::new(),
            boundaries_of: vec![Vec::new(); n_units],
        };
        costs.add_compute(inputs, liveness, classes);
        costs.add_flows(inputs, liveness, classes);
        costs
    }

    /// Adds the cost of launches.
    pub(crate) fn add_boundaries(&mut self, liveness: &Liveness, classes: &Classes) {
        let mut known: HashMap<[usize; 2], usize> = HashMap::new();
        let units = (0..liveness.nodes().len()).filter_map(|position| classes.unit_at(position));
        let units: Vec<usize> = units.collect();
        for pair in units.windows(2) {
            let &[before, after] = pair else { continue };
            if before == after {
                continue;
            }
            let units = [before, after];
            let at = *known.entry(units).or_insert_with(|| {
                let at = self.boundaries.len();
                self.boundaries.push(Boundary { units, count: 0 });
                for unit in units {
                    if let Some(boundaries) = self.boundaries_of.get_mut(unit) {
                        boundaries.push(at);
                    }
                }
                at
            });
            if let Some(boundary) = self.boundaries.get_mut(at) {
                boundary.count += 1;
            }
        }
    }

    /// Adds the time of the nodes of each unit, and of the upload of weights with other homes.
    fn add_compute(&mut self, inputs: Inputs<'_>, liveness: &Liveness, classes: &Classes) {
        let (homes, n_devices) = (inputs.homes, self.n_devices.max(1));
        for (unit, times) in classes
            .units()
            .iter()
            .zip(self.compute.chunks_mut(n_devices))
        {
            for device in unit.devices.iter() {
                if let Some(time) = times.get_mut(device.index()) {
                    *time = 0.0;
                }
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
            let Some(unit) = classes.unit_at(position) else {
                continue;
            };
            for input in node.inputs() {
                let kept = input.byte_span().len();
                self.read(inputs, &mut current, input.storage, unit, kept);
            }
            for value in node.writes() {
                if !writes_whole_span(node) {
                    let kept = value.byte_span().len();
                    self.read(inputs, &mut current, value.storage, unit, kept);
                }
                let Some(slot) = current.get_mut(value.storage.index()) else {
                    continue;
                };
                let from = End::Unit(unit);
                let flow = slot.and_then(|at| self.flows.get(at));
                if flow.is_none_or(|flow| flow.from != from) {
                    *slot = Some(self.open(from));
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
    fn open(&mut self, from: End) -> usize {
        if let End::Unit(unit) = from
            && let Some(flows) = self.flows_of.get_mut(unit)
        {
            flows.push(self.flows.len());
        }
        self.flows.push(Flow {
            from,
            to: Vec::new(),
            bytes: 0,
        });
        self.flows.len() - 1
    }

    fn read(
        &mut self,
        inputs: Inputs<'_>,
        current: &mut [Option<usize>],
        id: StorageId,
        unit: usize,
        bytes: usize,
    ) {
        let storage = inputs.graph.storage(id);
        let Some((storage, slot)) = storage.zip(current.get_mut(id.index())) else {
            return;
        };
        let from = match storage.kind {
            StorageKind::Weight => return,
            StorageKind::Input => End::Host,
            StorageKind::State => End::Device(inputs.homes.of(storage)),
            // A partial write to a storage that was not written yet keeps no earlier bytes.
            StorageKind::Temp | StorageKind::Output if slot.is_none() => return,
            StorageKind::Temp | StorageKind::Output => End::Unit(unit),
        };
        let at = *slot.get_or_insert_with(|| self.open(from));
        self.need(at, End::Unit(unit), bytes);
    }

    fn need(&mut self, at: usize, end: End, bytes: usize) {
        let Some(flow) = self.flows.get_mut(at) else {
            return;
        };
        if flow.from == end {
            return;
        }
        flow.bytes = flow.bytes.max(bytes);
        if flow.to.contains(&end) {
            return;
        }
        flow.to.push(end);
        if let End::Unit(unit) = end
            && let Some(flows) = self.flows_of.get_mut(unit)
        {
            flows.push(at);
        }
    }

    /// The time of a unit's own nodes on a device, in nanoseconds.
    pub(crate) fn compute(&self, unit: usize, device: DeviceId) -> f64 {
        let time = self.compute.get(unit * self.n_devices + device.index());
        time.copied().unwrap_or(f64::INFINITY)
    }

    /// The least time to continue on another device, in nanoseconds.
    pub(crate) fn crossing(&self, from: DeviceId, to: DeviceId) -> f64 {
        self.times.copy(Some(from), to, 0) + self.times.launch(to)
    }

    fn boundary_time(&self, boundary: &Boundary, devices: &[DeviceId]) -> f64 {
        let [before, after] = boundary.units.map(|unit| devices.get(unit).copied());
        let launched = after.filter(|_| before != after);
        launched.map_or(0.0, |device| {
            boundary.count as f64 * self.times.launch(device)
        })
    }

    fn flow_time(&self, flow: &Flow, devices: &[DeviceId]) -> f64 {
        let place = |end: End| match end {
            End::Unit(unit) => devices.get(unit).copied(),
            End::Device(device) => Some(device),
            End::Host => None,
        };
        let from = place(flow.from);
        let mut reached = DeviceSet::default();
        let mut time = 0.0;
        for to in flow.to.iter().filter_map(|&end| place(end)) {
            if Some(to) != from && !reached.contains(to) {
                reached.insert(to);
                time += self.times.copy(from, to, flow.bytes);
            }
        }
        time
    }

    /// The time that changes when a unit moves: its nodes, its copies and the launches at its
    /// boundaries. `devices` are the units' devices.
    pub(crate) fn around(&self, unit: usize, devices: &[DeviceId]) -> f64 {
        let own = devices.get(unit).map_or(0.0, |&d| self.compute(unit, d));
        let flows = self.flows_of.get(unit).into_iter().flatten();
        let flows = flows.filter_map(|&at| self.flows.get(at));
        let flows = flows.map(|flow| self.flow_time(flow, devices));
        let boundaries = self.boundaries_of.get(unit).into_iter().flatten();
        let boundaries = boundaries.filter_map(|&at| self.boundaries.get(at));
        let boundaries = boundaries.map(|boundary| self.boundary_time(boundary, devices));
        own + flows.sum::<f64>() + boundaries.sum::<f64>()
    }

    /// The time of all units, in nanoseconds.
    pub(crate) fn total(&self, devices: &[DeviceId]) -> f64 {
        let units = devices.iter().enumerate();
        let compute: f64 = units.map(|(unit, &d)| self.compute(unit, d)).sum();
        let flows = self.flows.iter();
        let flows = flows.map(|flow| self.flow_time(flow, devices));
        let boundaries = self.boundaries.iter();
        let boundaries = boundaries.map(|boundary| self.boundary_time(boundary, devices));
        compute + flows.sum::<f64>() + boundaries.sum::<f64>()
    }
}
