use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::{DType, Graph};
use kovar_runtime::check::{Violation, check_memory, check_segments};
use kovar_runtime::flow::check_flow;
use kovar_runtime::liveness::{Liveness, analyse};
use kovar_runtime::memory::plan;
use kovar_runtime::placement::{Placement, Rules, place};
use kovar_runtime::segment::schedule;
use kovar_runtime::{DeviceId, Homes};

use crate::interpreter::{recurrence, two_inputs};
use crate::sim::Sim;

fn example() -> (Graph, Vec<Arc<dyn Backend>>, Liveness, Placement) {
    let (mut graph, a, b) = two_inputs(4);
    let sum = graph.add(a, b).unwrap();
    let y = graph.mul(sum, b).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices: Vec<Arc<dyn Backend>> = vec![Arc::new(Sim::new("a")), Arc::new(Sim::new("b"))];
    let liveness = analyse(&graph).unwrap();
    let homes = Homes::all_on(DeviceId::FIRST);
    let placement = place(&graph, &liveness, &devices, &Rules::new(&homes)).unwrap();
    (graph, devices, liveness, placement)
}

fn second() -> DeviceId {
    DeviceId::all(2).nth(1).unwrap()
}

#[test]
fn the_passes_own_plan_is_valid() {
    let (graph, devices, liveness, placement) = example();
    let schedule = schedule(&graph, &liveness, &placement, None);
    check_segments(&graph, &liveness, &placement, &schedule).unwrap();
    let memory = plan(&graph, &liveness, &placement, &schedule, &devices, true).unwrap();
    check_memory(&graph, &placement, &schedule, &memory).unwrap();
    check_flow(&graph, &liveness, &placement, &schedule, &memory).unwrap();
}

#[test]
fn a_node_off_the_owner_of_what_it_writes_is_found() {
    let (graph, _, liveness, placement) = example();
    let mut schedule = schedule(&graph, &liveness, &placement, None);
    schedule.segments[0].device = second();
    let found = check_segments(&graph, &liveness, &placement, &schedule).unwrap_err();
    assert_eq!(
        found,
        Violation::WritesForeign {
            node: 0,
            runs_on: 1,
            storage: "add.0".into(),
            owner: Some(0),
        }
    );
}

#[test]
fn a_read_of_another_device_s_storage_is_found() {
    let (graph, _, liveness, placement) = example();
    let mut schedule = schedule(&graph, &liveness, &placement, None);
    let b = graph.storage_ids().nth(1).unwrap();
    schedule.replicas.retain(|replica| replica.storage != b);
    let found = check_segments(&graph, &liveness, &placement, &schedule).unwrap_err();
    assert_eq!(
        found,
        Violation::ReadsForeign {
            node: 0,
            runs_on: 0,
            storage: "b".into(),
        }
    );
}

#[test]
fn nodes_out_of_order_or_left_out_are_found() {
    let (graph, _, liveness, placement) = example();
    let mut schedule = schedule(&graph, &liveness, &placement, None);
    schedule.segments[0].nodes.reverse();
    let found = check_segments(&graph, &liveness, &placement, &schedule).unwrap_err();
    let (expected, got) = (Some(0), Some(1));
    assert_eq!(
        found,
        Violation::Order {
            expected,
            found: got
        }
    );
    schedule.segments.clear();
    let found = check_segments(&graph, &liveness, &placement, &schedule).unwrap_err();
    let (expected, got) = (Some(0), None);
    assert_eq!(
        found,
        Violation::Order {
            expected,
            found: got
        }
    );
}

#[test]
fn shared_memory_of_storages_that_live_together_is_found() {
    let chain = |reads_b_again: bool| {
        let (mut graph, _, b) = two_inputs(4);
        let first = graph.scale(b, 2.0).unwrap();
        let second = if reads_b_again { b } else { first };
        let y = graph.mul(first, second).unwrap();
        graph.set_output(y, "y").unwrap();
        let liveness = analyse(&graph).unwrap();
        (graph, liveness)
    };
    let (_, devices, _, _) = example();
    let (shorter, liveness) = chain(false);
    let homes = Homes::all_on(DeviceId::FIRST);
    let placement = place(&shorter, &liveness, &devices, &Rules::new(&homes)).unwrap();
    let short = schedule(&shorter, &liveness, &placement, None);
    let memory = plan(&shorter, &liveness, &placement, &short, &devices, true).unwrap();
    check_memory(&shorter, &placement, &short, &memory).unwrap();
    let (longer, liveness) = chain(true);
    let long = schedule(&longer, &liveness, &placement, None);
    let found = check_memory(&longer, &placement, &long, &memory).unwrap_err();
    assert_eq!(
        found,
        Violation::SharedMemory {
            first: "b".into(),
            second: "y".into(),
        }
    );
}

#[test]
fn a_storage_without_memory_is_found() {
    let (graph, devices, liveness, placement) = example();
    let (empty, ..) = two_inputs(4);
    let nothing = analyse(&empty).unwrap();
    let needed = schedule(&graph, &liveness, &placement, None);
    let none = schedule(&empty, &nothing, &placement, None);
    let memory = plan(&empty, &nothing, &placement, &none, &devices, true).unwrap();
    let found = check_memory(&graph, &placement, &needed, &memory).unwrap_err();
    assert_eq!(
        found,
        Violation::NoMemory {
            storage: "a".into()
        }
    );
}

#[test]
fn a_node_off_the_owner_of_what_it_updates_is_found() {
    let mut graph = Graph::new();
    let state = graph.state("s", DType::F32, &[1, 4, 4]).unwrap();
    recurrence(&mut graph, state, "");
    let liveness = analyse(&graph).unwrap();
    let mut owners = vec![DeviceId::FIRST; graph.storages().len()];
    owners[0] = second();
    let placement = Placement::new(owners);
    let schedule = schedule(&graph, &liveness, &placement, None);
    let found = check_segments(&graph, &liveness, &placement, &schedule).unwrap_err();
    assert_eq!(
        found,
        Violation::WritesForeign {
            node: 0,
            runs_on: 0,
            storage: "s".into(),
            owner: Some(1),
        }
    );
}
