//! Work that follows its weights.

use kovar_core::{DType, Graph};
use kovar_runtime::Homes;
use kovar_testkit::simulated::SimulatedOptions;

use crate::world::{World, agrees, device, without};

const WIDTH: usize = 32;

/// `layers` of products with activations between them, over `rows` rows.
fn stack(layers: usize, rows: usize) -> Graph {
    let mut graph = Graph::new();
    let mut x = graph.input("x", DType::F32, &[rows, WIDTH]).unwrap();
    for layer in 0..layers {
        for part in ["up", "gate", "down"] {
            let name = format!("blk.{layer}.{part}");
            let w = graph.weight(&name, DType::F32, &[WIDTH, WIDTH]).unwrap();
            let y = graph.matmul(w, x).unwrap();
            let y = graph.softmax(y, None, 1.0).unwrap();
            x = graph.add(x, y).unwrap();
        }
    }
    graph.set_output(x, "y").unwrap();
    graph
}

#[test]
fn layers_run_where_their_weights_are_however_many_rows_there_are() {
    for rows in [1, 64, 512] {
        let graph = stack(4, rows);
        let homes = Homes::all_on(device(0))
            .pin("blk.2.*", device(1))
            .pin("blk.3.*", device(1));
        let devices = vec![without("a", &[]), without("b", &[])];
        let world = World::new(&graph, devices, homes);
        let plan = world.compile(&graph).unwrap();
        let on: Vec<usize> = plan.kernels().iter().map(|k| k.device.index()).collect();
        let half = on.len() / 2;
        let expected: Vec<usize> = (0..on.len()).map(|at| usize::from(at >= half)).collect();
        assert_eq!(on, expected, "{rows} rows: {}", plan.describe());
        assert_eq!(plan.schedule().copies.len(), 1);
    }
}

#[test]
fn a_weight_that_crosses_anyway_holds_no_work_at_its_home() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[4, WIDTH]).unwrap();
    let w = graph.weight("w", DType::F32, &[WIDTH, WIDTH]).unwrap();
    let y = graph.matmul(w, x).unwrap();
    graph.set_output(y, "y").unwrap();
    for (streamed, runs_on) in [(false, 0), (true, 1)] {
        let faster = SimulatedOptions {
            latency_ns: 500.0,
            ..without("b", &[])
        };
        let homes = Homes::all_on(device(0));
        let homes = if streamed { homes.stream("w") } else { homes };
        let plan = agrees(&graph, vec![without("a", &[]), faster], homes);
        assert_eq!(plan.kernels()[0].device, device(runs_on), "{streamed}");
    }
}
