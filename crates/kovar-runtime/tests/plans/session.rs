//! Weights, states and memory that the plans of a session share.

use std::sync::Arc;

use kovar_core::{DType, Dims, Graph, HostBytes, ValueId};
use kovar_runtime::{CompileError, HostSlice, Plan, Policy, RunError, Session, SessionError};
use kovar_testkit::simulated::{SimulatedDevice, SimulatedOptions};

use crate::world::{add_to, bytes};

fn device(id: &str) -> Arc<SimulatedDevice> {
    Arc::new(SimulatedDevice::new(SimulatedOptions {
        alignment: 16,
        ..SimulatedOptions::new(id)
    }))
}

fn session() -> (Arc<SimulatedDevice>, Session) {
    let device = device("sim");
    let session = Session::new(vec![device.clone()]).unwrap();
    (device, session)
}

fn host(values: &[f32]) -> HostBytes {
    HostBytes::new(Arc::new(bytes(values)))
}

fn compile(graph: &Graph, session: &Session) -> Result<Plan, CompileError> {
    kovar_runtime::compile(graph, session, &Policy::default())
}

fn dims(sizes: &[usize]) -> Dims {
    Dims::new(sizes).unwrap()
}

/// `y = x * w` with a weight of `n` elements.
fn weighted(n: usize) -> (Graph, ValueId, ValueId) {
    let mut graph = Graph::new();
    let w = graph.weight("w", DType::F32, &[n]).unwrap();
    let x = graph.input("x", DType::F32, &[n]).unwrap();
    let y = graph.mul(x, w).unwrap();
    graph.set_output(y, "y").unwrap();
    (graph, x, y)
}

/// `s = s + x` in place, `y = 1 s`, for a state of `n` elements.
fn accumulator(n: usize) -> (Graph, ValueId, ValueId) {
    let mut graph = Graph::new();
    let state = graph.state("s", DType::F32, &[n]).unwrap();
    let x = graph.input("x", DType::F32, &[n]).unwrap();
    add_to(&mut graph, state, x);
    let y = graph.scale(state, 1.0).unwrap();
    graph.set_output(y, "y").unwrap();
    (graph, x, y)
}

fn result(plan: &Plan, x: ValueId, y: ValueId, values: &[f32]) -> Vec<f32> {
    let mut read = vec![0.0; values.len()];
    let outputs = plan.run(&[(x, HostSlice::f32(values))], &[]).unwrap();
    outputs.read_f32(y, &mut read).unwrap();
    read
}

#[test]
fn a_session_needs_devices_of_different_ids() {
    assert_eq!(
        Session::new(Vec::new()).unwrap_err(),
        SessionError::NoDevices
    );
    let twins = vec![device("a") as _, device("a") as _];
    let error = Session::new(twins).unwrap_err();
    assert_eq!(error, SessionError::DuplicateDevice { id: "a".into() });
}

#[test]
fn a_weight_must_have_the_size_of_its_dims_and_a_name_of_its_own() {
    let (_, session) = session();
    let add =
        |name, dtype, dims: &[usize], n| session.add_weight(name, dtype, dims, host(&vec![0.0; n]));
    add("w", DType::F32, &[2, 3], 6).unwrap();
    assert_eq!(
        add("w", DType::F32, &[2, 3], 6).unwrap_err(),
        SessionError::DuplicateWeight { name: "w".into() }
    );
    assert_eq!(
        add("v", DType::F32, &[2, 3], 5).unwrap_err(),
        SessionError::WeightSize {
            name: "v".into(),
            dtype: DType::F32,
            dims: dims(&[2, 3]),
            expected: 24,
            found: 20,
        }
    );
    for (dtype, sizes) in [
        (DType::F32, &[1; 7][..]),
        (DType::F32, &[usize::MAX, 2]),
        (DType::Q8_0, &[2, 16]),
    ] {
        let error = add("v", dtype, sizes, 0).unwrap_err();
        assert!(matches!(error, SessionError::WeightShape { .. }), "{error}");
    }
    // A weight that was refused can be added as it should be.
    add("v", DType::F32, &[2], 2).unwrap();
}

#[test]
fn a_weight_is_prepared_once_for_all_plans() {
    let (device, session) = session();
    session
        .add_weight("w", DType::F32, &[2], host(&[2.0, 3.0]))
        .unwrap();
    session
        .add_weight("unused", DType::F32, &[1], host(&[0.0]))
        .unwrap();
    let (graph, x, y) = weighted(2);
    assert_eq!(device.prepared(), []);
    let first = compile(&graph, &session).unwrap();
    let second = compile(&graph, &session).unwrap();
    assert_eq!(device.prepared(), [("w".into(), 1)]);
    assert_eq!(result(&first, x, y, &[1.0, 1.0]), [2.0, 3.0]);
    assert_eq!(result(&second, x, y, &[2.0, 2.0]), [4.0, 6.0]);
    assert_eq!(session.memory().unwrap()[0].weights, 8);
    assert_eq!(first.memory()[0].weights, 8);
}

#[test]
fn a_weight_that_the_session_lacks_or_has_otherwise_is_named() {
    let (_, session) = session();
    let (graph, ..) = weighted(2);
    assert_eq!(
        compile(&graph, &session).unwrap_err(),
        SessionError::MissingWeight { name: "w".into() }.into()
    );
    session
        .add_weight("w", DType::F32, &[3], host(&[0.0; 3]))
        .unwrap();
    assert_eq!(
        compile(&graph, &session).unwrap_err(),
        SessionError::Mismatch {
            kind: "weight",
            name: "w".into(),
            wanted_dtype: DType::F32,
            wanted: dims(&[2]),
            found_dtype: DType::F32,
            found: dims(&[3]),
        }
        .into()
    );
}

#[test]
fn plans_share_states_that_start_as_zeros() {
    let (_, session) = session();
    let (graph, x, y) = accumulator(2);
    let prefill = compile(&graph, &session).unwrap();
    assert_eq!(result(&prefill, x, y, &[1.0, 2.0]), [1.0, 2.0]);
    let decode = compile(&graph, &session).unwrap();
    assert_eq!(result(&decode, x, y, &[1.0, 1.0]), [2.0, 3.0]);
    assert_eq!(result(&prefill, x, y, &[1.0, 1.0]), [3.0, 4.0]);
    assert_eq!(session.states().len(), 1);
    assert_eq!(session.memory().unwrap()[0].states, 8);
    session.reset_states().unwrap();
    assert_eq!(result(&decode, x, y, &[0.25, 0.5]), [0.25, 0.5]);
}

#[test]
fn a_saved_state_can_be_written_back() {
    let (_, session) = session();
    let (graph, x, y) = accumulator(2);
    assert_eq!(
        session.read_state("s", 0, &mut [0; 8]).unwrap_err(),
        SessionError::UnknownState { name: "s".into() }
    );
    let plan = compile(&graph, &session).unwrap();
    result(&plan, x, y, &[1.0, 2.0]);
    let mut saved = [0; 8];
    session.read_state("s", 0, &mut saved).unwrap();
    assert_eq!(saved[..], bytes(&[1.0, 2.0]));
    result(&plan, x, y, &[1.0, 2.0]);
    session.write_state("s", 0, &saved).unwrap();
    assert_eq!(result(&plan, x, y, &[0.0, 0.0]), [1.0, 2.0]);
}

#[test]
fn a_range_of_a_state_can_be_read_and_written() {
    let (_, session) = session();
    let (graph, x, y) = accumulator(2);
    let plan = compile(&graph, &session).unwrap();
    result(&plan, x, y, &[1.0, 2.0]);
    let mut second = [0; 4];
    session.read_state("s", 4, &mut second).unwrap();
    assert_eq!(second[..], bytes(&[2.0]));
    session.write_state("s", 0, &second).unwrap();
    assert_eq!(result(&plan, x, y, &[0.0, 0.0]), [2.0, 2.0]);
    for (start, len) in [(4, 8), (9, 0), (usize::MAX, 1)] {
        let error = session.write_state("s", start, &vec![0; len]);
        assert_eq!(
            error.unwrap_err(),
            SessionError::StateRange {
                name: "s".into(),
                bytes: 8,
                start,
                len
            }
        );
    }
}

#[test]
fn a_state_of_another_shape_in_a_later_plan_is_an_error() {
    let (device, session) = session();
    let first = compile(&accumulator(2).0, &session).unwrap();
    let held = device.allocated_bytes();
    assert_eq!(
        compile(&accumulator(3).0, &session).unwrap_err(),
        SessionError::Mismatch {
            kind: "state",
            name: "s".into(),
            wanted_dtype: DType::F32,
            wanted: dims(&[3]),
            found_dtype: DType::F32,
            found: dims(&[2]),
        }
        .into()
    );
    assert_eq!(device.allocated_bytes(), held);
    drop(first);
}

#[test]
fn all_plans_share_one_arena_that_grows_to_the_largest() {
    let (device, session) = session();
    session
        .add_weight("w", DType::F32, &[4], host(&[2.0; 4]))
        .unwrap();
    let (small, x, y) = weighted(4);
    let small = compile(&small, &session).unwrap();
    let arena = |session: &Session| session.memory().unwrap()[0].arena;
    assert_eq!(result(&small, x, y, &[1.0; 4]), [2.0; 4]);
    assert_eq!(arena(&session), 32);
    let (large, large_x, large_y) = accumulator(64);
    let large = compile(&large, &session).unwrap();
    assert_eq!(arena(&session), large.memory()[0].arena);
    let weights_and_states = 16 + 256;
    let held = || device.allocated_bytes() as usize;
    assert_eq!(held(), weights_and_states + arena(&session));
    for _ in 0..2 {
        assert_eq!(result(&small, x, y, &[3.0; 4]), [6.0; 4]);
        large
            .run(&[(large_x, HostSlice::f32(&[1.0; 64]))], &[])
            .unwrap();
    }
    assert_eq!(result(&large, large_x, large_y, &[1.0; 64]), [3.0; 64]);
    assert_eq!(held(), weights_and_states + arena(&session));
    assert_eq!(device.prepared().len(), 1);
}

#[test]
fn a_thread_that_holds_outputs_gets_an_error_instead_of_a_deadlock() {
    let (_, session) = session();
    let (graph, x, y) = accumulator(2);
    let plan = compile(&graph, &session).unwrap();
    let inputs = [(x, HostSlice::f32(&[1.0, 2.0]))];
    let outputs = plan.run(&inputs, &[]).unwrap();
    assert_eq!(plan.run(&inputs, &[]).unwrap_err(), RunError::Busy);
    assert_eq!(
        session.read_state("s", 0, &mut [0; 8]).unwrap_err(),
        SessionError::Busy
    );
    assert_eq!(
        compile(&graph, &session).unwrap_err(),
        SessionError::Busy.into()
    );
    drop(outputs);
    assert_eq!(result(&plan, x, y, &[1.0, 2.0]), [2.0, 4.0]);
}

#[test]
fn two_threads_with_two_plans_do_not_see_each_other_s_activations() {
    let (_, session) = session();
    session
        .add_weight("w", DType::F32, &[8], host(&[3.0; 8]))
        .unwrap();
    let (graph, x, y) = weighted(8);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (session, graph) = (&session, &graph);
            scope.spawn(move || {
                let plan = compile(graph, session).unwrap();
                for i in 0..200 {
                    let value = (i * 2 + thread) as f32;
                    assert_eq!(result(&plan, x, y, &[value; 8]), [3.0 * value; 8]);
                }
            });
        }
    });
}

#[test]
fn a_plan_outlives_the_session_value_that_made_it() {
    let (device, session) = session();
    let (graph, x, y) = accumulator(2);
    let plan = compile(&graph, &session).unwrap();
    drop(session);
    assert_eq!(result(&plan, x, y, &[1.0, 2.0]), [1.0, 2.0]);
    drop(plan);
    assert_eq!(device.allocated_bytes(), 0);
}
