use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_runtime::liveness::analyse;
use kovar_runtime::placement::{Rules, place};
use kovar_runtime::segment::schedule;
use kovar_runtime::{DeviceId, Homes};

use crate::interpreter::two_inputs;
use crate::sim::Sim;

#[test]
fn one_device_runs_all_needed_nodes_in_one_segment() {
    let (mut graph, a, b) = two_inputs(4);
    let sum = graph.add(a, b).unwrap();
    graph.mul(a, b).unwrap();
    let y = graph.scale(sum, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices: Vec<Arc<dyn Backend>> = vec![Arc::new(Sim::new("a"))];
    let liveness = analyse(&graph).unwrap();
    let homes = Homes::all_on(DeviceId::FIRST);
    let placement = place(&graph, &liveness, &devices, &Rules::new(&homes)).unwrap();
    let schedule = schedule(&graph, &liveness, &placement, None);
    let segments = &schedule.segments;
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].device, DeviceId::FIRST);
    assert_eq!(segments[0].nodes, liveness.nodes());
    assert_eq!(
        schedule.dump(&graph, &devices),
        "segments: 1\n  0: a, 2 nodes (0 to 2), 8 operations\n"
    );
}

#[test]
fn a_graph_without_needed_nodes_has_no_segments() {
    let (graph, ..) = two_inputs(4);
    let devices: Vec<Arc<dyn Backend>> = vec![Arc::new(Sim::new("a"))];
    let liveness = analyse(&graph).unwrap();
    let homes = Homes::all_on(DeviceId::FIRST);
    let placement = place(&graph, &liveness, &devices, &Rules::new(&homes)).unwrap();
    let schedule = schedule(&graph, &liveness, &placement, None);
    assert!(schedule.segments.is_empty() && schedule.steps().is_empty());
}
