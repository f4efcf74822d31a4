//! Two graphs that share a session whose devices fail.

use kovar_core::{Graph, StorageKind};
use kovar_runtime::{CompileError, Homes, HostSlice, Plan, Policy, spread};
use kovar_testkit::simulated::{Call, Fault, FaultKind, SimulatedOptions};
use proptest::prelude::*;

use crate::generator::build;
use crate::world::{Results, World, data, device, scalars, simulated};

const CALLS: [Call; 9] = [
    Call::Alloc,
    Call::Prepare,
    Call::Compile,
    Call::Write,
    Call::Read,
    Call::Fill,
    Call::Launch,
    Call::Wait,
    Call::Fence,
];

/// The graphs that run, and with which inputs.
const RUNS: [(usize, u32); 4] = [(0, 1), (1, 2), (1, 3), (0, 4)];

/// What the devices of a case are like, and which call fails.
#[derive(Clone, Debug)]
struct Machine {
    /// By device, which operations it supports, and whether its work runs late.
    devices: Vec<(u16, bool)>,
    default: u8,
    pins: (u8, u8),
    streamed: bool,
    budget: Option<u8>,
    fault: (u8, usize, usize, bool),
}

fn machine() -> impl Strategy<Value = Machine> {
    let mask = (any::<u16>(), any::<u16>()).prop_map(|(a, b)| a | b);
    let devices = prop::collection::vec((mask, any::<bool>()), 1..=4);
    let homes = (any::<u8>(), any::<(u8, u8)>(), any::<bool>());
    let fault = (any::<u8>(), 0..CALLS.len(), 0usize..12, any::<bool>());
    (devices, homes, prop::option::of(any::<u8>()), fault).prop_map(
        |(devices, (default, pins, streamed), budget, fault)| Machine {
            devices,
            default,
            pins,
            streamed,
            budget,
            fault,
        },
    )
}

fn hash(name: &str) -> u32 {
    let hash = name.bytes().fold(1u32, |hash, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
    });
    (hash ^ (hash >> 8)) % 16
}

impl Machine {
    fn device(&self, at: u8) -> kovar_runtime::DeviceId {
        device(usize::from(at) % self.devices.len())
    }

    fn options(&self, faults: bool) -> Vec<SimulatedOptions> {
        let each = self.devices.iter().enumerate();
        each.map(|(i, &(mask, deferred))| {
            let supports =
                move |node: kovar_core::NodeRef<'_>| mask >> hash(node.op().name()) & 1 == 1;
            let mut options = simulated(&format!("sim{i}"), supports);
            options.deferred = deferred;
            options.alignment = 16 << (i % 3);
            let (at, call, nth, memory) = self.fault;
            if faults && self.device(at).index() == i {
                let kind = match memory {
                    true => FaultKind::OutOfMemory,
                    false => FaultKind::TimedOut,
                };
                let call = CALLS[call];
                options.faults.push(Fault { call, nth, kind });
            }
            options
        })
        .collect()
    }

    fn homes(&self, graphs: &[Graph; 2]) -> Homes {
        let pinned = |graph: &Graph, at: u8| {
            let storages = graph.storages();
            storages[usize::from(at) % storages.len()].name.clone()
        };
        let (first, second) = self.pins;
        let mut homes = Homes::all_on(self.device(self.default))
            .pin(&pinned(&graphs[0], first), self.device(second))
            .pin(&pinned(&graphs[1], second), self.device(first));
        if self.streamed {
            homes = homes.stream("w");
        }
        match self.budget {
            Some(budget) => homes.budget(device(0), 64 * (u64::from(budget) + 20)),
            None => homes,
        }
    }
}

/// What a run leaves, or its error.
fn run(world: &World, plan: &Plan, seed: u32) -> Result<Results, String> {
    let storages = plan.graph().storages();
    let inputs = storages.iter().filter(|s| s.kind == StorageKind::Input);
    let inputs: Vec<_> = inputs
        .map(|s| (plan.input(&s.name).unwrap(), data(s, seed)))
        .collect();
    let inputs: Vec<_> = inputs
        .iter()
        .map(|(value, bytes)| (*value, HostSlice::raw(bytes)))
        .collect();
    let outputs = plan
        .run(&inputs, &scalars(plan, seed))
        .map_err(|e| e.to_string())?;
    let mut results = Results::new();
    for storage in storages {
        if storage.kind == StorageKind::Output {
            let mut bytes = vec![0; storage.bytes];
            let value = plan.output(&storage.name).unwrap();
            outputs.read(value, &mut bytes).map_err(|e| e.to_string())?;
            results.insert(storage.name.clone(), bytes);
        }
    }
    outputs.wait().map_err(|e| e.to_string())?;
    drop(outputs);
    for state in world.session.states() {
        let mut bytes = vec![0; state.bytes];
        let read = world.session.read_state(&state.name, &mut bytes);
        read.map_err(|e| e.to_string())?;
        results.insert(state.name, bytes);
    }
    Ok(results)
}

/// Runs everything; whoever is told of the fault sets the states to zero and begins again. Whoever
/// is not told finds what one device without faults gives.
fn holds(graphs: &[Graph; 2], machine: &Machine) -> Result<(), TestCaseError> {
    let one = World::new(
        &graphs[0],
        vec![SimulatedOptions::default()],
        Homes::all_on(device(0)),
    );
    let plans = [0, 1].map(|at: usize| one.compile(&graphs[at]).unwrap());
    let expected = RUNS.map(|(at, seed)| one.run(&plans[at], seed));

    let sound = World::new(&graphs[0], machine.options(false), Homes::all_on(device(0)));
    let both = [&graphs[0], &graphs[1]];
    let (devices, policy) = (sound.session.devices(), Policy::default());
    let Ok(homes) = spread(&both, devices, machine.homes(graphs), &policy) else {
        return Ok(());
    };
    let world = World::new(&graphs[0], machine.options(true), homes);
    // The fault comes once; whoever is told may have to ask once more to be rid of it.
    let mut told = 0;
    let mut plans = Vec::new();
    for graph in graphs {
        let plan = loop {
            match world.compile(graph) {
                Ok(plan) => break plan,
                Err(CompileError::Unsupported { .. } | CompileError::OverBudget(_)) => {
                    return Ok(());
                }
                Err(_) => told += 1,
            }
            prop_assert!(told <= 2, "the fault does not go away");
        };
        plans.push(plan);
    }
    'again: loop {
        prop_assert!(told <= 3, "the fault does not go away");
        for (&(at, seed), expected) in RUNS.iter().zip(&expected) {
            let plan = &plans[at];
            match run(&world, plan, seed) {
                Ok(found) => prop_assert_eq!(&found, expected, "{}", plan.describe()),
                Err(_) => {
                    told += 1;
                    while world.session.reset_states().is_err() {
                        told += 1;
                        prop_assert!(told <= 3, "the fault does not go away");
                    }
                    continue 'again;
                }
            }
        }
        return Ok(());
    }
}

fn choices() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec(any::<(u8, u8, u8)>(), 1..50)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_fault_is_told_to_whom_it_concerns_and_to_nobody_else(
        first in choices(),
        second in choices(),
        machine in machine(),
    ) {
        holds(&[build(&first), build(&second)], &machine)?;
    }
}
