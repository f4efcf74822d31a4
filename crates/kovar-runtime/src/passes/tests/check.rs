//! What the checker finds in corrupted segments, placements and memory plans.

use kovar_core::{DType, Graph};
use kovar_testkit::simulated::SimulatedOptions;

use super::{Planned, second, two_inputs};
use crate::device::DeviceId;
use crate::place::Homes;
use crate::violation::Violation;

fn planned(graph: Graph) -> Planned {
    let devices = ["a", "b"].map(SimulatedOptions::new).to_vec();
    Planned::new(graph, devices, &Homes::all_on(DeviceId::FIRST))
}

/// `y = (a + b) * b`
fn example() -> Planned {
    let (mut graph, a, b) = two_inputs();
    let sum = graph.add(a, b).unwrap();
    let y = graph.mul(sum, b).unwrap();
    graph.set_output(y, "y").unwrap();
    planned(graph)
}

#[test]
fn the_passes_own_plan_is_valid() {
    example().check().unwrap();
}

#[test]
fn a_node_off_the_owner_of_what_it_writes_is_found() {
    let mut planned = example();
    planned.passes.schedule.segments[0].device = second();
    let found = Violation::WritesForeign {
        node: 0,
        runs_on: 1,
        storage: "add.0".into(),
        owner: 0,
    };
    assert_eq!(planned.check(), Err(found));
}

#[test]
fn a_read_of_another_device_s_storage_is_found() {
    let mut planned = example();
    let b = planned.graph.storage_ids().nth(1).unwrap();
    let replicas = &mut planned.passes.schedule.replicas;
    replicas.retain(|replica| replica.storage != b);
    let found = Violation::ReadsForeign {
        node: 0,
        runs_on: 0,
        storage: "b".into(),
    };
    assert_eq!(planned.check(), Err(found));
}

#[test]
fn nodes_out_of_order_or_left_out_are_found() {
    let mut planned = example();
    let order = |found| Violation::Order {
        expected: Some(0),
        found,
    };
    planned.passes.schedule.segments[0].nodes.reverse();
    assert_eq!(planned.check(), Err(order(Some(1))));
    planned.passes.schedule.segments.clear();
    assert_eq!(planned.check(), Err(order(None)));
}

#[test]
fn shared_memory_of_storages_that_live_together_is_found() {
    let chain = |reads_b_again: bool| {
        let (mut graph, _, b) = two_inputs();
        let first = graph.scale(b, 2.0).unwrap();
        let second = if reads_b_again { b } else { first };
        let y = graph.mul(first, second).unwrap();
        graph.set_output(y, "y").unwrap();
        planned(graph)
    };
    let shorter = chain(false);
    shorter.check().unwrap();
    let mut longer = chain(true);
    longer.passes.memory = shorter.passes.memory;
    let found = Violation::SharedMemory {
        first: "b".into(),
        second: "y".into(),
    };
    assert_eq!(longer.check(), Err(found));
}

#[test]
fn a_storage_without_memory_is_found() {
    let mut sum = example();
    let (empty, ..) = two_inputs();
    sum.passes.memory = planned(empty).passes.memory;
    let found = Violation::NoMemory {
        storage: "a".into(),
    };
    assert_eq!(sum.check(), Err(found));
}

#[test]
fn a_node_off_the_owner_of_what_it_updates_is_found() {
    let mut graph = Graph::new();
    let state = graph.state("s", DType::F32, &[1, 4, 4]).unwrap();
    let rwkvab = ["r", "w", "k", "v", "a", "b"];
    let rwkvab = rwkvab.map(|name| graph.input(name, DType::F32, &[2, 1, 4]).unwrap());
    graph.wkv7(rwkvab, state, None).unwrap();
    let mut planned = planned(graph);
    let s = planned.graph.storage_ids().next().unwrap();
    planned.passes.placement.set_owner(s, second());
    let found = Violation::WritesForeign {
        node: 0,
        runs_on: 0,
        storage: "s".into(),
        owner: 1,
    };
    assert_eq!(planned.check(), Err(found));
}
