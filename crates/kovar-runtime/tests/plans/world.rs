//! Sessions on simulated devices, and the results of their runs.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::ops::{Binary, BinaryKind, Op};
use kovar_core::{DType, Graph, HostBytes, Storage, StorageKind, ValueId};
use kovar_runtime::{
    CompileError, DeviceId, Homes, HostSlice, Plan, Policy, Session, SessionError, compile,
};
use kovar_testkit::simulated::{SimulatedDevice, SimulatedOptions};

/// The outputs and states after a run, by name.
pub type Results = BTreeMap<String, Vec<u8>>;

pub fn device(n: usize) -> DeviceId {
    DeviceId::all(n + 1).last().unwrap()
}

/// A device that supports all but some operations.
pub fn without(id: &str, ops: &'static [&'static str]) -> SimulatedOptions {
    SimulatedOptions::new(id).without(ops)
}

/// A device that supports only some operations.
pub fn only(id: &str, ops: &'static [&'static str]) -> SimulatedOptions {
    SimulatedOptions::new(id).only(ops)
}

/// A graph with inputs `a` and `b` of `n` floats.
pub fn two_inputs(n: usize) -> (Graph, ValueId, ValueId) {
    let mut graph = Graph::new();
    let [a, b] = ["a", "b"].map(|name| graph.input(name, DType::F32, &[n]).unwrap());
    (graph, a, b)
}

/// Adds `y` to `x` in place.
pub fn add_to(graph: &mut Graph, x: ValueId, y: ValueId) {
    let kind = BinaryKind::Add;
    graph
        .apply_in_place(Op::from(Binary { kind }), &[x, y])
        .unwrap();
}

/// A `wkv7` node over inputs that updates `state`, of one head of four elements.
pub fn recurrence(graph: &mut Graph, state: ValueId, tag: &str) -> ValueId {
    let rwkvab = ["r", "w", "k", "v", "a", "b"].map(|name| {
        let name = format!("{name}{tag}");
        graph.input(&name, DType::F32, &[2, 1, 4]).unwrap()
    });
    graph.wkv7(rwkvab, state, None).unwrap()
}

pub fn bytes(values: &[f32]) -> Vec<u8> {
    let values = values.iter();
    values.flat_map(|value| value.to_le_bytes()).collect()
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    let elements = bytes.chunks_exact(4);
    elements
        .map(|element| f32::from_le_bytes(element.try_into().unwrap()))
        .collect()
}

/// What a plan's description says of one pass.
pub fn section(plan: &Plan, pass: &str) -> String {
    let description = plan.describe();
    let mut lines = description.lines();
    let first = lines.find(|line| line.starts_with(&format!("{pass}:")));
    let rest = lines.take_while(|line| line.starts_with(' '));
    first
        .into_iter()
        .chain(rest)
        .flat_map(|line| [line, "\n"])
        .collect()
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

    /// Runs a plan with the inputs of a seed without waiting for it.
    pub fn begin(&self, plan: &Plan, seed: u32) {
        let inputs = inputs(plan, seed);
        drop(plan.run(&slices(&inputs), &scalars(plan, seed)).unwrap());
    }

    /// Runs a plan with the inputs of a seed.
    pub fn run(&self, plan: &Plan, seed: u32) -> Results {
        self.try_run(plan, seed).unwrap()
    }

    /// What a run with the inputs of a seed leaves, or its error.
    pub fn try_run(&self, plan: &Plan, seed: u32) -> Result<Results, Box<dyn Error>> {
        let inputs = inputs(plan, seed);
        let outputs = plan.run(&slices(&inputs), &scalars(plan, seed))?;
        let mut results = Results::new();
        for storage in plan.graph().storages() {
            if storage.kind == StorageKind::Output {
                let mut bytes = vec![0; storage.bytes];
                outputs.read(plan.output(&storage.name).unwrap(), &mut bytes)?;
                results.insert(storage.name.clone(), bytes);
            }
        }
        outputs.wait()?;
        drop(outputs);
        for state in self.session.states() {
            results.insert(state.name.clone(), self.state(&state.name)?);
        }
        Ok(results)
    }

    /// The bytes of a state.
    pub fn state(&self, name: &str) -> Result<Vec<u8>, SessionError> {
        let state = self.session.states().into_iter().find(|s| s.name == name);
        let mut bytes = vec![0; state.map_or(0, |state| state.bytes)];
        self.session.read_state(name, 0, &mut bytes)?;
        Ok(bytes)
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

/// Small whole numbers, or row numbers where the dtype is I32.
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
