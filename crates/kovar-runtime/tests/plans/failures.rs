//! Which run, or which call on a session, reports the error of a device.

use kovar_core::{DType, Graph};
use kovar_runtime::{CompileError, Homes, HostSlice, Plan, RunError};
use kovar_testkit::simulated::{Call, Fault, FaultKind, SimulatedOptions};

use crate::world::{World, add_to, data, device, only, reference, without};

/// A state, a weight and a result that cross between two devices.
fn crossing() -> Graph {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let w = graph.weight("w", DType::F32, &[4, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4, 4]).unwrap();
    let x = graph.matmul(w, a).unwrap();
    let x = graph.softmax(x, None, 1.0).unwrap();
    add_to(&mut graph, s, x);
    let y = graph.scale(s, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph
}

/// The devices for [`crossing`].
fn crossing_devices() -> Vec<SimulatedOptions> {
    vec![
        only("a", &["matmul", "add"]),
        only("b", &["softmax", "scale"]),
    ]
}

/// `s += a` and `y = 2 s`.
fn sum() -> Graph {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4, 4]).unwrap();
    add_to(&mut graph, s, a);
    let y = graph.scale(s, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph
}

/// The devices for [`sum`]: only the second computes, and the state has its home on the first.
fn idle_and_busy() -> Vec<SimulatedOptions> {
    vec![only("a", &[]), without("b", &[])]
}

fn alike() -> Vec<SimulatedOptions> {
    vec![without("a", &[]), without("b", &[])]
}

/// A call of a device that times out once.
struct TimesOut(usize, Call, usize);

/// A world whose storages have their home on the first device, and its plan.
fn failing(
    graph: &Graph,
    mut devices: Vec<SimulatedOptions>,
    deferred: bool,
    TimesOut(at, call, nth): TimesOut,
) -> (World, Plan) {
    let kind = FaultKind::TimedOut;
    devices[at].faults.push(Fault { call, nth, kind });
    devices.iter_mut().for_each(|d| d.deferred = deferred);
    let world = World::new(graph, devices, Homes::all_on(device(0)));
    let plan = world.compile(graph).unwrap();
    (world, plan)
}

#[test]
fn a_failing_device_gives_an_error_or_nothing_wrong() {
    let graph = crossing();
    let [expected, _] = reference(&graph);
    let calls = [
        Call::Alloc,
        Call::Prepare,
        Call::Compile,
        Call::Write,
        Call::Read,
        Call::Fill,
        Call::Launch,
    ];
    let kinds = [FaultKind::OutOfMemory, FaultKind::TimedOut, FaultKind::Lost];
    let faults = calls
        .iter()
        .flat_map(|&call| kinds.map(|kind| (call, kind)))
        .flat_map(|(call, kind)| (0..4).map(move |nth| Fault { call, nth, kind }));
    let faults: Vec<Fault> = faults.collect();
    for at in 0..2 {
        let mut failures = 0;
        for (&fault, deferred) in faults.iter().flat_map(|f| [(f, false), (f, true)]) {
            let devices = crossing_devices().into_iter();
            let mut devices: Vec<_> = devices.map(|device| device.deferred(deferred)).collect();
            devices[at].faults.push(fault);
            let world = World::new(&graph, devices, Homes::all_on(device(1)));
            let plan = world.compile(&graph).ok();
            match plan.and_then(|plan| world.try_run(&plan, 1).ok()) {
                Some(found) => assert_eq!(found, expected, "{fault:?} on {at}"),
                None => failures += 1,
            }
        }
        assert!(failures > 40, "{failures} of {at}");
    }
}

#[test]
fn a_failed_copy_home_is_reported_by_its_run() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for deferred in [false, true] {
        // The first write on the first device is the copy home of the first run.
        let fault = TimesOut(0, Call::Write, 0);
        let (world, plan) = failing(&graph, idle_and_busy(), deferred, fault);
        let error = world.try_run(&plan, 1).unwrap_err();
        assert!(
            matches!(error.downcast_ref(), Some(RunError::Device(_))),
            "{error}"
        );
        world.session.reset_states().unwrap();
        assert_eq!(world.run(&plan, 1), expected);
    }
}

#[test]
fn a_run_that_failed_reports_it_each_time() {
    let graph = sum();
    for (at, call) in [(0, Call::Write), (1, Call::Launch)] {
        let (_world, plan) = failing(&graph, idle_and_busy(), true, TimesOut(at, call, 0));
        let a = data(&graph.storages()[0], 1);
        let inputs = [(plan.input("a").unwrap(), HostSlice::raw(&a))];
        let outputs = plan.run(&inputs, &[]).unwrap();
        let y = plan.output("y").unwrap();
        let mut bytes = vec![0; 64];
        let first = outputs.wait().unwrap_err();
        assert_eq!(outputs.wait(), Err(first.clone()));
        assert_eq!(outputs.read(y, &mut bytes), Err(first));
        assert_eq!(bytes, [0; 64]);
    }
}

/// Runs a plan, waits for it, and reads nothing.
fn wait_for(plan: &Plan) -> Result<(), RunError> {
    let a = data(&plan.graph().storages()[0], 1);
    let inputs = [(plan.input("a").unwrap(), HostSlice::raw(&a))];
    plan.run(&inputs, &[]).and_then(|outputs| outputs.wait())
}

#[test]
fn waiting_waits_for_every_device() {
    for at in 0..2 {
        let devices = vec![only("a", &["add"]), only("b", &["scale"])];
        let (_world, plan) = failing(&sum(), devices, true, TimesOut(at, Call::Launch, 0));
        let done = wait_for(&plan);
        assert!(matches!(done, Err(RunError::Device(_))), "{at}: {done:?}");
    }
}

#[test]
fn a_run_does_not_report_an_error_that_the_run_before_has_reported() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for deferred in [false, true] {
        let fault = TimesOut(0, Call::Launch, 0);
        let (world, plan) = failing(&graph, alike(), deferred, fault);
        assert!(wait_for(&plan).is_err());
        // The first run left the state as it was.
        assert_eq!(world.run(&plan, 1), expected);
    }
}

#[test]
fn an_error_that_no_call_waited_for_is_reported_by_the_next_run_alone() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for (deferred, compiles) in [(false, false), (false, true), (true, false), (true, true)] {
        let fault = TimesOut(0, Call::Launch, 0);
        let (world, plan) = failing(&graph, alike(), deferred, fault);
        world.begin(&plan, 1);
        if compiles {
            world.compile(&graph).unwrap();
            world.session.write_state("s", 0, &[0; 64]).unwrap();
        }
        assert!(world.try_run(&plan, 1).is_err());
        assert_eq!(world.run(&plan, 1), expected);
    }
}

#[test]
fn a_run_that_could_not_be_queued_leaves_no_error_for_the_next() {
    let graph = crossing();
    let [expected, _] = reference(&graph);
    // The first read on b fails, which ends the run, and a write on a that nothing waits for.
    let failing = crossing_devices()
        .into_iter()
        .zip([Call::Write, Call::Read]);
    let devices = failing.map(|(device, call)| device.failing(call, 0, FaultKind::TimedOut));
    let devices = devices.collect();
    let world = World::new(&graph, devices, Homes::all_on(device(1)));
    let plan = world.compile(&graph).unwrap();
    assert!(world.try_run(&plan, 1).is_err());
    world.session.reset_states().unwrap();
    assert_eq!(world.run(&plan, 1), expected);
}

#[test]
fn a_state_is_not_kept_if_its_zeros_failed() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for deferred in [false, true] {
        let options = without("a", &[]).deferred(deferred);
        let options = options.failing(Call::Fill, 0, FaultKind::TimedOut);
        let world = World::new(&graph, vec![options], Homes::all_on(device(0)));
        let error = world.compile(&graph).unwrap_err();
        assert!(matches!(error, CompileError::Device(_)), "{error}");
        assert_eq!(world.session.states(), []);
        let plan = world.compile(&graph).unwrap();
        assert_eq!(world.run(&plan, 1), expected);
    }
}

#[test]
fn a_reset_that_failed_reports_it() {
    let graph = sum();
    for deferred in [false, true] {
        let options = without("a", &[])
            .deferred(deferred)
            .failing(Call::Fill, 1, FaultKind::TimedOut)
            .failing(Call::Write, 1, FaultKind::TimedOut);
        let world = World::new(&graph, vec![options], Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        world.run(&plan, 1);
        assert!(world.session.reset_states().is_err());
        assert!(world.session.write_state("s", 0, &[1; 64]).is_err());
        world.session.write_state("s", 0, &[1; 64]).unwrap();
        assert_eq!(world.state("s").unwrap(), [1; 64]);
    }
}
