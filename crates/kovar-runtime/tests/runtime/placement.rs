use std::sync::Arc;

use kovar_core::backend::{Backend, Reason};
use kovar_core::{DType, Graph};
use kovar_runtime::error::{Refusal, Refusals};
use kovar_runtime::liveness::analyse;
use kovar_runtime::placement::{Rules, place};
use kovar_runtime::{CompileError, DeviceId, Homes};

use crate::interpreter::two_inputs;
use crate::sim::Sim;

#[test]
fn equal_devices_leave_every_storage_on_the_first() {
    let (mut graph, a, b) = two_inputs(4);
    let y = graph.add(a, b).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices: Vec<Arc<dyn Backend>> = vec![Arc::new(Sim::new("a")), Arc::new(Sim::new("b"))];
    let homes = Homes::all_on(DeviceId::FIRST);
    let placement = place(
        &graph,
        &analyse(&graph).unwrap(),
        &devices,
        &Rules::new(&homes),
    )
    .unwrap();
    for id in graph.storage_ids() {
        assert_eq!(placement.owner(id, 0), Some(DeviceId::FIRST));
        assert_eq!(placement.home(id), Some(DeviceId::FIRST));
    }
    assert_eq!(
        placement.dump(&graph, &devices),
        "placement: 3 storages on 2 devices\n  a: 3 storages, 48 bytes\n  b: 0 storages, 0 bytes\n"
    );
}

#[test]
fn a_node_that_no_device_supports_lists_the_reason_of_each() {
    let (mut graph, a, b) = two_inputs(4);
    let y = graph.mul(a, b).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices: Vec<Arc<dyn Backend>> = vec![
        Arc::new(Sim::new("a").refusing("mul")),
        Arc::new(Sim::new("b").refusing("mul")),
    ];
    let homes = Homes::all_on(DeviceId::FIRST);
    let error = place(
        &graph,
        &analyse(&graph).unwrap(),
        &devices,
        &Rules::new(&homes),
    )
    .unwrap_err();
    let refusal = |device: &str| Refusal {
        device: device.into(),
        reason: Reason::Op { op: "mul" },
    };
    assert_eq!(
        error,
        CompileError::Unsupported {
            op: "mul",
            node: 0,
            result: "y".into(),
            refusals: Refusals(vec![refusal("a"), refusal("b")]),
        }
    );
    assert_eq!(
        error.to_string(),
        "mul (node 0, writing `y`) has no device: a: no kernel for mul; b: no kernel for mul"
    );
}

#[test]
fn a_dropped_node_needs_no_support() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4]).unwrap();
    graph.mul(a, a).unwrap();
    let y = graph.scale(a, 1.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices: Vec<Arc<dyn Backend>> = vec![Arc::new(Sim::new("a").refusing("mul"))];
    let homes = Homes::all_on(DeviceId::FIRST);
    assert!(
        place(
            &graph,
            &analyse(&graph).unwrap(),
            &devices,
            &Rules::new(&homes)
        )
        .is_ok()
    );
}

#[test]
fn a_weight_stays_on_a_device_that_cannot_read_it_as_it_crosses() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[4]).unwrap();
    let w = graph.weight("w", DType::F32, &[4]).unwrap();
    let y = graph.add(x, w).unwrap();
    graph.set_output(y, "y").unwrap();
    let homes = Homes::all_on(DeviceId::FIRST).stream("w");
    let w = graph.value(w).unwrap().storage;
    for (device, streamed) in [
        (Sim::new("a"), true),
        (Sim::new("a").without_streaming(), false),
    ] {
        let devices: Vec<Arc<dyn Backend>> = vec![Arc::new(device)];
        let liveness = analyse(&graph).unwrap();
        let placement = place(&graph, &liveness, &devices, &Rules::new(&homes)).unwrap();
        assert_eq!(placement.is_streamed(w, DeviceId::FIRST), streamed);
    }
}
