//! Where storages lie in the arena of a device.

use kovar_core::{DType, Graph};
use kovar_runtime::{CompileError, Homes, PlaceError, Plan, Policy, compile};
use kovar_testkit::simulated::SimulatedOptions;

use crate::world::{World, device, section, two_inputs};

/// A device that aligns storages to 16 bytes, with buffers of at most `max_buffer_bytes`.
fn planned(
    graph: &Graph,
    max_buffer_bytes: usize,
    reuse_memory: bool,
) -> Result<Plan, CompileError> {
    let options = SimulatedOptions {
        alignment: 16,
        max_buffer_bytes,
        ..SimulatedOptions::new("a")
    };
    let world = World::new(graph, vec![options], Homes::all_on(device(0)));
    let mut policy = Policy::default();
    policy.check_plan = true;
    policy.reuse_memory = reuse_memory;
    compile(graph, &world.session, &policy)
}

/// A chain of `n` nodes, each with a result of 16 floats of its own.
fn chain(n: usize) -> Graph {
    let (mut graph, mut x, _) = two_inputs(16);
    for _ in 0..n {
        x = graph.scale(x, 2.0).unwrap();
    }
    graph.set_output(x, "y").unwrap();
    graph
}

#[test]
fn a_chain_takes_two_buffers() {
    let plan = planned(&chain(20), 1 << 20, true).unwrap();
    let memory = &plan.memory()[0];
    assert_eq!((memory.arena, memory.arena_lower_bound), (2 * 64, 2 * 64));
    let plan = planned(&chain(20), 1 << 20, false).unwrap();
    assert_eq!(plan.memory()[0].arena, 21 * 64);
}

#[test]
fn offsets_are_aligned() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[3]).unwrap();
    let b = graph.scale(a, 1.0).unwrap();
    let c = graph.add(a, b).unwrap();
    graph.set_output(c, "c").unwrap();
    let memory = section(&planned(&graph, 1 << 20, true).unwrap(), "memory");
    let slots = memory
        .lines()
        .filter_map(|line| line.split(", bytes ").nth(1));
    let slots: Vec<Vec<usize>> = slots
        .map(|slot| slot.split("..").map(|at| at.parse().unwrap()).collect())
        .collect();
    assert_eq!(slots.len(), 3, "{memory}");
    for slot in slots {
        assert_eq!((slot[0] % 16, slot[1] - slot[0]), (0, 16), "{memory}");
    }
}

#[test]
fn an_arena_beyond_the_buffer_limit_is_split() {
    let plan = planned(&chain(3), 64, true).unwrap();
    let memory = section(&plan, "memory");
    assert!(memory.contains("128 bytes in 2 buffers"), "{memory}");
}

#[test]
fn a_storage_beyond_the_buffer_limit_is_named() {
    assert_eq!(
        planned(&chain(1), 63, true).unwrap_err(),
        PlaceError::TooLarge {
            storage: "a".into(),
            bytes: 64,
            device: "a".into(),
            max: 63,
        }
        .into()
    );
}

#[test]
fn unused_inputs_and_states_take_no_arena() {
    let mut graph = chain(1);
    let state = graph.state("s", DType::F32, &[16]).unwrap();
    let a = graph.value_ids().next().unwrap();
    graph.copy_into(a, state).unwrap();
    let memory = section(&planned(&graph, 1 << 20, true).unwrap(), "memory");
    assert!(memory.contains("`a`"), "{memory}");
    assert!(
        !memory.contains("`b`") && !memory.contains("`s`"),
        "{memory}"
    );
}

#[test]
fn the_description_shows_the_peak_the_bound_and_each_slot() {
    let expected = "\
memory:
  a: 128 bytes in 1 buffer, the lower bound is 128
  input `a`: buffer 0, bytes 0..64
  temporary `scale.0`: buffer 0, bytes 64..128
  output `y`: buffer 0, bytes 0..64
";
    let plan = planned(&chain(2), 1 << 20, true).unwrap();
    assert_eq!(section(&plan, "memory"), expected);
}
