use kovar_core::ops::{Op, Scale};
use kovar_core::{DType, Graph, NodeId};
use kovar_runtime::dependency::{Hazard, dependencies};

use crate::interpreter::{recurrence, two_inputs};

fn found(graph: &Graph) -> Vec<(usize, usize, Hazard)> {
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    dependencies(graph, &nodes)
        .into_iter()
        .map(|d| (d.before.index(), d.after.index(), d.hazard))
        .collect()
}

#[test]
fn a_read_comes_after_the_write_and_before_the_next_write() {
    let (mut graph, a, b) = two_inputs(4);
    let x = graph.scale(a, 2.0).unwrap();
    graph.scale(x, 3.0).unwrap();
    graph.copy_into(b, x).unwrap();
    assert_eq!(
        found(&graph),
        [
            (0, 1, Hazard::ReadAfterWrite),
            (0, 2, Hazard::WriteAfterWrite),
            (1, 2, Hazard::WriteAfterRead),
        ]
    );
}

#[test]
fn disjoint_ranges_of_one_storage_are_independent() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2]).unwrap();
    let whole = graph.temp("t", DType::F32, &[4]).unwrap();
    let head = graph.slice(whole, 0, 0..2).unwrap();
    let tail = graph.slice(whole, 0, 2..4).unwrap();
    graph.copy_into(x, head).unwrap();
    graph.copy_into(x, tail).unwrap();
    graph.scale(whole, 2.0).unwrap();
    assert_eq!(
        found(&graph),
        [
            (0, 2, Hazard::ReadAfterWrite),
            (1, 2, Hazard::ReadAfterWrite),
        ]
    );
}

#[test]
fn an_in_place_chain_depends_on_its_last_link_only() {
    let (mut graph, a, _) = two_inputs(4);
    let x = graph.scale(a, 2.0).unwrap();
    for _ in 0..3 {
        graph
            .apply_in_place(Op::from(Scale { scale: 0.5 }), &[x])
            .unwrap();
    }
    let pairs: Vec<_> = found(&graph).into_iter().map(|d| (d.0, d.1)).collect();
    assert_eq!(pairs, [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (2, 3)]);
}

#[test]
fn an_operand_read_twice_gives_one_dependency() {
    let (mut graph, a, _) = two_inputs(4);
    let x = graph.scale(a, 2.0).unwrap();
    graph.mul(x, x).unwrap();
    assert_eq!(found(&graph), [(0, 1, Hazard::ReadAfterWrite)]);
}

#[test]
fn nodes_that_update_one_state_keep_their_order() {
    let mut graph = Graph::new();
    let state = graph.state("s", DType::F32, &[1, 4, 4]).unwrap();
    recurrence(&mut graph, state, "0");
    graph.scale(state, 2.0).unwrap();
    recurrence(&mut graph, state, "1");
    recurrence(&mut graph, state, "2");
    let pairs: std::collections::BTreeSet<_> =
        found(&graph).into_iter().map(|d| (d.0, d.1)).collect();
    assert_eq!(
        pairs.into_iter().collect::<Vec<_>>(),
        [(0, 1), (0, 2), (1, 2), (2, 3)]
    );
}
