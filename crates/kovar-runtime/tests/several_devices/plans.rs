use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::Homes;
use kovar_runtime::alias::classify;
use kovar_runtime::check::{Violation, check_memory, check_segments};
use kovar_runtime::flow::check_flow;
use kovar_runtime::liveness::{Liveness, analyse};
use kovar_runtime::memory::{MemoryPlan, plan};
use kovar_runtime::placement::{Placement, Rules, place};
use kovar_runtime::segment::{Schedule, Step, schedule};
use kovar_testkit::simulated::{Call, Event, Events, Fault, FaultKind, SimulatedOptions, Stage};

use crate::world::{World, device, only, without};

struct Planned {
    graph: Graph,
    liveness: Liveness,
    placement: Placement,
    schedule: Schedule,
    memory: MemoryPlan,
}

/// `y = softmax(2 a)`, `z = 3 y`, with every second node on the other device.
fn example() -> Planned {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 4]).unwrap();
    let x = graph.scale(a, 2.0).unwrap();
    let y = graph.softmax(x, None, 1.0).unwrap();
    let z = graph.scale(y, 3.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(z, "z").unwrap();
    let devices = vec![only("cpu", &["scale"]), only("gpu", &["softmax"])];
    let homes = Homes::all_on(device(0));
    let world = World::new(&graph, devices, homes.clone());
    let devices = world.session.devices();
    let liveness = analyse(&graph).unwrap();
    let placement = place(&graph, &liveness, devices, &Rules::new(&homes)).unwrap();
    let schedule = schedule(&graph, &liveness, &placement, None);
    let memory = plan(&graph, &liveness, &placement, &schedule, devices, true).unwrap();
    Planned {
        graph,
        liveness,
        placement,
        schedule,
        memory,
    }
}

fn check(plan: &Planned) -> Result<(), Violation> {
    let Planned {
        graph,
        liveness,
        placement,
        schedule,
        memory,
    } = plan;
    check_segments(graph, liveness, placement, schedule)?;
    check_memory(graph, placement, schedule, memory)?;
    check_flow(graph, liveness, placement, schedule, memory)
}

#[test]
fn reads_are_queued_early_and_waited_for_late() {
    let plan = example();
    check(&plan).unwrap();
    let expected = [
        Step::Launch(0),
        Step::Read(0),
        Step::Write(0),
        Step::Launch(1),
        Step::Read(1),
        Step::Write(1),
        Step::Launch(2),
    ];
    assert_eq!(plan.schedule.steps(), expected);
}

#[test]
fn a_missing_copy_is_found() {
    let mut plan = example();
    plan.schedule.copies.remove(0);
    let stale = Violation::Stale {
        node: Some(1),
        storage: "scale.0".into(),
        device: 1,
        bytes: 0..32,
    };
    assert_eq!(check(&plan).unwrap_err(), stale);
}

#[test]
fn a_copy_read_too_early_is_found() {
    let mut plan = example();
    plan.schedule.copies[1].after = None;
    let stale = Violation::Stale {
        node: Some(2),
        storage: "y".into(),
        device: 0,
        bytes: 0..32,
    };
    assert_eq!(check(&plan).unwrap_err(), stale);
}

#[test]
fn a_copy_written_before_it_is_read_is_found() {
    let mut plan = example();
    plan.schedule.copies[1].before = 1;
    let error = check(&plan).unwrap_err();
    assert_eq!(error, Violation::NotRead { copy: 1 });
}

#[test]
fn a_copy_of_too_few_bytes_is_found() {
    let mut plan = example();
    plan.schedule.copies[0].bytes = 0..28;
    let error = check(&plan).unwrap_err();
    assert!(matches!(error, Violation::Stale { node: Some(1), .. }));
}

#[test]
fn a_version_s_segment_on_another_device_is_found() {
    let mut plan = example();
    plan.schedule.segments[1].device = device(0);
    let error = check(&plan).unwrap_err();
    assert!(matches!(error, Violation::WritesForeign { node: 1, .. }));
}

#[test]
fn the_dump_shows_segments_and_copies() {
    let plan = example();
    let homes = Homes::all_on(device(0));
    let devices = vec![only("cpu", &[]), only("gpu", &[])];
    let world = World::new(&plan.graph, devices, homes);
    let devices = world.session.devices();
    let expected = "\
segments: 3
  0: cpu, 1 node (0 to 0), 8 operations
  1: gpu, 1 node (1 to 1), 48 operations
  2: cpu, 1 node (2 to 2), 8 operations
copies: 2, 64 bytes
  scale.0[0..32] from cpu behind 0 to gpu before 1
  y[0..32] from gpu behind 1 to cpu before 2
";
    assert_eq!(plan.schedule.dump(&plan.graph, devices), expected);
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
    assert_eq!(plan.memory.dump(&plan.graph, devices), expected);
}

#[test]
fn storages_that_one_node_writes_are_of_one_class_and_its_writers_of_few_units() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 4]).unwrap();
    let s = graph.state("s", DType::F32, &[4]).unwrap();
    let shifted = graph.token_shift(x, s, None).unwrap();
    let y = graph.softmax(shifted, None, 1.0).unwrap();
    graph.copy_into(y, shifted).unwrap();
    graph.copy_into(x, shifted).unwrap();
    let z = graph.scale(shifted, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(z, "z").unwrap();
    let devices = vec![
        only("a", &["token_shift", "scale"]),
        only("b", &["softmax", "copy", "scale"]),
    ];
    let world = World::new(&graph, devices, Homes::all_on(device(0)));
    let devices = world.session.devices();
    let classes = classify(&graph, &analyse(&graph).unwrap(), devices).unwrap();
    // The first copy is overwritten unread.
    let expected = "\
units: 4
  0: s, token_shift.0 by [0] on a
  1: y by [1] on b
  2: s, token_shift.0 by [2] on b
  3: z by [3] on a or b
";
    assert_eq!(classes.dump(&graph, devices), expected);
}

#[test]
fn a_run_returns_before_work_that_nobody_waits_for_is_done() {
    let example = example();
    let devices = vec![
        deferred(only("cpu", &["scale"])),
        deferred(only("gpu", &["softmax"])),
    ];
    let world = World::new(&example.graph, devices, Homes::all_on(device(0)));
    let plan = world.compile(&example.graph).unwrap();
    let launches = || [0, 1].map(|at: usize| world.devices[at].calls(Call::Launch));
    let a = [1.0f32; 8];
    let outputs = plan.run(&[(plan.input("a").unwrap(), (&a).into())], &[]);
    let outputs = outputs.unwrap();
    // Not even what crosses between devices is waited for.
    assert_eq!(launches(), [0, 0]);
    outputs
        .read_f32(plan.output("z").unwrap(), &mut [0.0; 8])
        .unwrap();
    assert_eq!(launches(), [2, 1]);
}

fn deferred(options: SimulatedOptions) -> SimulatedOptions {
    SimulatedOptions {
        deferred: true,
        ..options
    }
}

fn floats(bytes: Vec<u8>) -> Vec<f32> {
    let elements = bytes.chunks_exact(4);
    elements
        .map(|e| f32::from_le_bytes(e.try_into().unwrap()))
        .collect()
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
    let devices = vec![deferred(SimulatedOptions::default())];
    let world = World::new(&graph, devices, Homes::all_on(device(0)));
    let plan = world.compile(&graph).unwrap();
    let launches = || world.devices[0].calls(Call::Launch);
    let mut tickets = Vec::new();
    for run in 1..=3 {
        let mut bytes = [run as f32; 4];
        let outputs = plan.run(&[(a, (&bytes).into())], &[]).unwrap();
        tickets.push(outputs.ticket(total).unwrap());
        // The bytes were taken when they were given.
        bytes.fill(f32::NAN);
    }
    assert_eq!(launches(), 0, "no run has begun");
    let last = tickets.pop().unwrap();
    assert_eq!(floats(last.wait().unwrap()), [12.0; 4]);
    assert_eq!(launches(), 3);
    for (ticket, expected) in tickets.into_iter().zip([2.0, 6.0]) {
        assert_eq!(floats(ticket.wait().unwrap()), [expected; 4]);
    }
}

#[test]
fn runs_over_several_devices_overlap_and_keep_their_results() {
    let example = example();
    let devices = vec![
        deferred(only("cpu", &["scale"])),
        deferred(only("gpu", &["softmax"])),
    ];
    let world = World::new(&example.graph, devices, Homes::all_on(device(0)));
    let plan = world.compile(&example.graph).unwrap();
    let (a, z) = (plan.input("a").unwrap(), plan.output("z").unwrap());
    let inputs = [[1.0f32, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 200.0]].map(|row| [row, row].concat());
    let mut tickets = Vec::new();
    for (run, input) in inputs.iter().enumerate() {
        let outputs = plan.run(&[(a, input.as_slice().into())], &[]).unwrap();
        tickets.push(outputs.ticket(z).unwrap());
        // The first segment of a run is waited for, behind the last one of the run before.
        let cpu = world.devices[0].calls(Call::Launch);
        assert_eq!(cpu, 2 * run + 1);
    }
    let expected = [[0.75f32; 4], [0.0, 0.0, 0.0, 3.0]];
    for (ticket, row) in tickets.into_iter().zip(expected).rev() {
        assert_eq!(floats(ticket.wait().unwrap()), [row, row].concat());
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

/// Devices whose work runs late, and what happens on their queues.
fn late(n: usize) -> (Vec<SimulatedOptions>, Events) {
    let events = Events::new();
    let ids = ["one", "two", "three", "four"].into_iter().take(n);
    let devices = ids.map(|id| SimulatedOptions {
        events: Some(events.clone()),
        ..deferred(without(id, &[]))
    });
    (devices.collect(), events)
}

#[test]
fn devices_run_later_steps_while_those_behind_them_run_earlier_ones() {
    const RUNS: usize = 6;
    for n in 2..=4 {
        let (graph, a, homes) = pipeline(n);
        let (devices, events) = late(n);
        let ids: Vec<String> = devices.iter().map(|device| device.id.clone()).collect();
        let world = World::new(&graph, devices, homes);
        let plan = world.compile(&graph).unwrap();
        assert_eq!(plan.schedule().segments.len(), n, "{}", plan.describe());
        for run in 1..=RUNS {
            let bytes = [run as f32; 4];
            plan.run(&[(a, (&bytes).into())], &[]).unwrap();
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
        // Not more than one run for each device is on its way.
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
            let mut bytes = vec![0; 16];
            let name = format!("s{i}");
            world.session.read_state(&name, &mut bytes).unwrap();
            assert_eq!(floats(bytes), [expected; 4], "{name} of {n}");
        }
    }
}

#[test]
fn a_state_is_read_behind_all_runs_so_far() {
    let (graph, a, homes) = pipeline(2);
    let (devices, _) = late(2);
    let world = World::new(&graph, devices, homes);
    let plan = world.compile(&graph).unwrap();
    for run in 1..=3 {
        let bytes = [run as f32; 4];
        plan.run(&[(a, (&bytes).into())], &[]).unwrap();
    }
    let mut bytes = vec![0; 16];
    world.session.read_state("s1", &mut bytes).unwrap();
    assert_eq!(floats(bytes), [1.0 + 3.0 + 6.0; 4]);
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
    let mut bytes = vec![0; 16];
    world.session.read_state("s1", &mut bytes).unwrap();
    // 1, doubled, 2 more, doubled.
    assert_eq!(floats(bytes), [8.0; 4]);
    let mut bytes = vec![0; 16];
    world.session.read_state("s2", &mut bytes).unwrap();
    assert_eq!(floats(bytes), [1.0 + 4.0; 4]);
}

#[test]
fn a_run_that_fails_on_its_way_takes_those_behind_it_along_and_is_told_once() {
    for at in 0..3 {
        for nth in 0..4 {
            let (graph, a, homes) = pipeline(3);
            let (mut devices, _) = late(3);
            devices[at].faults.push(Fault {
                call: Call::Launch,
                nth,
                kind: FaultKind::TimedOut,
            });
            let world = World::new(&graph, devices, homes);
            let plan = world.compile(&graph).unwrap();
            let ones = [1.0f32; 4];
            let mut told = 0;
            for _ in 0..4 {
                told += usize::from(plan.run(&[(a, (&ones).into())], &[]).is_err());
            }
            told += usize::from(world.session.wait().is_err());
            assert_eq!(told, 1, "launch {nth} of {at}");
            world.session.reset_states().unwrap();
            plan.run(&[(a, (&ones).into())], &[]).unwrap();
            for i in 0..3 {
                let mut bytes = vec![0; 16];
                world
                    .session
                    .read_state(&format!("s{i}"), &mut bytes)
                    .unwrap();
                assert_eq!(floats(bytes), [1.0; 4]);
            }
        }
    }
}
