//! Runs return before their work is done, and overlap on the queues of several devices.

use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::{Homes, Plan};
use kovar_testkit::simulated::{Call, Event, Events, FaultKind, SimulatedOptions, Stage};

use crate::world::{World, bytes, device, floats, only, section, without};

/// `y = softmax(2 a)`, `z = 3 y`, with every second node on the other device. Work is deferred.
fn example() -> (World, Plan) {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 4]).unwrap();
    let x = graph.scale(a, 2.0).unwrap();
    let y = graph.softmax(x, None, 1.0).unwrap();
    let z = graph.scale(y, 3.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(z, "z").unwrap();
    let devices = vec![only("cpu", &["scale"]), only("gpu", &["softmax"])];
    let devices = devices.into_iter().map(|device| device.deferred(true));
    let world = World::new(&graph, devices.collect(), Homes::all_on(device(0)));
    let plan = world.compile(&graph).unwrap();
    (world, plan)
}

#[test]
fn the_description_shows_segments_copies_and_memory() {
    let (_, plan) = example();
    let expected = "\
segments: 3
  0: cpu, 1 node (0 to 0), 8 operations
  1: gpu, 1 node (1 to 1), 48 operations
  2: cpu, 1 node (2 to 2), 8 operations
";
    assert_eq!(section(&plan, "segments"), expected);
    let expected = "\
copies: 2, 64 bytes
  scale.0[0..32] from cpu after 0 to gpu before 1
  y[0..32] from gpu after 1 to cpu before 2
";
    assert_eq!(section(&plan, "copies"), expected);
    let expected = "\
memory:
  cpu: 128 bytes in 1 buffer, the lower bound is 128
  gpu: 128 bytes in 1 buffer, the lower bound is 128
  input `a` on cpu: buffer 0, bytes 0..64
  temporary `scale.0` on cpu: buffer 0, bytes 64..128
  temporary `scale.0` on gpu: buffer 0, bytes 0..64
  output `y` on cpu: buffer 0, bytes 0..64
  output `y` on gpu: buffer 0, bytes 64..128
  output `z` on cpu: buffer 0, bytes 64..128
";
    assert_eq!(section(&plan, "memory"), expected);
}

#[test]
fn a_run_returns_before_its_work_is_done() {
    let (world, plan) = example();
    let launches = || [0, 1].map(|at: usize| world.devices[at].calls(Call::Launch));
    let a = [1.0f32; 8];
    let outputs = plan.run(&[(plan.input("a").unwrap(), (&a).into())], &[]);
    let outputs = outputs.unwrap();
    // It does not wait for the copies between devices either.
    assert_eq!(launches(), [0, 0]);
    outputs
        .read_f32(plan.output("z").unwrap(), &mut [0.0; 8])
        .unwrap();
    assert_eq!(launches(), [2, 1]);
}

#[test]
fn inputs_of_the_next_run_are_written_before_a_run_has_finished() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 2]).unwrap();
    let sum = graph.state("sum", DType::F32, &[2, 2]).unwrap();
    let x = graph.scale(a, 2.0).unwrap();
    let total = graph.add(sum, x).unwrap();
    graph.copy_into(total, sum).unwrap();
    graph.set_output(total, "total").unwrap();
    let devices = vec![SimulatedOptions::default().deferred(true)];
    let world = World::new(&graph, devices, Homes::all_on(device(0)));
    let plan = world.compile(&graph).unwrap();
    let launches = || world.devices[0].calls(Call::Launch);
    let mut tickets = Vec::new();
    for run in 1..=3 {
        let mut input = [run as f32; 4];
        let outputs = plan.run(&[(a, (&input).into())], &[]).unwrap();
        tickets.push(outputs.ticket(total).unwrap());
        // The run has taken a copy of its inputs.
        input.fill(f32::NAN);
    }
    assert_eq!(launches(), 0, "no run has begun");
    let last = tickets.pop().unwrap();
    assert_eq!(floats(&last.wait().unwrap()), [12.0; 4]);
    assert_eq!(launches(), 3);
    for (ticket, expected) in tickets.into_iter().zip([2.0, 6.0]) {
        assert_eq!(floats(&ticket.wait().unwrap()), [expected; 4]);
    }
}

#[test]
fn runs_over_several_devices_overlap_and_keep_their_results() {
    let (world, plan) = example();
    let (a, z) = (plan.input("a").unwrap(), plan.output("z").unwrap());
    let inputs = [[1.0f32, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 200.0]].map(|row| [row, row].concat());
    let mut tickets = Vec::new();
    for (run, input) in inputs.iter().enumerate() {
        let outputs = plan.run(&[(a, input.as_slice().into())], &[]).unwrap();
        tickets.push(outputs.ticket(z).unwrap());
        // A run waits for its first segment, which comes after the last segment of the run before.
        let cpu = world.devices[0].calls(Call::Launch);
        assert_eq!(cpu, 2 * run + 1);
    }
    let expected = [[0.75f32; 4], [0.0, 0.0, 0.0, 3.0]];
    for (ticket, row) in tickets.into_iter().zip(expected).rev() {
        assert_eq!(floats(&ticket.wait().unwrap()), [row, row].concat());
    }
}

/// `x = a + s_0 + .. + s_n`, each state on a device of its own and replaced by the sum up to it.
fn pipeline(devices: usize) -> (Graph, ValueId, Homes) {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 2]).unwrap();
    let (mut x, mut homes) = (a, Homes::all_on(device(0)));
    for i in 0..devices {
        let state = graph.state(&format!("s{i}"), DType::F32, &[2, 2]).unwrap();
        x = graph.add(x, state).unwrap();
        graph.copy_into(x, state).unwrap();
        homes = homes
            .pin(&format!("s{i}"), device(i))
            .pin(&format!("add.{}", 2 * i), device(i));
    }
    (graph, a, homes)
}

/// Devices whose work is deferred, and the log of their queues.
fn late(n: usize) -> (Vec<SimulatedOptions>, Events) {
    let events = Events::new();
    let ids = ["one", "two", "three", "four"].into_iter().take(n);
    let devices = ids.map(|id| SimulatedOptions {
        events: Some(events.clone()),
        ..without(id, &[]).deferred(true)
    });
    (devices.collect(), events)
}

#[test]
fn devices_work_on_later_runs_while_those_after_them_work_on_earlier_ones() {
    const RUNS: usize = 6;
    for n in 2..=4 {
        let (graph, a, homes) = pipeline(n);
        let (devices, events) = late(n);
        let ids: Vec<String> = devices.iter().map(|device| device.id.clone()).collect();
        let world = World::new(&graph, devices, homes);
        let plan = world.compile(&graph).unwrap();
        assert_eq!(plan.schedule().segments.len(), n, "{}", plan.describe());
        for run in 1..=RUNS {
            plan.run(&[(a, (&[run as f32; 4]).into())], &[]).unwrap();
        }
        world.session.wait().unwrap();
        let events = events.all();
        let when = |device: &str, stage: Stage, run: usize| {
            let launch = |event: &&Event| event.call == Call::Launch && event.device == device;
            let mut events = events.iter().enumerate().filter(|(_, event)| launch(event));
            let found = events.find(|(_, event)| (event.stage, event.nth) == (stage, run));
            found.unwrap().0
        };
        for pair in ids.windows(2) {
            for run in 0..RUNS - 1 {
                let earlier = when(&pair[1], Stage::Done, run);
                let later = when(&pair[0], Stage::Queued, run + 1);
                assert!(
                    later < earlier,
                    "{n} devices, {pair:?}, run {run}: {events:?}"
                );
            }
        }
        // At most one run for each device is in flight.
        for run in 0..RUNS - n - 1 {
            let done = when(&ids[n - 1], Stage::Queued, run);
            assert!(done < when(&ids[0], Stage::Queued, run + n + 1));
        }
        // s_i(n) = s_(i-1)(n) + s_i(n - 1)
        let mut expected = vec![0.0f32; n];
        for run in 1..=RUNS {
            let mut sum = run as f32;
            for state in &mut expected {
                sum += *state;
                *state = sum;
            }
        }
        for (i, expected) in expected.into_iter().enumerate() {
            let state = world.state(&format!("s{i}")).unwrap();
            assert_eq!(state, bytes(&[expected; 4]), "s{i} of {n}");
        }
    }
}

#[test]
fn a_state_is_read_after_all_runs_so_far() {
    let (graph, a, homes) = pipeline(2);
    let (devices, _) = late(2);
    let world = World::new(&graph, devices, homes);
    let plan = world.compile(&graph).unwrap();
    for run in 1..=3 {
        plan.run(&[(a, (&[run as f32; 4]).into())], &[]).unwrap();
    }
    assert_eq!(world.state("s1").unwrap(), bytes(&[1.0 + 3.0 + 6.0; 4]));
}

#[test]
fn plans_take_turns_on_the_devices_that_they_share() {
    let (graph, a, homes) = pipeline(3);
    // Only the device in the middle.
    let mut other = Graph::new();
    let b = other.input("b", DType::F32, &[2, 2]).unwrap();
    let state = other.state("s1", DType::F32, &[2, 2]).unwrap();
    let x = other.mul(b, state).unwrap();
    other.copy_into(x, state).unwrap();
    let (devices, _) = late(3);
    let world = World::new(&graph, devices, homes.pin("mul.0", device(1)));
    let plans = [&graph, &other].map(|graph| world.compile(graph).unwrap());
    let (ones, twos) = ([1.0f32; 4], [2.0f32; 4]);
    for _ in 0..2 {
        plans[0].run(&[(a, (&ones).into())], &[]).unwrap();
        plans[1].run(&[(b, (&twos).into())], &[]).unwrap();
    }
    // 1, doubled, 2 more, doubled.
    assert_eq!(world.state("s1").unwrap(), bytes(&[8.0; 4]));
    assert_eq!(world.state("s2").unwrap(), bytes(&[1.0 + 4.0; 4]));
}

#[test]
fn a_run_that_fails_in_flight_voids_those_after_it_and_is_reported_once() {
    for at in 0..3 {
        for nth in 0..4 {
            let (graph, a, homes) = pipeline(3);
            let (mut devices, _) = late(3);
            let device = devices.remove(at);
            let device = device.failing(Call::Launch, nth, FaultKind::TimedOut);
            devices.insert(at, device);
            let world = World::new(&graph, devices, homes);
            let plan = world.compile(&graph).unwrap();
            let ones = [1.0f32; 4];
            let mut reported = 0;
            for _ in 0..4 {
                reported += usize::from(plan.run(&[(a, (&ones).into())], &[]).is_err());
            }
            reported += usize::from(world.session.wait().is_err());
            assert_eq!(reported, 1, "launch {nth} of {at}");
            world.session.reset_states().unwrap();
            plan.run(&[(a, (&ones).into())], &[]).unwrap();
            for i in 0..3 {
                let state = world.state(&format!("s{i}")).unwrap();
                assert_eq!(state, bytes(&[1.0; 4]));
            }
        }
    }
}
