//! Two graphs that share a session whose devices fail.

use kovar_core::Graph;
use kovar_runtime::{CompileError, DeviceId, Homes, PlaceError, Policy, place_layers};
use kovar_testkit::simulated::{Call, FaultKind, SimulatedOptions};
use proptest::prelude::*;

use crate::generator::build;
use crate::world::{World, device};

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

/// Which graph each run is of, and the seed of its inputs.
const RUNS: [(usize, u32); 4] = [(0, 1), (1, 2), (1, 3), (0, 4)];

/// The devices of a case, and the call that fails.
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
    fn device(&self, at: u8) -> DeviceId {
        device(usize::from(at) % self.devices.len())
    }

    fn options(&self, faults: bool) -> Vec<SimulatedOptions> {
        let each = self.devices.iter().enumerate();
        each.map(|(i, &(mask, deferred))| {
            let options = SimulatedOptions::new(&format!("sim{i}")).deferred(deferred);
            let mut options =
                options.supporting(move |node| mask >> hash(node.op().name()) & 1 == 1);
            options.alignment = 16 << (i % 3);
            let (at, call, nth, is_memory) = self.fault;
            if !faults || self.device(at).index() != i {
                return options;
            }
            let kind = if is_memory {
                FaultKind::OutOfMemory
            } else {
                FaultKind::TimedOut
            };
            options.failing(CALLS[call], nth, kind)
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

/// Runs all plans. A run that reports the fault is followed by a reset of the states and a new
/// start. A run that reports nothing must give what one device without faults gives.
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
    let Ok(homes) = place_layers(&both, devices, machine.homes(graphs), &policy) else {
        return Ok(());
    };
    let world = World::new(&graphs[0], machine.options(true), homes);
    // The fault comes once, but more than one call may report it.
    let mut reported = 0;
    let mut plans = Vec::new();
    for graph in graphs {
        let plan = loop {
            match world.compile(graph) {
                Ok(plan) => break plan,
                Err(
                    CompileError::Place(PlaceError::Unsupported { .. })
                    | CompileError::OverBudget(_),
                ) => {
                    return Ok(());
                }
                Err(_) => reported += 1,
            }
            prop_assert!(reported <= 2, "the fault does not go away");
        };
        plans.push(plan);
    }
    'again: loop {
        prop_assert!(reported <= 3, "the fault does not go away");
        for (&(at, seed), expected) in RUNS.iter().zip(&expected) {
            let plan = &plans[at];
            match world.try_run(plan, seed) {
                Ok(found) => prop_assert_eq!(&found, expected, "{}", plan.describe()),
                Err(_) => {
                    reported += 1;
                    while world.session.reset_states().is_err() {
                        reported += 1;
                        prop_assert!(reported <= 3, "the fault does not go away");
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
    fn a_fault_is_reported_by_the_runs_that_it_concerns_and_by_no_others(
        first in choices(),
        second in choices(),
        machine in machine(),
    ) {
        holds(&[build(&first), build(&second)], &machine)?;
    }
}
