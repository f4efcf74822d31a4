use kovar_core::ops::{Binary, BinaryKind, Op};
use kovar_core::{DType, Graph};
use kovar_runtime::{CompileError, Homes, HostSlice, Plan, RunError};
use kovar_testkit::simulated::{Call, Fault, FaultKind, SimulatedOptions};

use crate::world::{Results, World, data, device, only, reference, simulated};

/// A state, a weight and a result that cross between two devices.
fn crossing() -> Graph {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let w = graph.weight("w", DType::F32, &[4, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4, 4]).unwrap();
    let x = graph.matmul(w, a).unwrap();
    let x = graph.softmax(x, None, 1.0).unwrap();
    let kind = BinaryKind::Add;
    graph
        .apply_in_place(Op::from(Binary { kind }), &[s, x])
        .unwrap();
    let y = graph.scale(s, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph
}

/// What a run leaves, if nothing fails.
fn run(world: &World, plan: &Plan) -> Option<Results> {
    let a = data(&plan.graph().storages()[0], 1);
    let inputs = [(plan.input("a").unwrap(), HostSlice::raw(&a))];
    let outputs = plan.run(&inputs, &[]).ok()?;
    let mut y = vec![0; 64];
    outputs.read(plan.output("y").unwrap(), &mut y).ok()?;
    outputs.wait().ok()?;
    drop(outputs);
    let mut s = vec![0; 64];
    world.session.read_state("s", &mut s).ok()?;
    Some([("y".to_owned(), y), ("s".to_owned(), s)].into())
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
    let mut failures = [0; 2];
    for at in 0..2 {
        for (call, kind, nth) in calls
            .iter()
            .flat_map(|&call| kinds.map(|kind| (call, kind)))
            .flat_map(|(call, kind)| (0..4).map(move |nth| (call, kind, nth)))
        {
            for deferred in [false, true] {
                let mut devices = vec![
                    only("a", &["matmul", "add"]),
                    only("b", &["softmax", "scale"]),
                ];
                for options in &mut devices {
                    options.deferred = deferred;
                }
                let fault = Fault { call, nth, kind };
                let failing: &mut SimulatedOptions = &mut devices[at];
                failing.faults.push(fault);
                let world = World::new(&graph, devices, Homes::all_on(device(1)));
                let found = match world.compile(&graph) {
                    Ok(plan) => run(&world, &plan),
                    Err(_) => None,
                };
                match found {
                    Some(found) => assert_eq!(found, expected, "{fault:?} on {at}"),
                    None => failures[at] += 1,
                }
            }
        }
    }
    assert!(
        failures.iter().all(|&failures| failures > 40),
        "{failures:?}"
    );
}

/// `s += a` and `y = 2 s`.
fn sum() -> Graph {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4, 4]).unwrap();
    let kind = BinaryKind::Add;
    graph
        .apply_in_place(Op::from(Binary { kind }), &[s, a])
        .unwrap();
    let y = graph.scale(s, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph
}

/// What a run leaves in `y`.
fn run_sum(plan: &Plan, seed: u32) -> Result<Vec<u8>, RunError> {
    let a = data(&plan.graph().storages()[0], seed);
    let inputs = [(plan.input("a").unwrap(), HostSlice::raw(&a))];
    let outputs = plan.run(&inputs, &[])?;
    let mut y = vec![0; 64];
    outputs.read(plan.output("y").unwrap(), &mut y)?;
    Ok(y)
}

const fn timed_out(call: Call, nth: usize) -> Fault {
    Fault {
        call,
        nth,
        kind: FaultKind::TimedOut,
    }
}

#[test]
fn a_failed_copy_home_is_told_by_the_run_that_it_belongs_to() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for deferred in [false, true] {
        // Only b computes. The state has its home on a, so that the first write there is the copy
        // home of the first run.
        let mut devices = vec![only("a", &[]), simulated("b", |_| true)];
        devices[0].faults.push(timed_out(Call::Write, 0));
        devices.iter_mut().for_each(|d| d.deferred = deferred);
        let world = World::new(&graph, devices, Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        let error = run_sum(&plan, 1).unwrap_err();
        assert!(matches!(error, RunError::Device(_)), "{error}");
        world.session.reset_states().unwrap();
        assert_eq!(run_sum(&plan, 1).unwrap(), expected["y"]);
    }
}

#[test]
fn a_run_that_failed_tells_so_each_time_it_is_asked() {
    let graph = sum();
    for (at, call) in [(0, Call::Write), (1, Call::Launch)] {
        let mut devices = vec![only("a", &[]), simulated("b", |_| true)];
        devices[at].faults.push(timed_out(call, 0));
        devices.iter_mut().for_each(|d| d.deferred = true);
        let world = World::new(&graph, devices, Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
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

#[test]
fn waiting_waits_for_every_device() {
    let graph = sum();
    for at in 0..2 {
        let mut devices = vec![only("a", &["add"]), only("b", &["scale"])];
        devices[at].faults.push(timed_out(Call::Launch, 0));
        devices.iter_mut().for_each(|d| d.deferred = true);
        let world = World::new(&graph, devices, Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        let a = data(&graph.storages()[0], 1);
        let inputs = [(plan.input("a").unwrap(), HostSlice::raw(&a))];
        let done = plan.run(&inputs, &[]).and_then(|outputs| outputs.wait());
        assert!(matches!(done, Err(RunError::Device(_))), "{at}: {done:?}");
    }
}

#[test]
fn a_run_is_not_blamed_for_what_the_run_before_has_told() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for deferred in [false, true] {
        let mut devices = vec![simulated("a", |_| true), simulated("b", |_| true)];
        devices[0].faults.push(timed_out(Call::Launch, 0));
        devices.iter_mut().for_each(|d| d.deferred = deferred);
        let world = World::new(&graph, devices, Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        let a = data(&graph.storages()[0], 1);
        let inputs = [(plan.input("a").unwrap(), HostSlice::raw(&a))];
        let outputs = plan.run(&inputs, &[]).unwrap();
        assert!(outputs.wait().is_err());
        drop(outputs);
        // Only the state that the first run was to leave is missing.
        assert_eq!(run_sum(&plan, 1).unwrap(), expected["y"]);
    }
}

#[test]
fn what_nobody_waited_for_is_told_by_the_next_run_alone() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for (deferred, compiles) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut devices = vec![simulated("a", |_| true), simulated("b", |_| true)];
        devices[0].faults.push(timed_out(Call::Launch, 0));
        devices.iter_mut().for_each(|d| d.deferred = deferred);
        let world = World::new(&graph, devices, Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        let a = data(&graph.storages()[0], 1);
        let inputs = [(plan.input("a").unwrap(), HostSlice::raw(&a))];
        let drop_a_run = || drop(plan.run(&inputs, &[]).unwrap());
        drop_a_run();
        if compiles {
            world.compile(&graph).unwrap();
            world.session.write_state("s", &[0; 64]).unwrap();
        }
        assert!(run_sum(&plan, 1).is_err());
        assert_eq!(run_sum(&plan, 1).unwrap(), expected["y"]);
    }
}

#[test]
fn a_run_that_could_not_be_queued_leaves_no_error_behind() {
    let graph = crossing();
    let [expected, _] = reference(&graph);
    // The first read on b fails, which ends the run, and a write on a, which nothing waited for.
    let mut devices = vec![
        only("a", &["matmul", "add"]),
        only("b", &["softmax", "scale"]),
    ];
    devices[0].faults.push(timed_out(Call::Write, 0));
    devices[1].faults.push(timed_out(Call::Read, 0));
    let world = World::new(&graph, devices, Homes::all_on(device(1)));
    let plan = world.compile(&graph).unwrap();
    assert_eq!(run(&world, &plan), None);
    world.session.reset_states().unwrap();
    assert_eq!(run(&world, &plan), Some(expected));
}

#[test]
fn a_state_whose_zeros_failed_is_not_kept() {
    let graph = sum();
    let [expected, _] = reference(&graph);
    for deferred in [false, true] {
        let mut options = simulated("a", |_| true);
        options.faults.push(timed_out(Call::Fill, 0));
        options.deferred = deferred;
        let world = World::new(&graph, vec![options], Homes::all_on(device(0)));
        let error = world.compile(&graph).unwrap_err();
        assert!(matches!(error, CompileError::Device(_)), "{error}");
        assert_eq!(world.session.states(), []);
        let plan = world.compile(&graph).unwrap();
        assert_eq!(world.run(&plan, 1), expected);
    }
}

#[test]
fn a_reset_that_failed_says_so() {
    let graph = sum();
    for deferred in [false, true] {
        let mut options = simulated("a", |_| true);
        options.faults.push(timed_out(Call::Fill, 1));
        options.faults.push(timed_out(Call::Write, 1));
        options.deferred = deferred;
        let world = World::new(&graph, vec![options], Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        run_sum(&plan, 1).unwrap();
        assert!(world.session.reset_states().is_err());
        assert!(world.session.write_state("s", &[1; 64]).is_err());
        world.session.write_state("s", &[1; 64]).unwrap();
        let mut bytes = [0; 64];
        world.session.read_state("s", &mut bytes).unwrap();
        assert_eq!(bytes, [1; 64]);
    }
}
