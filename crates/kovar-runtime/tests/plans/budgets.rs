//! Weights, states and work within the budgets of devices.

use kovar_core::{DType, Graph, StorageKind, ValueId};
use kovar_runtime::{
    CompileError, DeviceUsage, Homes, OverBudget, Policy, forecast, place_layers, place_states,
};
use kovar_testkit::simulated::SimulatedOptions;

use crate::world::{World, agrees, device, without};

const WIDTH: usize = 16;
/// The bytes of one layer: a weight and a state.
const LAYER: usize = 4 * (WIDTH * WIDTH + WIDTH);

/// `x = w_i x + s_i`, `s_i = x` for each of `n` layers, between an embedding and a head.
fn layers(n: usize) -> Graph {
    let mut graph = Graph::new();
    let ids = graph.input("ids", DType::I32, &[1]).unwrap();
    let square = [WIDTH, WIDTH];
    let weight = |graph: &mut Graph, name: &str| -> ValueId {
        graph.weight(name, DType::F32, &square).unwrap()
    };
    let table = weight(&mut graph, "embd");
    let mut x = graph.get_rows(table, ids).unwrap();
    for i in 0..n {
        let w = weight(&mut graph, &format!("blk.{i}.w"));
        let s = graph
            .state(&format!("blk.{i}.s"), DType::F32, &[1, WIDTH])
            .unwrap();
        let y = graph.matmul(w, x).unwrap();
        x = graph.add(y, s).unwrap();
        graph.copy_into(x, s).unwrap();
    }
    let head = weight(&mut graph, "head");
    let y = graph.matmul(head, x).unwrap();
    graph.set_output(y, "y").unwrap();
    graph
}

/// The devices of all weights and states, in the order of the graph.
fn homes_of(graph: &Graph, homes: &Homes) -> Vec<(String, usize)> {
    let storages = graph.storages().iter();
    storages
        .filter(|s| matches!(s.kind, StorageKind::Weight | StorageKind::State))
        .map(|s| (s.name.clone(), homes.of(s).index()))
        .collect()
}

fn spread_over(graph: &Graph, n: usize, homes: Homes) -> Homes {
    let ids = ["a", "b", "c"];
    let devices = ids.iter().take(n).map(|id| without(id, &[])).collect();
    let world = World::new(graph, devices, homes.clone());
    let mut policy = Policy::default();
    // Launches would outweigh the work of these small layers.
    policy.rates.launch_ns = 0.0;
    place_layers(&[graph], world.session.devices(), homes, &policy).unwrap()
}

#[test]
fn layers_go_whole_to_the_next_device_when_one_is_full() {
    let graph = layers(5);
    let budget = (3 * LAYER + 500) as u64;
    let homes = Homes::all_on(device(0)).budget(device(0), budget);
    let homes = spread_over(&graph, 2, homes);
    let on_first = ["embd", "blk.0.w", "blk.0.s", "blk.1.w", "blk.1.s"];
    for (name, home) in homes_of(&graph, &homes) {
        // Embedding, two layers; the head comes last and fits nowhere else.
        assert_eq!(
            home,
            usize::from(!on_first.contains(&name.as_str())),
            "{name}"
        );
    }
}

#[test]
fn pinned_tensors_count_where_they_are() {
    let graph = layers(3);
    let homes = Homes::all_on(device(0))
        .pin("blk.2.*", device(0))
        .pin("embd", device(1))
        .budget(device(0), 2 * LAYER as u64 + 500);
    let homes = spread_over(&graph, 2, homes);
    let found = homes_of(&graph, &homes);
    let expected = [
        ("embd", 1),
        ("blk.0.w", 0),
        ("blk.0.s", 0),
        ("blk.1.w", 1),
        ("blk.1.s", 1),
        ("blk.2.w", 0),
        ("blk.2.s", 0),
        ("head", 1),
    ];
    let expected = expected.map(|(name, home)| (name.to_owned(), home));
    assert_eq!(found, expected);
}

#[test]
fn a_state_moves_to_the_only_device_that_reads_it() {
    let graph = layers(2);
    let devices = vec![without("a", &["matmul", "add"]), without("b", &[])];
    let homes = Homes::all_on(device(0)).pin("blk.1.s", device(0));
    let world = World::new(&graph, devices, homes.clone());
    let policy = Policy::default();
    let homes = place_states(&graph, world.session.devices(), homes, &policy).unwrap();
    let states: Vec<_> = homes_of(&graph, &homes)
        .into_iter()
        .filter(|(name, _)| name.ends_with(".s"))
        .collect();
    let expected = [("blk.0.s".to_owned(), 1), ("blk.1.s".to_owned(), 0)];
    assert_eq!(states, expected);
}

#[test]
fn without_budgets_nothing_moves() {
    let graph = layers(3);
    let homes = Homes::all_on(device(1)).pin("head", device(0));
    assert_eq!(spread_over(&graph, 2, homes.clone()), homes);
}

#[test]
fn a_model_that_is_spread_gives_what_one_device_gives_within_its_budgets() {
    let graph = layers(6);
    let budget = (4 * LAYER) as u64;
    let homes = Homes::all_on(device(0))
        .budget(device(0), budget)
        .budget(device(1), budget);
    let options = || {
        ["a", "b", "c"]
            .map(|id| {
                let mut options = without(id, &[]);
                options.memory_bytes = (id != "c").then_some(budget);
                options
            })
            .to_vec()
    };
    let world = World::new(&graph, options(), homes.clone());
    let devices = world.session.devices();
    let homes = place_layers(&[&graph], devices, homes, &Policy::default()).unwrap();
    let plan = agrees(&graph, options(), homes);
    assert!(
        plan.kernels()
            .iter()
            .any(|kernel| kernel.device == device(2))
    );
    for memory in &plan.memory()[..2] {
        assert!((memory.weights + memory.states + memory.arena) as u64 <= budget);
        assert!(memory.weights > 0);
    }
}

#[test]
fn a_device_over_its_budget_leaves_to_others_what_they_can_run() {
    let graph = layers(2);
    let homes = Homes::all_on(device(0)).budget(device(0), 10);
    let world = World::new(&graph, vec![without("a", &[])], homes.clone());
    let error = world.compile(&graph).unwrap_err();
    let over = OverBudget {
        usage: DeviceUsage {
            device: "a".into(),
            weights: 4 * 4 * WIDTH * WIDTH,
            states: 2 * 4 * WIDTH,
            arena: 2 * 64,
        },
        staging: 0,
        budget: 10,
    };
    assert_eq!(error, CompileError::OverBudget(over));
    assert_eq!(world.devices[0].allocated_bytes(), 0);

    // States stay at home, everything else is done elsewhere.
    let homes = Homes::all_on(device(0)).budget(device(0), 2 * 4 * WIDTH as u64 + 64);
    let devices = vec![without("a", &[]), without("b", &[])];
    let plan = agrees(&graph, devices, homes);
    assert!(
        plan.kernels()
            .iter()
            .all(|kernel| kernel.device == device(1))
    );
    assert_eq!(plan.memory()[0].weights, 0);
}

#[test]
fn a_forecast_is_what_the_devices_are_then_asked_for() {
    let graph = layers(4);
    let homes = Homes::all_on(device(0))
        .pin("blk.1.*", device(1))
        .pin("head", device(1));
    let devices = vec![without("a", &[]), without("b", &[])];
    let world = World::new(&graph, devices, homes);
    let forecast = forecast(&graph, &world.session, &Policy::default()).unwrap();
    assert!(
        world
            .devices
            .iter()
            .all(|device| device.allocated_bytes() == 0)
    );
    let plan = world.compile(&graph).unwrap();
    assert_eq!(forecast.memory, plan.memory());
    assert_eq!(&forecast.schedule, plan.schedule());
    for (device, memory) in world.devices.iter().zip(&forecast.memory) {
        let asked = memory.weights + memory.states + memory.arena;
        assert_eq!(device.allocated_bytes(), asked as u64);
    }
}

#[test]
fn streamed_layers_share_two_slots_and_cross_one_layer_ahead() {
    let graph = layers(8);
    let homes = Homes::all_on(device(0)).stream("blk.*");
    let devices = vec![without("a", &[]), without("b", &[])];
    let plan = agrees(&graph, devices, homes);
    let schedule = plan.schedule();
    assert_eq!(schedule.segments.len(), 8);
    let before: Vec<usize> = schedule
        .uploads
        .iter()
        .map(|upload| upload.before)
        .collect();
    assert_eq!(before, [0, 0, 1, 2, 3, 4, 5, 6]);
    let matrix = 4 * WIDTH * WIDTH;
    let memory = &plan.memory()[0];
    assert_eq!(memory.weights, 2 * matrix);
    assert!(
        (2 * matrix..3 * matrix).contains(&memory.arena),
        "{}",
        plan.describe()
    );
    assert!(
        plan.describe()
            .contains("uploads: 8, 8192 bytes\n  blk.0.w to a before 0\n")
    );
}

#[test]
fn a_large_product_goes_to_a_faster_device_and_its_weight_crosses_with_it() {
    let side = 512;
    let graph = |rows: usize| {
        let mut graph = Graph::new();
        let w = graph.weight("w", DType::F32, &[side, side]).unwrap();
        let x = graph.input("x", DType::F32, &[rows, side]).unwrap();
        let y = graph.matmul(w, x).unwrap();
        graph.set_output(y, "y").unwrap();
        graph
    };
    let devices = || {
        let slow = SimulatedOptions {
            bytes_per_ns: 40.0,
            ..without("slow", &[])
        };
        let fast = SimulatedOptions {
            flops_per_ns: 10_000.0,
            bytes_per_ns: 1_000.0,
            ..without("fast", &[])
        };
        vec![slow, fast]
    };
    let homes = Homes::all_on(device(0));
    for (rows, runs_on) in [(1, 0), (64, 1)] {
        let graph = graph(rows);
        let world = World::new(&graph, devices(), homes.clone());
        let forecast = forecast(&graph, &world.session, &Policy::default()).unwrap();
        assert_eq!(
            forecast.schedule.segments[0].device,
            device(runs_on),
            "{rows} rows"
        );
        assert_eq!(forecast.schedule.uploads.len(), runs_on);
        assert_eq!(forecast.memory[1].weights, 0);
    }
}

#[test]
fn what_queues_hold_for_transfers_counts_in_the_budget() {
    let graph = layers(2);
    let free = World::new(&graph, vec![without("a", &[])], Homes::all_on(device(0)));
    let held = free.compile(&graph).unwrap().memory()[0].clone();
    assert_eq!((held.upload_ring, held.readback), (0, 0));
    let outputs = graph.storages().iter();
    let outputs = outputs.filter(|storage| storage.kind == StorageKind::Output);
    assert_eq!(held.outputs, outputs.map(|storage| storage.bytes).sum());
    let bytes = (held.weights + held.states + held.arena) as u64;
    let compile = |budget: u64| {
        let devices = vec![SimulatedOptions {
            upload_ring_bytes: 200,
            readback_bytes: 100,
            ..without("a", &[])
        }];
        let homes = Homes::all_on(device(0)).budget(device(0), budget);
        World::new(&graph, devices, homes).compile(&graph)
    };
    let plan = compile(bytes + 300).unwrap();
    let memory = &plan.memory()[0];
    assert_eq!((memory.upload_ring, memory.readback), (200, 100));
    let error = compile(bytes + 299).unwrap_err();
    let CompileError::OverBudget(over) = error else {
        panic!("{error}");
    };
    assert_eq!(over.staging, 300);
}

#[test]
fn tensors_that_a_device_cannot_read_are_not_placed_there() {
    let graph = layers(2);
    // The states are read by `add`.
    let devices = || vec![without("a", &["add"]), without("b", &[])];
    let homes = Homes::all_on(device(0)).budget(device(0), 1 << 20);
    let world = World::new(&graph, devices(), homes.clone());
    let policy = Policy::default();
    let homes = place_layers(&[&graph], world.session.devices(), homes, &policy).unwrap();
    for (name, home) in homes_of(&graph, &homes) {
        assert_eq!(home, usize::from(name.ends_with(".s")), "{name}");
    }
    agrees(&graph, devices(), homes);
}
