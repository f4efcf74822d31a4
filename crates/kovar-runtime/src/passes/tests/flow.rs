//! The order of a run, and what the checker finds where bytes do not cross as they should.

use kovar_core::{DType, Graph};
use kovar_testkit::simulated::SimulatedOptions;

use super::Planned;
use crate::device::DeviceId;
use crate::place::Homes;
use crate::schedule::Action;
use crate::violation::Violation;

fn planned(graph: Graph, devices: Vec<SimulatedOptions>) -> Planned {
    Planned::new(graph, devices, &Homes::all_on(DeviceId::FIRST))
}

fn only(id: &str, ops: &'static [&'static str]) -> SimulatedOptions {
    SimulatedOptions::new(id).only(ops)
}

/// `y = softmax(2 a)`, `z = 3 y`, with every second node on the other device.
fn example() -> Planned {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 4]).unwrap();
    let x = graph.scale(a, 2.0).unwrap();
    let y = graph.softmax(x, None, 1.0).unwrap();
    let z = graph.scale(y, 3.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(z, "z").unwrap();
    planned(
        graph,
        vec![only("cpu", &["scale"]), only("gpu", &["softmax"])],
    )
}

fn stale(node: Option<usize>, storage: &str, device: usize, bytes: usize) -> Violation {
    Violation::Stale {
        node,
        storage: storage.into(),
        device,
        bytes: 0..bytes,
    }
}

#[test]
fn reads_are_queued_early_and_waited_for_late() {
    let planned = example();
    planned.check().unwrap();
    let expected = [
        Action::Launch(0),
        Action::Read(0),
        Action::Write(0),
        Action::Launch(1),
        Action::Read(1),
        Action::Write(1),
        Action::Launch(2),
    ];
    assert_eq!(planned.passes.schedule.actions(), expected);
}

#[test]
fn a_missing_copy_is_found() {
    let mut planned = example();
    planned.passes.schedule.copies.remove(0);
    assert_eq!(planned.check(), Err(stale(Some(1), "scale.0", 1, 32)));
}

#[test]
fn a_copy_read_too_early_is_found() {
    let mut planned = example();
    planned.passes.schedule.copies[1].after = None;
    assert_eq!(planned.check(), Err(stale(Some(2), "y", 0, 32)));
}

#[test]
fn a_copy_written_before_it_is_read_is_found() {
    let mut planned = example();
    planned.passes.schedule.copies[1].before = 1;
    assert_eq!(planned.check(), Err(Violation::NotRead { copy: 1 }));
}

#[test]
fn a_copy_of_too_few_bytes_is_found() {
    let mut planned = example();
    planned.passes.schedule.copies[0].bytes = 0..28;
    let found = planned.check();
    assert!(matches!(found, Err(Violation::Stale { node: Some(1), .. })));
}

#[test]
fn a_version_s_segment_on_another_device_is_found() {
    let mut planned = example();
    planned.passes.schedule.segments[1].device = DeviceId::FIRST;
    let found = planned.check();
    assert!(matches!(
        found,
        Err(Violation::WritesForeign { node: 1, .. })
    ));
}

#[test]
fn an_updated_state_that_does_not_come_home_is_found() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4]).unwrap();
    let y = graph.token_shift(x, s, None).unwrap();
    graph.set_output(y, "y").unwrap();
    let check = |copy: Option<usize>| {
        let devices = vec![only("a", &[]), only("b", &["token_shift"])];
        let mut planned = planned(graph.clone(), devices);
        assert_eq!(planned.passes.schedule.copies.len(), 2);
        copy.map(|at| planned.passes.schedule.copies.remove(at));
        planned.check()
    };
    check(None).unwrap();
    assert_eq!(check(Some(0)), Err(stale(Some(0), "s", 1, 16)));
    assert_eq!(check(Some(1)), Err(stale(None, "s", 0, 16)));
}

#[test]
fn a_streamed_weight_that_does_not_cross_is_found() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 4]).unwrap();
    let w = graph.weight("w", DType::F32, &[4, 4]).unwrap();
    let y = graph.matmul(w, x).unwrap();
    graph.set_output(y, "y").unwrap();
    let homes = Homes::all_on(DeviceId::FIRST).stream("w");
    let mut planned = Planned::new(graph, vec![SimulatedOptions::new("a")], &homes);
    assert_eq!(planned.passes.schedule.uploads.len(), 1);
    planned.check().unwrap();
    planned.passes.schedule.uploads.clear();
    assert_eq!(planned.check(), Err(stale(Some(0), "w", 0, 64)));
}
