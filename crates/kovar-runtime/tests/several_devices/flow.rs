//! What the checker finds in states and streamed weights that do not cross as they should.

use std::num::NonZeroUsize;

use kovar_core::{DType, Graph};
use kovar_runtime::Homes;
use kovar_runtime::check::Violation;
use kovar_runtime::flow::check_flow;
use kovar_runtime::liveness::analyse;
use kovar_runtime::memory::plan;
use kovar_runtime::placement::{Rules, place};
use kovar_runtime::segment::{Schedule, schedule};
use kovar_testkit::simulated::SimulatedOptions;

use crate::world::{World, device, only, without};

/// What the checker says of a schedule with a change.
fn changed(
    graph: &Graph,
    devices: Vec<SimulatedOptions>,
    homes: Homes,
    change: impl Fn(&mut Schedule),
) -> Result<(), Violation> {
    let world = World::new(graph, devices, homes.clone());
    let devices = world.session.devices();
    let liveness = analyse(graph).unwrap();
    let placement = place(graph, &liveness, devices, &Rules::new(&homes)).unwrap();
    let mut schedule = schedule(graph, &liveness, &placement, None);
    let memory = plan(graph, &liveness, &placement, &schedule, devices, true).unwrap();
    change(&mut schedule);
    check_flow(graph, &liveness, &placement, &schedule, &memory)
}

#[test]
fn an_updated_state_that_does_not_come_home_is_found() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4]).unwrap();
    let y = graph.token_shift(x, s, None).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = || vec![only("a", &[]), only("b", &["token_shift"])];
    let check = |copy: Option<usize>| {
        changed(&graph, devices(), Homes::all_on(device(0)), |schedule| {
            assert_eq!(schedule.copies.len(), 2);
            copy.map(|at| schedule.copies.remove(at));
        })
    };
    check(None).unwrap();
    let stale = |node, device| Violation::Stale {
        node,
        storage: "s".into(),
        device,
        bytes: 0..16,
    };
    assert_eq!(check(Some(0)), Err(stale(Some(0), 1)));
    assert_eq!(check(Some(1)), Err(stale(None, 0)));
}

#[test]
fn a_streamed_weight_that_does_not_cross_is_found() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 4]).unwrap();
    let w = graph.weight("w", DType::F32, &[4, 4]).unwrap();
    let y = graph.matmul(w, x).unwrap();
    graph.set_output(y, "y").unwrap();
    let check = |uploads: usize| {
        let devices = vec![without("a", &[])];
        let homes = Homes::all_on(device(0)).stream("w");
        changed(&graph, devices, homes, |schedule| {
            assert_eq!(schedule.uploads.len(), 1);
            schedule.uploads.truncate(uploads);
        })
    };
    check(1).unwrap();
    let stale = Violation::Stale {
        node: Some(0),
        storage: "w".into(),
        device: 0,
        bytes: 0..64,
    };
    assert_eq!(check(0), Err(stale));
}

#[test]
fn a_segment_has_at_most_as_many_nodes_as_it_may() {
    let mut graph = Graph::new();
    let mut x = graph.input("x", DType::F32, &[4]).unwrap();
    for _ in 0..5 {
        x = graph.scale(x, 2.0).unwrap();
    }
    graph.set_output(x, "y").unwrap();
    let homes = Homes::all_on(device(0));
    let world = World::new(&graph, vec![without("a", &[])], homes.clone());
    let liveness = analyse(&graph).unwrap();
    let devices = world.session.devices();
    let placement = place(&graph, &liveness, devices, &Rules::new(&homes)).unwrap();
    for (most, expected) in [(0, &[5][..]), (2, &[2, 2, 1]), (5, &[5])] {
        let most = NonZeroUsize::new(most);
        let segments = schedule(&graph, &liveness, &placement, most).segments;
        let sizes: Vec<usize> = segments.iter().map(|s| s.nodes.len()).collect();
        assert_eq!(sizes, expected, "{most:?}");
    }
}
