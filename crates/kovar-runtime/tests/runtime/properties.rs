use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::ops::{Binary, BinaryKind, Op, Scale};
use kovar_core::{DType, Graph, HostBytes, StorageKind, ValueId};
use kovar_runtime::{HostSlice, Policy, Session, compile};
use proptest::prelude::*;

use crate::interpreter::{bytes, floats, interpret};
use crate::sim::Sim;

const ROWS: usize = 4;
const COLUMNS: usize = 4;

/// Builds a graph from arbitrary choices. What the graph refuses is skipped, so that every choice
/// gives a legal graph; reads of unwritten temporaries can't come up because each value starts
/// out written.
fn build(choices: &[(u8, u8, u8)]) -> Graph {
    let mut graph = Graph::new();
    let sizes = [ROWS, COLUMNS];
    let mut values: Vec<ValueId> = vec![
        graph.input("a", DType::F32, &sizes).unwrap(),
        graph.input("b", DType::F32, &sizes).unwrap(),
        graph.weight("w", DType::F32, &sizes).unwrap(),
        graph.state("s", DType::F32, &sizes).unwrap(),
    ];
    for &(action, i, j) in choices {
        let pick = |i: u8| values[usize::from(i) % values.len()];
        let (x, y) = (pick(i), pick(j));
        let binary = |kind| Op::from(Binary { kind });
        let half = Op::from(Scale { scale: 0.5 });
        let added = match action % 10 {
            0 => graph.add(x, y),
            1 => graph.mul(x, y),
            2 => graph.scale(x, 0.5),
            3 => graph.apply_in_place(binary(BinaryKind::Add), &[x, y]),
            4 => graph.apply_in_place(binary(BinaryKind::Mul), &[x, y]),
            5 => graph.apply_in_place(half, &[x]),
            6 => graph.copy_into(x, y),
            7 => graph.slice(x, 0, usize::from(j) % 2..2),
            8 => graph.slice(x, 1, 0..1 + usize::from(j) % 2),
            _ => graph.permute(x, &[1, 0]),
        };
        values.extend(added);
    }
    for (n, &value) in values.iter().enumerate() {
        if choices.get(n).is_some_and(|(_, _, choice)| choice % 4 == 0) {
            let _ = graph.set_output(value, &format!("y{n}"));
        }
    }
    let last = values.last().copied().unwrap();
    let _ = graph.set_output(last, "last");
    graph
}

fn data() -> HashMap<String, Vec<f32>> {
    let fill = |from: i16| -> Vec<f32> {
        let n = i16::try_from(ROWS * COLUMNS).unwrap();
        (0..n).map(|i| f32::from(from + i) / 8.0).collect()
    };
    [("a", -5), ("b", 2), ("w", -9)]
        .map(|(name, from)| (name.to_owned(), fill(from)))
        .into()
}

/// The outputs and states after one run, by name.
fn run(graph: &Graph, reuse_memory: bool, max_buffer: usize) -> HashMap<String, Vec<u8>> {
    let session =
        Session::new(vec![Arc::new(Sim::new("sim").with_max_buffer(max_buffer))]).unwrap();
    let data = data();
    let sizes = [ROWS, COLUMNS];
    let weight = HostBytes::new(Arc::new(bytes(&data["w"])));
    session.add_weight("w", DType::F32, &sizes, weight).unwrap();
    let mut policy = Policy::default();
    policy.reuse_memory = reuse_memory;
    policy.check_plan = true;
    let plan = compile(graph, &session, &policy).unwrap();
    let state = bytes(&[0.75; ROWS * COLUMNS]);
    session.write_state("s", &state).unwrap();
    let inputs = ["a", "b"].map(|name| (plan.input(name).unwrap(), HostSlice::f32(&data[name])));
    let outputs = plan.run(&inputs, &[]).unwrap();
    let mut found = HashMap::new();
    for storage in graph.storages() {
        if storage.kind == StorageKind::Output {
            let mut read = vec![0; storage.bytes];
            let value = plan.output(&storage.name).unwrap();
            outputs.read(value, &mut read).unwrap();
            found.insert(storage.name.clone(), read);
        }
    }
    drop(outputs);
    let mut read = vec![0; state.len()];
    session.read_state("s", &mut read).unwrap();
    found.insert("s".into(), read);
    found
}

/// The same without the runtime, from temporaries full of `fill`.
fn interpreted(graph: &Graph, fill: u8) -> HashMap<String, Vec<u8>> {
    let storages = graph.storages().iter();
    storages
        .zip(interpret(graph, &data(), 0.75, fill))
        .filter(|(s, _)| matches!(s.kind, StorageKind::Output | StorageKind::State))
        .map(|(storage, bytes)| (storage.name.clone(), bytes))
        .collect()
}

fn same(found: &HashMap<String, Vec<u8>>, expected: &HashMap<String, Vec<u8>>) -> bool {
    found.len() == expected.len()
        && found.iter().all(|(name, bytes)| {
            let pairs = floats(bytes).into_iter().zip(floats(&expected[name]));
            pairs
                .into_iter()
                .all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
        })
}

fn choices() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec(any::<(u8, u8, u8)>(), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_arena_gives_what_separate_buffers_give(choices in choices()) {
        let graph = build(&choices);
        let expected = interpreted(&graph, 0xff);
        prop_assert!(same(&interpreted(&graph, 0), &expected));
        prop_assert!(same(&run(&graph, false, 1 << 20), &expected));
        prop_assert!(same(&run(&graph, true, 1 << 20), &expected));
        prop_assert!(same(&run(&graph, true, 4 * ROWS * COLUMNS), &expected));
    }
}
