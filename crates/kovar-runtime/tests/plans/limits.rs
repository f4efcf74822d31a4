//! Graphs that fit the devices, and graphs that do not.

use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::{
    CompileError, Homes, PlaceError, Policy, Session, SessionError, UnknownDevice, forecast,
    place_layers, place_states,
};
use kovar_testkit::simulated::SimulatedOptions;

use crate::world::{World, add_to, agrees, device, without};

const SIDE: usize = 16;
const SQUARE: u64 = 4 * (SIDE * SIDE) as u64;

/// `y_i = 2 x_i`, independent of each other.
fn independent(n: usize) -> Graph {
    let mut graph = Graph::new();
    for i in 0..n {
        let x = graph.input(&format!("x{i}"), DType::F32, &[SIDE, SIDE]);
        let y = graph.scale(x.unwrap(), 2.0).unwrap();
        graph.set_output(y, &format!("y{i}")).unwrap();
    }
    graph
}

/// `y = w x`
fn product(rows: usize) -> Graph {
    let mut graph = Graph::new();
    let w = weight(&mut graph, "w");
    let x = graph.input("x", DType::F32, &[rows, SIDE]).unwrap();
    let y = graph.matmul(w, x).unwrap();
    graph.set_output(y, "y").unwrap();
    graph
}

fn weight(graph: &mut Graph, name: &str) -> ValueId {
    graph.weight(name, DType::F32, &[SIDE, SIDE]).unwrap()
}

fn devices(n: usize) -> Vec<SimulatedOptions> {
    let ids = ["a", "b", "c", "d"].into_iter().take(n);
    ids.map(|id| without(id, &[])).collect()
}

#[test]
fn work_that_fits_several_devices_together_is_not_refused() {
    for n in 2..=4 {
        let graph = independent(n);
        let each = 2 * SQUARE;
        let homes = (0..n).fold(Homes::all_on(device(0)), |homes, i| {
            homes.budget(device(i), each)
        });
        let free = World::new(&graph, devices(n), homes.clone());
        let found = free.session.devices();
        let homes = place_layers(&[&graph], found, homes, &Policy::default()).unwrap();
        let plan = agrees(&graph, devices(n), homes);
        for memory in plan.memory() {
            assert_eq!(memory.arena as u64, each);
        }
    }
}

#[test]
fn a_device_over_its_budget_keeps_the_first_nodes_that_fit() {
    let graph = independent(4);
    let homes = Homes::all_on(device(0)).budget(device(0), 4 * SQUARE);
    let plan = agrees(&graph, devices(2), homes);
    let on: Vec<usize> = plan.kernels().iter().map(|k| k.device.index()).collect();
    assert_eq!(on, [0, 0, 0, 1]);
}

#[test]
fn memory_of_the_plans_before_counts_in_the_budget() {
    let (small, large) = (product(1), product(SIDE));
    // The weight, an input and an output of the larger plan.
    for (budget, fits) in [(3 * SQUARE, true), (3 * SQUARE - 1, false)] {
        let homes = Homes::all_on(device(0)).budget(device(0), budget);
        let world = World::new(&large, devices(1), homes);
        // The weight is there already, and not asked for again.
        let _small = world.compile(&small).unwrap();
        match world.compile(&large) {
            Ok(_) => assert!(fits),
            Err(CompileError::OverBudget(over)) => {
                assert!(!fits);
                assert_eq!(
                    (over.usage.weights, over.usage.arena),
                    (SIDE * SIDE * 4, SIDE * SIDE * 8)
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
    // Another weight, for which the memory of the larger plan leaves no room.
    let mut other = Graph::new();
    let v = weight(&mut other, "v");
    let x = other.input("x", DType::F32, &[1, SIDE]).unwrap();
    let w = weight(&mut other, "w");
    let y = other.matmul(v, x).unwrap();
    let y = other.matmul(w, y).unwrap();
    other.set_output(y, "y").unwrap();
    for (before, fits) in [(&small, true), (&large, false)] {
        let homes = Homes::all_on(device(0)).budget(device(0), 3 * SQUARE);
        let world = World::new(&other, devices(1), homes);
        let _before = world.compile(before).unwrap();
        let found = world.compile(&other);
        assert_eq!(found.is_ok(), fits, "{found:?}");
    }
}

#[test]
fn states_beyond_a_device_s_memory_are_refused_by_name() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[1, SIDE]).unwrap();
    for name in ["s", "t"] {
        let state = graph.state(name, DType::F32, &[SIDE, SIDE]).unwrap();
        let row = graph.slice(state, 0, 0..1).unwrap();
        graph.copy_into(x, row).unwrap();
    }
    let compile = |memory: u64| {
        let mut options = devices(1);
        options[0].memory_bytes = Some(memory);
        let world = World::new(&graph, options, Homes::all_on(device(0)));
        let error = world.compile(&graph).err();
        assert_eq!(
            world.session.states().len(),
            if error.is_some() { 0 } else { 2 }
        );
        error
    };
    assert_eq!(compile(3 * SQUARE), None);
    let error = SessionError::StatesTooLarge {
        storage: "t".into(),
        bytes: SQUARE as usize,
        others: SQUARE as usize,
        device: "a".into(),
        memory: 2 * SQUARE - 1,
    };
    assert_eq!(compile(2 * SQUARE - 1), Some(error.into()));
}

#[test]
fn a_small_layer_does_not_go_back_to_a_device_that_others_were_too_large_for() {
    let mut graph = Graph::new();
    let mut x = graph.input("x", DType::F32, &[1, SIDE]).unwrap();
    for (layer, weights) in [1, 3, 1].into_iter().enumerate() {
        for i in 0..weights {
            let w = weight(&mut graph, &format!("blk.{layer}.w{i}"));
            x = graph.matmul(w, x).unwrap();
        }
    }
    graph.set_output(x, "y").unwrap();
    let homes = Homes::all_on(device(0)).budget(device(0), 3 * SQUARE);
    let world = World::new(&graph, devices(2), homes.clone());
    let found = world.session.devices();
    let homes = place_layers(&[&graph], found, homes, &Policy::default()).unwrap();
    let on: Vec<usize> = graph
        .storages()
        .iter()
        .filter(|storage| storage.name.starts_with("blk."))
        .map(|storage| homes.of(storage).index())
        .collect();
    assert_eq!(on, [0, 1, 1, 1, 1]);
}

#[test]
fn homes_on_a_device_that_is_not_there_are_refused() {
    let graph = independent(1);
    let world = World::new(&graph, devices(2), Homes::all_on(device(0)));
    let devices = world.session.devices();
    let absent = UnknownDevice {
        device: 2,
        devices: 2,
    };
    let on_first = || Homes::all_on(device(0));
    for homes in [
        on_first().pin("x0", device(2)),
        on_first().budget(device(2), 1),
        Homes::all_on(device(2)),
    ] {
        let error = Session::with_homes(devices.to_vec(), homes.clone()).unwrap_err();
        assert_eq!(error, SessionError::UnknownDevice(absent.clone()));
        let policy = Policy::default();
        let placed = [
            place_layers(&[&graph], devices, homes.clone(), &policy),
            place_states(&graph, devices, homes, &policy),
        ];
        for error in placed.map(Result::unwrap_err) {
            assert_eq!(error, PlaceError::UnknownDevice(absent.clone()));
        }
    }
}

/// `x + 1` on the second device in a state of `n` elements, which the first device cannot hold in
/// buffers of `max` bytes.
fn placed_state(n: usize, max: usize) -> (Graph, Vec<SimulatedOptions>) {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[n]).unwrap();
    let s = graph.state("s", DType::F32, &[n]).unwrap();
    add_to(&mut graph, s, x);
    let small = SimulatedOptions {
        max_buffer_bytes: max,
        ..without("a", &["add"])
    };
    (graph, vec![small, without("b", &[])])
}

#[test]
fn a_state_beyond_the_buffers_of_the_default_home_moves_to_the_device_that_uses_it() {
    let (graph, devices) = placed_state(1000, 256);
    let homes = Homes::all_on(device(0));
    let world = World::new(&graph, devices.clone(), homes.clone());
    let found = world.session.devices();
    let policy = Policy::default();
    let homes = place_states(&graph, found, homes, &policy).unwrap();
    agrees(&graph, devices.clone(), homes);
    let homes = Homes::all_on(device(0)).budget(device(0), 1 << 20);
    let homes = place_layers(&[&graph], found, homes, &policy).unwrap();
    let homes = place_states(&graph, found, homes, &policy).unwrap();
    agrees(&graph, devices, homes);
}

#[test]
fn a_state_beyond_the_buffers_of_its_home_is_refused_before_anything_is_allocated() {
    let (placed, devices) = placed_state(1000, 256);
    let mut unused = Graph::new();
    let x = unused.input("x", DType::F32, &[4]).unwrap();
    let y = unused.scale(x, 2.0).unwrap();
    unused.set_output(y, "y").unwrap();
    unused.state("s", DType::F32, &[1000]).unwrap();
    for graph in [placed, unused] {
        let world = World::new(&graph, devices.clone(), Homes::all_on(device(0)));
        let expected = PlaceError::TooLarge {
            storage: "s".into(),
            bytes: 4000,
            device: "a".into(),
            max: 256,
        };
        let error = forecast(&graph, &world.session, &Policy::default()).unwrap_err();
        assert_eq!(error, expected.clone().into());
        assert_eq!(world.compile(&graph).unwrap_err(), expected.into());
        assert_eq!(world.devices[0].allocated_bytes(), 0);
    }
}

#[test]
fn a_state_may_take_a_whole_buffer_that_is_not_a_multiple_of_the_alignment() {
    let (graph, mut devices) = placed_state(60, 250);
    devices.truncate(1);
    devices[0] = SimulatedOptions {
        max_buffer_bytes: 250,
        alignment: 64,
        ..without("a", &[])
    };
    let mut fitting = Graph::new();
    let s = fitting.state("s", DType::F32, &[60]).unwrap();
    let part = fitting.slice(s, 0, 0..4).unwrap();
    let y = fitting.scale(part, 2.0).unwrap();
    fitting.set_output(y, "y").unwrap();
    let homes = || Homes::all_on(device(0));
    World::new(&fitting, devices.clone(), homes())
        .compile(&fitting)
        .unwrap();
    // The input of the same size lies in an arena.
    let error = World::new(&graph, devices, homes())
        .compile(&graph)
        .unwrap_err();
    let message = "`x` takes 256 bytes, the largest buffer of a has 250";
    assert_eq!(error.to_string(), message);
}
