//! Sessions on simulated devices, and what their runs leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use kovar_core::backend::{Backend, Reason, Support};
use kovar_core::{DType, Graph, HostBytes, NodeRef, Storage, StorageKind, ValueId};
use kovar_runtime::{CompileError, DeviceId, Homes, HostSlice, Plan, Policy, Session, compile};
use kovar_testkit::simulated::{SimulatedDevice, SimulatedOptions};

/// What is to be read after a run, by name.
pub type Results = BTreeMap<String, Vec<u8>>;

pub fn device(n: usize) -> DeviceId {
    DeviceId::all(n + 1).last().unwrap()
}

/// A device of the given id that supports what `supports` says.
pub fn simulated(
    id: &str,
    supports: impl Fn(NodeRef<'_>) -> bool + Send + Sync + 'static,
) -> SimulatedOptions {
    SimulatedOptions {
        id: id.to_owned(),
        supports: Some(Arc::new(move |node| match supports(node) {
            true => Support::Yes,
            false => Support::No(Reason::Op {
                op: node.op().name(),
            }),
        })),
        ..SimulatedOptions::default()
    }
}

/// A device that supports all but some operations.
pub fn without(id: &str, ops: &'static [&'static str]) -> SimulatedOptions {
    simulated(id, move |node| !ops.contains(&node.op().name()))
}

/// A device that supports only some operations.
pub fn only(id: &str, ops: &'static [&'static str]) -> SimulatedOptions {
    simulated(id, move |node| ops.contains(&node.op().name()))
}

/// A session with its devices and the weights of the graphs that it is made for.
pub struct World {
    pub devices: Vec<Arc<SimulatedDevice>>,
    pub session: Session,
}

impl World {
    pub fn new(graph: &Graph, devices: Vec<SimulatedOptions>, homes: Homes) -> Self {
        let devices: Vec<_> = devices
            .into_iter()
            .map(|options| Arc::new(SimulatedDevice::new(options)))
            .collect();
        let backends = devices
            .iter()
            .map(|device| device.clone() as Arc<dyn Backend>);
        let session = Session::with_homes(backends.collect(), homes).unwrap();
        for storage in graph.storages() {
            if storage.kind == StorageKind::Weight {
                let bytes = HostBytes::new(Arc::new(data(storage, 7)));
                let (name, dims) = (&storage.name, &storage.dims);
                session
                    .add_weight(name, storage.dtype, dims, bytes)
                    .unwrap();
            }
        }
        Self { devices, session }
    }

    pub fn compile(&self, graph: &Graph) -> Result<Plan, CompileError> {
        let mut policy = Policy::default();
        policy.check_plan = true;
        compile(graph, &self.session, &policy)
    }

    /// Runs a plan with the inputs of a seed, and waits for nothing.
    pub fn begin(&self, plan: &Plan, seed: u32) {
        let inputs = inputs(plan, seed);
        drop(plan.run(&slices(&inputs), &scalars(plan, seed)).unwrap());
    }

    /// Runs a plan with the inputs of a seed.
    pub fn run(&self, plan: &Plan, seed: u32) -> Results {
        let inputs = inputs(plan, seed);
        let inputs = slices(&inputs);
        let outputs = plan.run(&inputs, &scalars(plan, seed)).unwrap();
        let mut results = Results::new();
        for storage in plan.graph().storages() {
            if storage.kind == StorageKind::Output {
                let mut bytes = vec![0; storage.bytes];
                let value = plan.output(&storage.name).unwrap();
                outputs.read(value, &mut bytes).unwrap();
                results.insert(storage.name.clone(), bytes);
            }
        }
        outputs.wait().unwrap();
        drop(outputs);
        for state in self.session.states() {
            let mut bytes = vec![0; state.bytes];
            self.session.read_state(&state.name, &mut bytes).unwrap();
            results.insert(state.name, bytes);
        }
        results
    }
}

/// The inputs of a seed.
fn inputs(plan: &Plan, seed: u32) -> Vec<(ValueId, Vec<u8>)> {
    let storages = plan.graph().storages().iter();
    let inputs = storages.filter(|storage| storage.kind == StorageKind::Input);
    inputs
        .map(|storage| (plan.input(&storage.name).unwrap(), data(storage, seed)))
        .collect()
}

fn slices(inputs: &[(ValueId, Vec<u8>)]) -> Vec<(ValueId, HostSlice<'_>)> {
    let inputs = inputs.iter();
    inputs
        .map(|(value, bytes)| (*value, HostSlice::raw(bytes)))
        .collect()
}

/// The run-time scalars of a seed: the greatest, or less.
pub fn scalars(plan: &Plan, seed: u32) -> Vec<i32> {
    let scalars = plan.graph().scalars().iter();
    let less = |max: i32| (seed as i32 - 1) % (max + 1);
    scalars.map(|s| s.max - less(s.max)).collect()
}

/// Small whole numbers, or row numbers where indices are wanted.
pub fn data(storage: &Storage, seed: u32) -> Vec<u8> {
    let mut random = seed.wrapping_mul(2_654_435_761).wrapping_add(
        storage.name.bytes().fold(1, |hash, byte| {
            u32::wrapping_mul(hash, 31).wrapping_add(byte.into())
        }),
    );
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 16
    };
    let elements: usize = storage.dims.iter().product();
    let bytes: Vec<[u8; 4]> = match storage.dtype {
        DType::I32 => {
            let rows = |_| ((next() % 5) as i32 - 1).to_le_bytes();
            (0..elements).map(rows).collect()
        }
        DType::F32 => {
            let small = |_| ((next() % 9) as f32 - 4.0).to_le_bytes();
            (0..elements).map(small).collect()
        }
        other => panic!("no data of {other}"),
    };
    bytes.concat()
}

/// Runs a graph twice on one device that supports all operations.
pub fn reference(graph: &Graph) -> [Results; 2] {
    let world = World::new(
        graph,
        vec![SimulatedOptions::default()],
        Homes::all_on(DeviceId::FIRST),
    );
    let plan = world.compile(graph).unwrap();
    [world.run(&plan, 1), world.run(&plan, 2)]
}

/// Runs a graph twice on several devices and compares the results with those of one device.
/// Returns the plan.
pub fn agrees(graph: &Graph, devices: Vec<SimulatedOptions>, homes: Homes) -> Plan {
    let world = World::new(graph, devices, homes);
    let plan = world.compile(graph).unwrap();
    let found = [world.run(&plan, 1), world.run(&plan, 2)];
    assert_eq!(found, reference(graph), "{}", plan.describe());
    plan
}
