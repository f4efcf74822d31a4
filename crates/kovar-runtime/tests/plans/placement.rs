//! Where equal devices run a graph, and what no device can run.

use std::num::NonZeroUsize;

use kovar_core::{DType, Graph};
use kovar_runtime::{CompileError, DeviceId, Homes, PlaceError, Policy, compile};
use kovar_testkit::simulated::SimulatedOptions;

use crate::world::{World, agrees, device, section, two_inputs, without};

#[test]
fn equal_devices_leave_every_storage_on_the_first() {
    let (mut graph, a, b) = two_inputs(4);
    let y = graph.add(a, b).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = vec![without("a", &[]), without("b", &[])];
    let plan = agrees(&graph, devices, Homes::all_on(device(0)));
    let expected = "\
placement: 3 storages on 2 devices
  a: 3 storages, 48 bytes
  b: 0 storages, 0 bytes
";
    assert_eq!(section(&plan, "placement"), expected);
}

#[test]
fn a_node_that_no_device_supports_lists_the_reason_of_each() {
    let (mut graph, a, b) = two_inputs(4);
    let y = graph.mul(a, b).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = vec![without("a", &["mul"]), without("b", &["mul"])];
    let error = World::new(&graph, devices, Homes::all_on(device(0)))
        .compile(&graph)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "mul (node 0, writing `y`) has no device: a: no kernel for mul; b: no kernel for mul"
    );
    let CompileError::Place(PlaceError::Unsupported {
        op,
        node,
        result,
        refusals,
    }) = error
    else {
        panic!("{error}");
    };
    assert_eq!((op, node, result.as_str()), ("mul", 0, "y"));
    assert_eq!(refusals.0.len(), 2);
}

#[test]
fn a_dropped_node_needs_no_support() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4]).unwrap();
    graph.mul(a, a).unwrap();
    let y = graph.scale(a, 1.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = vec![without("a", &["mul"])];
    agrees(&graph, devices, Homes::all_on(device(0)));
}

#[test]
fn a_weight_stays_on_a_device_that_cannot_read_it_as_it_crosses() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[4]).unwrap();
    let w = graph.weight("w", DType::F32, &[4]).unwrap();
    let y = graph.add(x, w).unwrap();
    graph.set_output(y, "y").unwrap();
    for streams in [true, false] {
        let options = SimulatedOptions {
            streams,
            ..SimulatedOptions::new("a")
        };
        let plan = agrees(&graph, vec![options], Homes::all_on(device(0)).stream("w"));
        assert_eq!(plan.schedule().uploads.len(), usize::from(streams));
    }
}

#[test]
fn one_device_runs_all_needed_nodes_in_one_segment() {
    let (mut graph, a, b) = two_inputs(4);
    let sum = graph.add(a, b).unwrap();
    graph.mul(a, b).unwrap();
    let y = graph.scale(sum, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let plan = agrees(&graph, vec![without("a", &[])], Homes::all_on(device(0)));
    let [segment] = &plan.schedule().segments[..] else {
        panic!("{}", plan.describe());
    };
    assert_eq!(segment.device, DeviceId::FIRST);
    let nodes: Vec<usize> = segment.nodes.iter().map(|id| id.index()).collect();
    assert_eq!(nodes, [0, 2]);
    assert_eq!(
        section(&plan, "segments"),
        "segments: 1\n  0: a, 2 nodes (0 to 2), 8 operations\n"
    );
}

#[test]
fn a_graph_without_needed_nodes_has_no_segments() {
    let (graph, ..) = two_inputs(4);
    let plan = agrees(&graph, vec![without("a", &[])], Homes::all_on(device(0)));
    assert!(plan.schedule().segments.is_empty());
}

#[test]
fn a_segment_has_at_most_as_many_nodes_as_it_may() {
    let mut graph = Graph::new();
    let mut x = graph.input("x", DType::F32, &[4]).unwrap();
    for _ in 0..5 {
        x = graph.scale(x, 2.0).unwrap();
    }
    graph.set_output(x, "y").unwrap();
    let world = World::new(&graph, vec![without("a", &[])], Homes::all_on(device(0)));
    for (most, expected) in [(0, &[5][..]), (2, &[2, 2, 1]), (5, &[5])] {
        let mut policy = Policy::default();
        policy.max_segment_nodes = NonZeroUsize::new(most);
        let plan = compile(&graph, &world.session, &policy).unwrap();
        let segments = plan.schedule().segments.iter();
        let sizes: Vec<usize> = segments.map(|s| s.nodes.len()).collect();
        assert_eq!(sizes, expected, "{most}");
    }
}
