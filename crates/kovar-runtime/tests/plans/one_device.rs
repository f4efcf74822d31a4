//! Plans on one device: inputs, outputs, scalars, errors and the description.

use std::sync::{Arc, Mutex};

use kovar_core::error::DeviceError;
use kovar_core::ops::{Binary, BinaryKind, Op, Scale};
use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::{HostSlice, Plan, Policy, RunError, Session, compile};
use kovar_testkit::simulated::{Call, FaultKind, SimulatedDevice, SimulatedOptions};

use crate::world::{bytes, floats, two_inputs};

fn session(options: SimulatedOptions) -> (Arc<SimulatedDevice>, Session) {
    let device = Arc::new(SimulatedDevice::new(SimulatedOptions {
        alignment: 16,
        program_bytes: 2,
        ..options
    }));
    let session = Session::new(vec![device.clone()]).unwrap();
    (device, session)
}

/// `y = (a + b) * b`
fn example() -> (Graph, [ValueId; 3]) {
    let (mut graph, a, b) = two_inputs(3);
    let sum = graph.add(a, b).unwrap();
    let y = graph.mul(sum, b).unwrap();
    graph.set_output(y, "y").unwrap();
    (graph, [a, b, y])
}

fn compiled(graph: &Graph) -> (Arc<SimulatedDevice>, Plan) {
    compiled_for(graph, SimulatedOptions::new("sim"))
}

fn compiled_for(graph: &Graph, options: SimulatedOptions) -> (Arc<SimulatedDevice>, Plan) {
    let (device, session) = session(options);
    let plan = compile(graph, &session, &Policy::default()).unwrap();
    (device, plan)
}

#[test]
fn a_plan_can_be_run_again_with_other_inputs() {
    let (graph, [a, b, y]) = example();
    let (device, plan) = compiled(&graph);
    let mut result = [0.0; 3];
    for i in 0..3 {
        let x = [i as f32, 1.0, 2.0];
        let outputs = plan
            .run(&[(b, (&[2.0f32; 3]).into()), (a, (&x).into())], &[])
            .unwrap();
        outputs.read_f32(y, &mut result).unwrap();
        assert_eq!(result, [2.0 * (x[0] + 2.0), 6.0, 8.0]);
    }
    let allocated = device.allocated_bytes();
    let outputs = plan.run(
        &[(a, (&[0.0f32; 3]).into()), (b, (&[0.0f32; 3]).into())],
        &[],
    );
    outputs.unwrap().wait().unwrap();
    assert_eq!(device.allocated_bytes(), allocated);
    assert_eq!(device.calls(Call::Launch), 4);
}

#[test]
fn in_place_chains_and_views_give_what_separate_buffers_do() {
    let (mut graph, a, b) = two_inputs(6);
    let scale = |scale| Op::from(Scale { scale });
    let x = graph.add(a, b).unwrap();
    graph.apply_in_place(scale(2.0), &[x]).unwrap();
    let tail = graph.slice(x, 0, 3..6).unwrap();
    graph.apply_in_place(scale(-1.0), &[tail]).unwrap();
    let head = graph.slice(x, 0, 0..3).unwrap();
    let kind = BinaryKind::Add;
    let y = graph
        .apply(Op::from(Binary { kind }), &[head, tail])
        .unwrap();
    let z = graph.scale(x, 1.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(z, "z").unwrap();
    let (_, plan) = compiled(&graph);
    let inputs = [
        (a, HostSlice::f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
        (b, HostSlice::f32(&[1.0; 6])),
    ];
    let outputs = plan.run(&inputs, &[]).unwrap();
    let (mut small, mut large) = ([0.0; 3], [0.0; 6]);
    outputs.read_f32(y, &mut small).unwrap();
    outputs.read_f32(z, &mut large).unwrap();
    assert_eq!(small, [-6.0, -6.0, -6.0]);
    assert_eq!(large, [4.0, 6.0, 8.0, -10.0, -12.0, -14.0]);
}

#[test]
fn a_window_of_an_output_can_be_read() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 2]).unwrap();
    let y = graph.scale(x, 1.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let last = graph.slice(y, 0, 1..2).unwrap();
    let column = graph.slice(y, 1, 1..2).unwrap();
    let (_, plan) = compiled(&graph);
    let outputs = plan
        .run(&[(x, (&[1.0f32, 2.0, 3.0, 4.0]).into())], &[])
        .unwrap();
    let mut row = [0.0; 2];
    outputs.read_f32(last, &mut row).unwrap();
    assert_eq!(row, [3.0, 4.0]);
    let ticket = outputs.ticket(last).unwrap();
    drop(outputs);
    assert_eq!(floats(&ticket.wait().unwrap()), [3.0, 4.0]);
    let outputs = plan.run(&[(x, (&[0.0f32; 4]).into())], &[]).unwrap();
    let error = outputs.read_f32(column, &mut row).unwrap_err();
    assert!(matches!(error, RunError::NotReadable { .. }));
    let error = outputs.read_f32(x, &mut [0.0; 4]).unwrap_err();
    assert!(matches!(error, RunError::NotReadable { .. }));
    let error = outputs.read_i32(last, &mut [0; 2]).unwrap_err();
    assert!(matches!(error, RunError::OutputDType { .. }));
    let error = outputs.read_f32(last, &mut [0.0; 3]).unwrap_err();
    let (expected, found) = (8, 12);
    assert_eq!(
        error,
        RunError::OutputSize {
            name: "y".into(),
            expected,
            found
        }
    );
}

#[test]
fn wrong_inputs_are_named_before_anything_runs() {
    let (graph, [a, b, y]) = example();
    let (device, plan) = compiled(&graph);
    let three = HostSlice::f32(&[1.0; 3]);
    let fails = |inputs: &[(ValueId, HostSlice<'_>)]| plan.run(inputs, &[]).unwrap_err();
    assert_eq!(
        fails(&[(a, three)]),
        RunError::MissingInput { name: "b".into() }
    );
    assert_eq!(
        fails(&[(a, three), (b, three), (y, three)]),
        RunError::UnknownInput { index: y.index() }
    );
    assert_eq!(
        fails(&[(a, three), (b, three), (a, three)]),
        RunError::DuplicateInput { name: "a".into() }
    );
    assert_eq!(
        fails(&[(a, three), (b, HostSlice::f32(&[1.0; 4]))]),
        RunError::InputSize {
            name: "b".into(),
            expected: 12,
            found: 16,
        }
    );
    assert_eq!(
        fails(&[(a, HostSlice::i32(&[1; 3])), (b, three)]),
        RunError::InputDType {
            name: "a".into(),
            dtype: DType::F32,
            found: DType::I32,
        }
    );
    let mut larger = Graph::new();
    let far = (0..9).map(|i| larger.input(&i.to_string(), DType::F32, &[3]).unwrap());
    let far = far.last().unwrap();
    assert_eq!(
        fails(&[(a, three), (b, three), (far, three)]),
        RunError::UnknownInput { index: far.index() }
    );
    assert_eq!(
        (device.calls(Call::Write), device.calls(Call::Launch)),
        (0, 0)
    );
    assert!(
        plan.run(&[(a, three), (b, HostSlice::raw(&[0; 12]))], &[])
            .is_ok()
    );
}

#[test]
fn scalars_are_counted_and_held_to_their_range() {
    let (mut graph, [a, b, _]) = example();
    graph.scalar("kv_len", 8).unwrap();
    let launches = Arc::new(Mutex::new(Vec::new()));
    let log = launches.clone();
    let options = SimulatedOptions {
        after_launch: Some(Arc::new(move |launched| {
            log.lock().unwrap().push(launched.scalars().to_vec());
        })),
        ..SimulatedOptions::new("sim")
    };
    let (device, plan) = compiled_for(&graph, options);
    let inputs = [
        (a, HostSlice::f32(&[1.0; 3])),
        (b, HostSlice::f32(&[1.0; 3])),
    ];
    let (expected, found) = (1, 0);
    assert_eq!(
        plan.run(&inputs, &[]).unwrap_err(),
        RunError::ScalarCount { expected, found }
    );
    for value in [-1, 9] {
        assert_eq!(
            plan.run(&inputs, &[value]).unwrap_err(),
            RunError::Scalar {
                name: "kv_len".into(),
                value,
                max: 8,
            }
        );
    }
    assert_eq!(device.calls(Call::Write), 0);
    plan.run(&inputs, &[8]).unwrap();
    assert_eq!(*launches.lock().unwrap(), [[8]]);
}

#[test]
fn a_graph_compiles_any_number_of_times_and_stays_as_it_is() {
    let (graph, [a, b, y]) = example();
    let before = graph.clone();
    let (_, session) = session(SimulatedOptions::new("sim"));
    let mut policy = Policy::default();
    policy.check_plan = true;
    for reuse in [true, false, true] {
        policy.reuse_memory = reuse;
        let plan = compile(&graph, &session, &policy).unwrap();
        let inputs = [(a, (&[1.0f32; 3]).into()), (b, (&[2.0f32; 3]).into())];
        let mut result = [0.0; 3];
        let outputs = plan.run(&inputs, &[]).unwrap();
        outputs.read_f32(y, &mut result).unwrap();
        assert_eq!(result, [6.0; 3]);
    }
    assert_eq!(graph, before);
}

#[test]
fn inputs_and_outputs_are_found_by_name() {
    let (graph, [a, b, y]) = example();
    let (_, plan) = compiled(&graph);
    assert_eq!(plan.input("a"), Some(a));
    assert_eq!(plan.input("b"), Some(b));
    assert_eq!(plan.output("y"), Some(y));
    assert_eq!((plan.input("y"), plan.output("a")), (None, None));
}

#[test]
fn an_input_that_no_node_reads_is_asked_for_but_not_written() {
    let (mut graph, a, b) = two_inputs(2);
    let y = graph.scale(a, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let (device, plan) = compiled(&graph);
    let two = HostSlice::f32(&[1.0, 2.0]);
    assert!(plan.run(&[(a, two)], &[]).is_err());
    plan.run(&[(a, two), (b, two)], &[]).unwrap();
    assert_eq!(device.calls(Call::Write), 1);
}

#[test]
fn storages_without_bytes_are_legal() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[0, 3]).unwrap();
    let ids = graph.input("ids", DType::I32, &[0]).unwrap();
    let state = graph.state("s", DType::F32, &[0, 3]).unwrap();
    let full = graph.state("full", DType::F32, &[2, 3]).unwrap();
    let y = graph.scale(x, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.copy_into(y, state).unwrap();
    graph.set_rows(full, x, ids).unwrap();
    let (_, plan) = compiled(&graph);
    let inputs = [(x, HostSlice::f32(&[])), (ids, HostSlice::i32(&[]))];
    let outputs = plan.run(&inputs, &[]).unwrap();
    outputs.read_f32(y, &mut []).unwrap();
    assert_eq!(outputs.ticket(y).unwrap().wait().unwrap(), []);
    let mut rows = [1.0; 6];
    outputs.read_f32(full, &mut rows).unwrap();
    assert_eq!(rows, [0.0; 6]);
}

#[test]
fn a_device_error_comes_back_and_the_plan_can_be_run_again() {
    let (graph, [a, b, y]) = example();
    let options = SimulatedOptions::new("sim").failing(Call::Launch, 0, FaultKind::Refused);
    let (_, plan) = compiled_for(&graph, options);
    let inputs = [
        (a, HostSlice::f32(&[1.0; 3])),
        (b, HostSlice::f32(&[1.0; 3])),
    ];
    let error = plan.run(&inputs, &[]).unwrap_err();
    assert!(matches!(
        error,
        RunError::Device(DeviceError::TimedOut { .. })
    ));
    let mut result = [0.0; 3];
    let outputs = plan.run(&inputs, &[]).unwrap();
    outputs.read_f32(y, &mut result).unwrap();
    assert_eq!(result, [2.0; 3]);
}

#[test]
fn the_description_shows_every_pass() {
    let (graph, _) = example();
    let (_, plan) = compiled(&graph);
    let expected = "\
liveness: 2 of 2 nodes needed
     0  add.0[0..12] = add(a, b)
     1  y[0..12] = mul(add.0, b)
units: 2
  0: add.0 by [0] on sim
  1: y by [1] on sim
placement: 4 storages on 1 device
  sim: 4 storages, 48 bytes
segments: 1
  0: sim, 2 nodes (0 to 1), 6 operations
replicas: 4
  input `a`, 12 bytes on sim: 0..=0
  input `b`, 12 bytes on sim: 0..=1
  temporary `add.0`, 12 bytes on sim: 0..=1
  output `y`, 12 bytes on sim: 1..=1
fusion: 0 groups of 0 nodes
memory:
  sim: 48 bytes in 1 buffer, the lower bound is 48
  input `a`: buffer 0, bytes 0..16
  input `b`: buffer 0, bytes 16..32
  temporary `add.0`: buffer 0, bytes 32..48
  output `y`: buffer 0, bytes 0..16
kernels:
     0  add: add on sim
     1  mul: mul on sim
";
    assert_eq!(plan.describe(), expected);
    let memory = &plan.memory()[0];
    assert_eq!((memory.arena, memory.arena_lower_bound), (48, 48));
    assert_eq!((memory.weights, memory.states, memory.programs), (0, 0, 2));
    let kernels: Vec<&str> = plan.kernels().iter().map(|kernel| kernel.kernel).collect();
    assert_eq!(kernels, ["add", "mul"]);
}

#[test]
fn raw_bytes_are_read_as_they_are() {
    let (graph, [a, b, y]) = example();
    let (_, plan) = compiled(&graph);
    let ones = bytes(&[1.0; 3]);
    let outputs = plan
        .run(&[(a, (&ones).into()), (b, (&ones).into())], &[])
        .unwrap();
    let mut result = [0; 12];
    outputs.read(y, &mut result).unwrap();
    assert_eq!(floats(&result), [2.0; 3]);
}
