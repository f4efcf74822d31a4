//! Plans of arbitrary graphs over arbitrary devices give what one device gives.

use std::num::NonZeroUsize;

use kovar_core::Graph;
use kovar_runtime::{CompileError, Homes, PlaceError, Policy, compile, place_layers};
use kovar_testkit::simulated::SimulatedOptions;
use proptest::prelude::*;

use crate::generator::build;
use crate::world::{World, device, reference};

/// The devices of a case.
#[derive(Clone, Debug)]
struct Machine {
    /// By device, which operations it supports: a bit for each value of a hash.
    supports: Vec<u16>,
    /// By device, which groups it fuses: a bit for each value of a hash.
    fuses: Vec<u16>,
    /// By device, the largest buffer in units of the largest storage.
    buffers: Vec<u8>,
    /// By device, its budget in units of the largest storage; `None` is unlimited.
    budgets: Vec<Option<u8>>,
    /// Storages pinned to devices.
    pins: Vec<(u8, u8)>,
    /// Which of the two weights cross in every run.
    streams: (bool, bool),
    default: u8,
}

/// A hash of an operation and whether its result is contiguous, or of a group of nodes and whether
/// all of its results are kept.
fn hash(name: &str, contiguous: bool) -> u32 {
    let hash = name.bytes().fold(u32::from(contiguous) + 1, |hash, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
    });
    (hash ^ (hash >> 8)) % 16
}

impl Machine {
    fn devices(&self, graph: &Graph) -> Vec<SimulatedOptions> {
        let largest = graph.storages().iter().map(|s| s.bytes).max().unwrap_or(0);
        let masks = self.supports.iter().zip(&self.fuses);
        let each = masks.zip(&self.buffers).enumerate();
        each.map(|(i, ((&mask, &fuses), &buffers))| {
            let options = SimulatedOptions::new(&format!("sim{i}"))
                .supporting(move |node| {
                    let contiguous = node.output().layout.is_contiguous();
                    mask >> hash(node.op().name(), contiguous) & 1 == 1
                })
                .fusing(move |group| {
                    let all_kept = !group.kept.contains(&false);
                    fuses >> hash(group.fusion.name(), all_kept) & 1 == 1
                })
                .deferred(buffers / 4 % 2 == 1);
            let units = usize::from(buffers % 4) + 1;
            SimulatedOptions {
                alignment: 16 << (i % 3),
                memory_bytes: self.budget(i, largest),
                max_buffer_bytes: largest.next_multiple_of(64).max(64) * units,
                ..options
            }
        })
        .collect()
    }

    fn max_nodes(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(usize::from(self.default % 8))
    }

    fn budget(&self, device: usize, largest: usize) -> Option<u64> {
        let units = u64::from((*self.budgets.get(device)?)?);
        Some((units % 40 + 4) * largest as u64)
    }

    fn homes(&self, graph: &Graph) -> Homes {
        let largest = graph.storages().iter().map(|s| s.bytes).max().unwrap_or(0);
        let n = self.supports.len();
        let at = |i: u8| device(usize::from(i) % n);
        let storages = graph.storages();
        let pins = self.pins.iter();
        let homes = pins.fold(Homes::all_on(at(self.default)), |homes, &(storage, to)| {
            let name = &storages[usize::from(storage) % storages.len()].name;
            homes.pin(name, at(to))
        });
        let streams = [("w", self.streams.0), ("v", self.streams.1)].into_iter();
        let streamed = streams.filter(|(_, is_streamed)| *is_streamed);
        let homes = streamed.fold(homes, |homes, (name, _)| homes.stream(name));
        (0..n).fold(homes, |homes, i| match self.budget(i, largest) {
            Some(bytes) => homes.budget(device(i), bytes),
            None => homes,
        })
    }
}

fn machine() -> impl Strategy<Value = Machine> {
    // Mostly devices that support most operations, so that most graphs can run.
    let mask =
        prop_oneof![3 => (any::<u16>(), any::<u16>()).prop_map(|(a, b)| a | b), 1 => Just(0xffff)];
    let budget = prop_oneof![Just(None), any::<u8>().prop_map(Some)];
    let fuses = prop_oneof![3 => Just(0xffff), 1 => any::<u16>()];
    let devices = prop::collection::vec((mask, fuses, any::<u8>(), budget), 1..=4);
    let pins = prop::collection::vec(any::<(u8, u8)>(), 0..12);
    let rest = (any::<u8>(), any::<(bool, bool)>());
    (devices, pins, rest).prop_map(|(devices, pins, (default, streams))| Machine {
        supports: devices.iter().map(|device| device.0).collect(),
        fuses: devices.iter().map(|device| device.1).collect(),
        buffers: devices.iter().map(|device| device.2).collect(),
        budgets: devices.iter().map(|device| device.3).collect(),
        pins,
        streams,
        default,
    })
}

pub fn choices() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    let choice = || any::<(u8, u8, u8)>();
    prop_oneof![
        3 => prop::collection::vec(choice(), 1..60),
        1 => prop::collection::vec(choice(), 60..330),
    ]
}

fn holds(choices: &[(u8, u8, u8)], machine: &Machine) -> Result<(), TestCaseError> {
    let graph = build(choices);
    let devices = machine.devices(&graph);
    let backends = World::new(&graph, devices.clone(), Homes::all_on(device(0)));
    let homes = place_layers(
        &[&graph],
        backends.session.devices(),
        machine.homes(&graph),
        &Policy::default(),
    );
    let homes = match homes {
        Err(PlaceError::Unsupported { .. }) => machine.homes(&graph),
        homes => homes.unwrap(),
    };
    let world = World::new(&graph, devices, homes);
    // Devices have no more memory than their budgets, so a plan within the budgets can be made.
    let plan = match world.compile(&graph) {
        Ok(plan) => plan,
        Err(CompileError::OverBudget(over)) => {
            prop_assert!(over.usage.total() > over.budget);
            return Ok(());
        }
        Err(CompileError::Place(PlaceError::Unsupported { refusals, .. })) => {
            prop_assert_eq!(refusals.0.len(), machine.supports.len());
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    // A second plan, which needs more memory, moves the first and shares its states.
    let mut policy = Policy::default();
    policy.reuse_memory = false;
    policy.max_segment_nodes = machine.max_nodes();
    let second = match compile(&graph, &world.session, &policy) {
        Ok(second) => second,
        Err(CompileError::OverBudget(_)) => world.compile(&graph).unwrap(),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let [first_run, second_run] = reference(&graph);
    prop_assert_eq!(&world.run(&plan, 1), &first_run, "{}", plan.describe());
    prop_assert_eq!(&world.run(&second, 2), &second_run, "{}", second.describe());
    world.session.reset_states().unwrap();
    prop_assert_eq!(&world.run(&second, 1), &first_run, "{}", second.describe());
    prop_assert_eq!(&world.run(&plan, 2), &second_run, "{}", plan.describe());
    // Runs of both plans in the same order, without waiting for the first.
    world.session.reset_states().unwrap();
    world.begin(&second, 1);
    prop_assert_eq!(&world.run(&plan, 2), &second_run, "{}", plan.describe());
    let third_run = world.run(&second, 3);
    world.session.reset_states().unwrap();
    world.begin(&plan, 1);
    world.begin(&second, 2);
    prop_assert_eq!(&world.run(&plan, 3), &third_run, "{}", plan.describe());
    Ok(())
}

/// 5,000 graphs, or the number in `KOVAR_SCHEDULER_GRAPHS`.
fn cases() -> u32 {
    let asked = std::env::var("KOVAR_SCHEDULER_GRAPHS");
    asked.map_or(5_000, |graphs| graphs.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn several_devices_give_bit_for_bit_what_one_does(choices in choices(), machine in machine()) {
        holds(&choices, &machine)?;
    }
}
