use kovar_core::ops::{Binary, BinaryKind, Op};
use kovar_core::{DType, Graph};
use kovar_runtime::{Homes, HostSlice, Plan};
use kovar_testkit::simulated::{Call, Fault, FaultKind, SimulatedOptions};

use crate::world::{Results, World, data, device, only, reference};

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
