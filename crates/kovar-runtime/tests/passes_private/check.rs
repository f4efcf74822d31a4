//! What the checker finds in corrupted segments, placements and memory plans.

use kovar_core::{DType, Graph};
use kovar_runtime::check::Violation;
use kovar_runtime::placement::Placement;
use kovar_runtime::segment::schedule;
use kovar_runtime::{DeviceId, Homes};
use kovar_testkit::simulated::SimulatedOptions;

use crate::passes::{Passes, second, two_inputs};

fn passes(graph: Graph) -> Passes {
    let devices = ["a", "b"].map(SimulatedOptions::new).to_vec();
    Passes::of(graph, devices, &Homes::all_on(DeviceId::FIRST))
}

/// `y = (a + b) * b`
fn example() -> Passes {
    let (mut graph, a, b) = two_inputs();
    let sum = graph.add(a, b).unwrap();
    let y = graph.mul(sum, b).unwrap();
    graph.set_output(y, "y").unwrap();
    passes(graph)
}

#[test]
fn the_passes_own_plan_is_valid() {
    example().check().unwrap();
}

#[test]
fn a_node_off_the_owner_of_what_it_writes_is_found() {
    let mut passes = example();
    passes.schedule.segments[0].device = second();
    let found = Violation::WritesForeign {
        node: 0,
        runs_on: 1,
        storage: "add.0".into(),
        owner: Some(0),
    };
    assert_eq!(passes.check(), Err(found));
}

#[test]
fn a_read_of_another_device_s_storage_is_found() {
    let mut passes = example();
    let b = passes.graph.storage_ids().nth(1).unwrap();
    let replicas = &mut passes.schedule.replicas;
    replicas.retain(|replica| replica.storage != b);
    let found = Violation::ReadsForeign {
        node: 0,
        runs_on: 0,
        storage: "b".into(),
    };
    assert_eq!(passes.check(), Err(found));
}

#[test]
fn nodes_out_of_order_or_left_out_are_found() {
    let mut passes = example();
    let order = |found| Violation::Order {
        expected: Some(0),
        found,
    };
    passes.schedule.segments[0].nodes.reverse();
    assert_eq!(passes.check(), Err(order(Some(1))));
    passes.schedule.segments.clear();
    assert_eq!(passes.check(), Err(order(None)));
}

#[test]
fn shared_memory_of_storages_that_live_together_is_found() {
    let chain = |reads_b_again: bool| {
        let (mut graph, _, b) = two_inputs();
        let first = graph.scale(b, 2.0).unwrap();
        let second = if reads_b_again { b } else { first };
        let y = graph.mul(first, second).unwrap();
        graph.set_output(y, "y").unwrap();
        passes(graph)
    };
    let shorter = chain(false);
    shorter.check().unwrap();
    let mut longer = chain(true);
    longer.memory = shorter.memory;
    let found = Violation::SharedMemory {
        first: "b".into(),
        second: "y".into(),
    };
    assert_eq!(longer.check(), Err(found));
}

#[test]
fn a_storage_without_memory_is_found() {
    let mut passes_of_sum = example();
    let (empty, ..) = two_inputs();
    passes_of_sum.memory = passes(empty).memory;
    let found = Violation::NoMemory {
        storage: "a".into(),
    };
    assert_eq!(passes_of_sum.check(), Err(found));
}

#[test]
fn a_node_off_the_owner_of_what_it_updates_is_found() {
    let mut graph = Graph::new();
    let state = graph.state("s", DType::F32, &[1, 4, 4]).unwrap();
    let rwkvab = ["r", "w", "k", "v", "a", "b"];
    let rwkvab = rwkvab.map(|name| graph.input(name, DType::F32, &[2, 1, 4]).unwrap());
    graph.wkv7(rwkvab, state, None).unwrap();
    let mut passes = passes(graph);
    let mut owners = vec![DeviceId::FIRST; passes.graph.storages().len()];
    owners[0] = second();
    passes.placement = Placement::new(owners);
    passes.schedule = schedule(&passes.graph, &passes.liveness, &passes.placement, None);
    let found = Violation::WritesForeign {
        node: 0,
        runs_on: 0,
        storage: "s".into(),
        owner: Some(1),
    };
    assert_eq!(passes.check(), Err(found));
}
