//! What decides where nodes run: rates, preferences, thresholds and pins; and observers.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use kovar_core::backend::{DeviceKind, Reason};
use kovar_core::ops::{Op, Scale};
use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::{
    DeviceRates, Homes, HostSlice, LinkRates, MeasureError, PlacementReason, Plan, Policy,
    Preference, RunError, compile, measure,
};
use kovar_testkit::simulated::{Call, FaultKind, SimulatedDevice, SimulatedOptions};

use crate::world::{World, bytes, device, floats, only, without};

/// Two products and a norm over `rows` rows, none of which reads a weight.
fn products(rows: usize) -> Graph {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[32, 32]).unwrap();
    let x = graph.input("x", DType::F32, &[rows, 32]).unwrap();
    let x = graph.matmul(a, x).unwrap();
    let x = graph.softmax(x, None, 1.0).unwrap();
    let y = graph.matmul(a, x).unwrap();
    graph.set_output(y, "y").unwrap();
    graph
}

/// A CPU and a GPU that is faster by far.
fn pair() -> Vec<SimulatedOptions> {
    let cpu = SimulatedOptions {
        kind: DeviceKind::Cpu,
        ..without("cpu", &[])
    };
    let gpu = SimulatedOptions {
        kind: DeviceKind::Gpu,
        flops_per_ns: 1e6,
        bytes_per_ns: 1e6,
        latency_ns: 1.0,
        ..without("gpu", &[])
    };
    vec![cpu, gpu]
}

fn placed(
    graph: &Graph,
    devices: Vec<SimulatedOptions>,
    change: impl Fn(&mut Policy),
) -> Vec<usize> {
    let world = World::new(graph, devices, Homes::all_on(device(0)));
    let mut policy = Policy::default();
    policy.check_plan = true;
    change(&mut policy);
    let plan = compile(graph, &world.session, &policy).unwrap();
    plan.kernels()
        .iter()
        .map(|kernel| kernel.device.index())
        .collect()
}

#[test]
fn time_decides_unless_a_kind_of_device_is_preferred() {
    let graph = products(4);
    assert_eq!(placed(&graph, pair(), |_| {}), [1, 1, 1]);
    assert_eq!(
        placed(&graph, pair(), |policy| policy.preference = Preference::Cpu),
        [0, 0, 0]
    );
    let slow = || {
        let mut devices = pair();
        devices[1].latency_ns = 1e9;
        devices
    };
    assert_eq!(placed(&graph, slow(), |_| {}), [0, 0, 0]);
    assert_eq!(
        placed(&graph, slow(), |policy| policy.preference = Preference::Gpu),
        [1, 1, 1]
    );
}

#[test]
fn a_preferred_device_does_only_what_it_supports() {
    let mut devices = pair();
    devices[1] = SimulatedOptions {
        kind: DeviceKind::Gpu,
        ..without("gpu", &["softmax"])
    };
    let placed = placed(&products(4), devices, |policy| {
        policy.preference = Preference::Gpu
    });
    assert_eq!(placed, [1, 0, 1]);
}

#[test]
fn small_work_stays_on_the_cpu_if_thresholds_say_so() {
    let limit = |policy: &mut Policy| {
        policy.thresholds.min_product_flops = 100_000;
        policy.thresholds.min_elements = 100;
    };
    // 4 rows: 8192 operations and 128 elements; 64 rows: 131072 operations.
    assert_eq!(placed(&products(4), pair(), limit), [0, 0, 0]);
    assert_eq!(placed(&products(64), pair(), limit), [1, 1, 1]);
    let limit = |policy: &mut Policy| policy.thresholds.min_elements = 1 << 20;
    assert_eq!(placed(&products(64), pair(), limit), [1, 0, 1]);
}

#[test]
fn every_node_has_a_reason_to_be_where_it_is() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let w = graph.weight("w", DType::F32, &[4, 4]).unwrap();
    let x = graph.softmax(a, None, 1.0).unwrap();
    let scale = Op::from(Scale { scale: 2.0 });
    graph.apply_in_place(scale, &[x]).unwrap();
    let y = graph.matmul(w, x).unwrap();
    let z = graph.l2_norm(y, 1e-6).unwrap();
    graph.set_output(z, "z").unwrap();
    let mut devices = pair();
    devices[1] = SimulatedOptions {
        flops_per_ns: 1e6,
        bytes_per_ns: 1e6,
        latency_ns: 1.0,
        ..without("gpu", &["softmax"])
    };
    let world = World::new(
        &graph,
        devices,
        Homes::all_on(device(1)).pin("z", device(0)),
    );
    let plan = world.compile(&graph).unwrap();
    let why: Vec<PlacementReason> = plan.explain().into_iter().map(|node| node.why).collect();
    let owner = PlacementReason::Owner {
        op: "softmax",
        node: 0,
        reason: Reason::Op { op: "softmax" },
    };
    let pinned = PlacementReason::Pinned {
        pattern: "z".into(),
    };
    assert_eq!(
        why,
        [
            PlacementReason::OnlyDevice,
            owner,
            PlacementReason::SavesCopies,
            pinned
        ]
    );
}

#[test]
fn what_keeps_a_node_off_its_fastest_device_is_the_reason() {
    let (cpu, gpu) = (device(0), device(1));
    let reasons = |homes: Homes, change: &dyn Fn(&mut Policy)| -> Vec<PlacementReason> {
        let graph = products(4);
        let world = World::new(&graph, pair(), homes);
        let mut policy = Policy::default();
        change(&mut policy);
        let plan = compile(&graph, &world.session, &policy).unwrap();
        plan.explain().into_iter().map(|node| node.why).collect()
    };
    let on_cpu = Homes::all_on(cpu);
    let three = |reason: PlacementReason| vec![reason; 3];
    let found = reasons(on_cpu.clone(), &|_| {});
    assert_eq!(found, three(PlacementReason::Fastest));
    let found = reasons(on_cpu.clone(), &|policy| {
        policy.preference = Preference::Cpu
    });
    assert_eq!(found, three(PlacementReason::Preferred));
    let found = reasons(on_cpu.clone(), &|policy| {
        policy.thresholds.min_product_flops = 100_000;
        policy.thresholds.min_elements = 1000;
    });
    assert_eq!(found, three(PlacementReason::BelowThresholds));
    let found = reasons(on_cpu.clone().budget(gpu, 1), &|_| {});
    let (joins, moved) = (PlacementReason::SavesCopies, PlacementReason::Budget);
    assert_eq!(found, [joins.clone(), joins, moved]);
    // The budget moves the nodes to a device that the preference allows, the preference excludes
    // the fastest one.
    let slow = |id| SimulatedOptions {
        kind: DeviceKind::Gpu,
        latency_ns: 1e6,
        ..without(id, &[])
    };
    let devices = vec![pair().remove(0), slow("gpu0"), slow("gpu1")];
    let graph = products(64);
    let world = World::new(&graph, devices, on_cpu.clone().budget(gpu, 1));
    let mut policy = Policy::default();
    policy.preference = Preference::Gpu;
    let plan = compile(&graph, &world.session, &policy).unwrap();
    for node in plan.explain() {
        assert_eq!(
            (node.device, node.why),
            (device(2), PlacementReason::Preferred)
        );
    }
    let pattern = "*".to_owned();
    let found = reasons(on_cpu.pin(&pattern, cpu), &|_| {});
    assert_eq!(found, three(PlacementReason::Pinned { pattern }));
}

/// `y = 2 a`, column by column turned, `z = y + y`.
fn observed() -> (Graph, [ValueId; 2]) {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 3]).unwrap();
    let y = graph.scale(a, 2.0).unwrap();
    let turned = graph.permute(y, &[1, 0]).unwrap();
    let z = graph.add(turned, turned).unwrap();
    graph.set_output(z, "z").unwrap();
    (graph, [a, turned])
}

fn one_by_one(graph: &Graph) -> (World, Plan) {
    let devices = vec![without("a", &["add"]), without("b", &["scale"])];
    let world = World::new(graph, devices, Homes::all_on(device(0)));
    let mut policy = Policy::default();
    policy.max_segment_nodes = NonZeroUsize::new(1);
    let plan = compile(graph, &world.session, &policy).unwrap();
    (world, plan)
}

#[test]
fn an_observer_sees_the_result_of_each_node() {
    let (graph, [a, turned]) = observed();
    let (_world, plan) = one_by_one(&graph);
    let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut seen: Vec<(usize, Vec<f32>)> = Vec::new();
    let mut observer = |evaluated: &kovar_runtime::ObservedSegment<'_>| {
        let node = evaluated.graph().node(evaluated.nodes()[0]).unwrap();
        seen.push((
            evaluated.device().index(),
            floats(&evaluated.read(node.output()).unwrap()),
        ));
        if seen.len() == 2 {
            let value = graph.value(turned).unwrap();
            assert_eq!(
                floats(&evaluated.read(value).unwrap()),
                [2.0, 8.0, 4.0, 10.0, 6.0, 12.0]
            );
        }
        ControlFlow::Continue(())
    };
    plan.run_observed(&[(a, HostSlice::f32(&data))], &[], Some(&mut observer))
        .unwrap();
    let expected = [
        (0, vec![2.0, 4.0, 6.0, 8.0, 10.0, 12.0]),
        (1, vec![4.0, 16.0, 8.0, 20.0, 12.0, 24.0]),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn later_nodes_work_on_what_an_observer_puts_in_the_place_of_a_result() {
    let (graph, [a, turned]) = observed();
    let (_world, plan) = one_by_one(&graph);
    let others = bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut refused = None;
    let mut observer = |evaluated: &kovar_runtime::ObservedSegment<'_>| {
        if evaluated.device() == device(0) {
            let value = graph.value(turned).unwrap();
            refused = evaluated.replace(value, &others[..20]).err();
            evaluated.replace(value, &others).unwrap();
            assert_eq!(evaluated.read(value).unwrap(), others);
        }
        ControlFlow::Continue(())
    };
    let data = [0.0f32; 6];
    let outputs = plan
        .run_observed(&[(a, HostSlice::f32(&data))], &[], Some(&mut observer))
        .unwrap();
    let mut z = [0; 24];
    outputs.read(plan.output("z").unwrap(), &mut z).unwrap();
    assert_eq!(floats(&z), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    assert!(matches!(refused, Some(RunError::OutputSize { .. })));
}

#[test]
fn an_observer_can_cancel_a_run_and_the_plan_can_be_run_again() {
    let (graph, [a, _]) = observed();
    let (world, plan) = one_by_one(&graph);
    let data = [1.0f32; 6];
    let inputs = [(a, HostSlice::f32(&data))];
    let cancel = AtomicBool::new(true);
    let mut observer = |_: &kovar_runtime::ObservedSegment<'_>| {
        if cancel.load(Ordering::SeqCst) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let error = plan
        .run_observed(&inputs, &[], Some(&mut observer))
        .unwrap_err();
    assert_eq!(error, RunError::Cancelled);
    assert_eq!(world.devices[1].calls(Call::Launch), 0);
    cancel.store(false, Ordering::SeqCst);
    let outputs = plan
        .run_observed(&inputs, &[], Some(&mut observer))
        .unwrap();
    let mut z = [0.0; 6];
    outputs.read_f32(plan.output("z").unwrap(), &mut z).unwrap();
    assert_eq!(z, [4.0; 6]);
}

/// A device on a fast link, which begins a node in `dispatch_ns`.
fn rates(dispatch_ns: f64) -> DeviceRates {
    let link = LinkRates {
        latency_ns: 1.0,
        bytes_per_ns: 1e3,
    };
    DeviceRates {
        launch_ns: 1.0,
        dispatch_ns,
        float_flops_per_ns: Some(10.0),
        quantized_flops_per_ns: Some(40.0),
        read_bytes_per_ns: 1e6,
        upload: link,
        download: link,
    }
}

#[test]
fn measured_rates_take_the_place_of_estimates() {
    let graph = products(4);
    let with = |cpu: DeviceRates, gpu: DeviceRates| {
        placed(&graph, pair(), |policy| {
            let measured = [("cpu", cpu), ("gpu", gpu)].map(|(id, rates)| (id.to_owned(), rates));
            policy.rates.devices.extend(measured);
        })
    };
    assert_eq!(placed(&graph, pair(), |_| {}), [1, 1, 1]);
    assert_eq!(with(rates(1e6), rates(1e9)), [0, 0, 0]);
    assert_eq!(with(rates(1e9), rates(1e6)), [1, 1, 1]);
    let mut far = rates(1e6);
    far.upload.latency_ns = 1e10;
    assert_eq!(with(rates(1e9), far), [0, 0, 0]);
    let mut only_upload = rates(1e6);
    only_upload.download.latency_ns = 1e10;
    assert_eq!(with(rates(1e9), only_upload), [1, 1, 1]);
}

#[test]
fn a_launch_costs_more_than_a_little_speed_gains() {
    // Independent nodes: some that the second device does a little faster, between some that it
    // cannot do.
    let mut graph = Graph::new();
    for i in 0..6 {
        let a = graph.input(&format!("a{i}"), DType::F32, &[4, 32]).unwrap();
        let y = match i % 2 {
            0 => graph.softmax(a, None, 1.0).unwrap(),
            _ => graph.scale(a, 2.0).unwrap(),
        };
        graph.set_output(y, &format!("y{i}")).unwrap();
    }
    let devices = || {
        let mut devices = pair();
        devices[1] = SimulatedOptions {
            kind: DeviceKind::Gpu,
            ..without("gpu", &["softmax"])
        };
        devices
    };
    let with = |launch_ns: f64| {
        let cpu = DeviceRates {
            launch_ns,
            ..rates(1000.0)
        };
        let gpu = DeviceRates {
            launch_ns,
            ..rates(900.0)
        };
        placed(&graph, devices(), |policy| {
            let measured = [("cpu", cpu), ("gpu", gpu)].map(|(id, rates)| (id.to_owned(), rates));
            policy.rates.devices.extend(measured);
        })
    };
    assert_eq!(with(1.0), [0, 1, 0, 1, 0, 1]);
    assert_eq!(with(60.0), [0, 0, 0, 0, 0, 1]);
    assert_eq!(with(1000.0), [0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_node_is_estimated_by_what_bounds_it() {
    let mut graph = Graph::new();
    let q = graph.weight("q", DType::Q8_0, &[32, 32]).unwrap();
    let f = graph.weight("f", DType::F32, &[32, 32]).unwrap();
    let x = graph.input("x", DType::F32, &[10, 32]).unwrap();
    let x = graph.matmul(q, x).unwrap();
    let x = graph.matmul(f, x).unwrap();
    graph.set_output(x, "y").unwrap();
    let times = |rates: DeviceRates| -> Vec<f64> {
        let nodes = graph.node_refs();
        nodes.map(|node| rates.node(node).round()).collect()
    };
    // 2 * 10 * 32 * 32 operations, of 40 or 10 a nanosecond.
    assert_eq!(times(rates(100.0)), [100.0 + 512.0, 100.0 + 2048.0]);
    let mut slow = rates(100.0);
    slow.read_bytes_per_ns = 1.0;
    let activations = 2 * 10 * 32 * 4;
    let traffic = [32 * 34 + activations, 32 * 32 * 4 + activations];
    assert_eq!(times(slow), traffic.map(|bytes| 100.0 + f64::from(bytes)));
    let mut floats = rates(100.0);
    floats.quantized_flops_per_ns = None;
    assert_eq!(times(floats), [2148.0, 2148.0]);
}

#[test]
fn a_device_that_fails_or_can_do_nothing_is_not_measured() {
    let nothing = SimulatedDevice::new(only("npu", &["softmax"]));
    let error = measure(&nothing).unwrap_err();
    assert_eq!(
        error.to_string(),
        "npu: it supports none of the operations that are measured"
    );
    let options = without("gpu", &[]).failing(Call::Launch, 0, FaultKind::Lost);
    let failing = SimulatedDevice::new(options);
    assert!(matches!(
        measure(&failing).unwrap_err(),
        MeasureError::Device(_)
    ));
}
