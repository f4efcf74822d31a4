use kovar_core::{DType, Graph, StorageKind};
use kovar_runtime::CompileError;
use kovar_runtime::liveness::{Lifetime, analyse};

use crate::interpreter::{recurrence, two_inputs};

fn lifetime(start: usize, end: usize) -> Option<Lifetime> {
    Some(Lifetime { start, end })
}

#[test]
fn a_temporary_lives_from_its_first_write_to_its_last_read() {
    let (mut graph, a, b) = two_inputs(4);
    let sum = graph.add(a, b).unwrap();
    let product = graph.mul(sum, b).unwrap();
    let doubled = graph.scale(product, 2.0).unwrap();
    let result = graph.add(doubled, sum).unwrap();
    let last = graph.scale(result, 1.0).unwrap();
    graph.set_output(last, "y").unwrap();
    let liveness = analyse(&graph).unwrap();
    let of = |value| liveness.lifetime(graph.value(value).unwrap().storage);
    assert_eq!(liveness.nodes().len(), 5);
    assert_eq!(of(a), lifetime(0, 0));
    assert_eq!(of(b), lifetime(0, 1));
    assert_eq!(of(sum), lifetime(0, 3));
    assert_eq!(of(product), lifetime(1, 2));
    assert_eq!(of(last), lifetime(4, 4));
}

#[test]
fn inputs_live_from_the_start_and_outputs_to_the_end() {
    let (mut graph, a, b) = two_inputs(4);
    let early = graph.scale(a, 2.0).unwrap();
    let late = graph.scale(b, 2.0).unwrap();
    graph.set_output(early, "early").unwrap();
    graph.set_output(late, "late").unwrap();
    let liveness = analyse(&graph).unwrap();
    let of = |value| liveness.lifetime(graph.value(value).unwrap().storage);
    assert_eq!(of(b), lifetime(0, 1));
    assert_eq!(of(early), lifetime(0, 1));
}

#[test]
fn nodes_whose_results_nobody_reads_are_dropped() {
    let (mut graph, a, b) = two_inputs(4);
    let unused = graph.add(a, b).unwrap();
    graph.mul(unused, b).unwrap();
    let used = graph.scale(a, 2.0).unwrap();
    graph.set_output(used, "y").unwrap();
    let liveness = analyse(&graph).unwrap();
    let kept: Vec<usize> = liveness.nodes().iter().map(|id| id.index()).collect();
    assert_eq!(kept, [2]);
    assert_eq!(liveness.lifetime(graph.value(b).unwrap().storage), None);
}

#[test]
fn a_result_that_is_overwritten_unread_is_dropped() {
    let (mut graph, a, b) = two_inputs(4);
    let y = graph.scale(a, 2.0).unwrap();
    graph.copy_into(b, y).unwrap();
    graph.set_output(y, "y").unwrap();
    let kept = analyse(&graph).unwrap();
    assert_eq!(kept.nodes().len(), 1);
    assert_eq!(kept.nodes()[0].index(), 1);
}

#[test]
fn a_partial_write_keeps_what_was_there() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[4, 2]).unwrap();
    let row = graph.input("row", DType::F32, &[1, 2]).unwrap();
    let ids = graph.input("ids", DType::I32, &[1]).unwrap();
    let y = graph.scale(x, 2.0).unwrap();
    graph.set_rows(y, row, ids).unwrap();
    let half = graph.slice(y, 0, 0..2).unwrap();
    let zeros = graph.slice(x, 0, 0..2).unwrap();
    graph.copy_into(zeros, half).unwrap();
    graph.set_output(y, "y").unwrap();
    assert_eq!(analyse(&graph).unwrap().nodes().len(), 3);
}

#[test]
fn writes_to_a_state_are_always_needed() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2]).unwrap();
    let state = graph.state("s", DType::F32, &[2]).unwrap();
    graph.copy_into(x, state).unwrap();
    let liveness = analyse(&graph).unwrap();
    assert_eq!(liveness.nodes().len(), 1);
}

#[test]
fn reading_a_temporary_before_any_write_names_it() {
    let mut graph = Graph::new();
    let scratch = graph.temp("scratch", DType::F32, &[4]).unwrap();
    let y = graph.scale(scratch, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let error = analyse(&graph).unwrap_err();
    assert_eq!(
        error,
        CompileError::ReadBeforeWrite {
            storage: "scratch".into(),
            op: "scale",
            node: 0,
            operand: "x",
        }
    );
}

#[test]
fn reading_another_part_than_the_written_one_is_an_error() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2]).unwrap();
    let scratch = graph.temp("scratch", DType::F32, &[4]).unwrap();
    let (head, tail) = (
        graph.slice(scratch, 0, 0..2).unwrap(),
        graph.slice(scratch, 0, 2..4).unwrap(),
    );
    graph.copy_into(x, head).unwrap();
    let y = graph.scale(tail, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let error = analyse(&graph).unwrap_err();
    assert!(matches!(error, CompileError::ReadBeforeWrite { .. }));
}

#[test]
fn an_output_that_nothing_writes_is_an_error() {
    let mut graph = Graph::new();
    let y = graph.temp("y", DType::F32, &[4]).unwrap();
    graph.set_output(y, "y").unwrap();
    let error = analyse(&graph).unwrap_err();
    assert_eq!(error, CompileError::OutputNotWritten { name: "y".into() });
    let mut graph = Graph::new();
    let empty = graph.temp("y", DType::F32, &[0]).unwrap();
    graph.set_output(empty, "y").unwrap();
    assert!(analyse(&graph).unwrap().nodes().is_empty());
}

#[test]
fn the_dump_shows_each_needed_node_and_lifetime() {
    let (mut graph, a, b) = two_inputs(4);
    let sum = graph.add(a, b).unwrap();
    let y = graph.scale(sum, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    assert_eq!(
        graph.storage_of(y).unwrap().kind,
        StorageKind::Output,
        "the graph's own rule"
    );
    let expected = "\
liveness: 2 of 2 nodes needed
     0  add.0[0..16] = add(a, b)
     1  y[0..16] = scale(add.0)
  input `a`, 16 bytes: 0..=0
  input `b`, 16 bytes: 0..=0
  temporary `add.0`, 16 bytes: 0..=1
  output `y`, 16 bytes: 1..=1
";
    assert_eq!(analyse(&graph).unwrap().dump(&graph), expected);
}

#[test]
fn a_node_that_updates_a_state_is_needed_though_nobody_reads_its_result() {
    let mut graph = Graph::new();
    let state = graph.state("s", DType::F32, &[1, 4, 4]).unwrap();
    recurrence(&mut graph, state, "0");
    let scratch = graph.temp("scratch", DType::F32, &[1, 4, 4]).unwrap();
    graph.copy_into(state, scratch).unwrap();
    recurrence(&mut graph, scratch, "1");
    let liveness = analyse(&graph).unwrap();
    let kept: Vec<usize> = liveness.nodes().iter().map(|id| id.index()).collect();
    assert_eq!(kept, [0]);
    let dump = liveness.dump(&graph);
    assert!(
        dump.contains("= wkv7(r0, w0, k0, v0, a0, b0, s), updates s\n"),
        "{dump}"
    );
}

#[test]
fn an_updated_temporary_counts_as_read_and_as_written() {
    let mut graph = Graph::new();
    let scratch = graph.temp("scratch", DType::F32, &[1, 4, 4]).unwrap();
    recurrence(&mut graph, scratch, "0");
    graph.set_output(scratch, "y").unwrap();
    let error = analyse(&graph).unwrap_err();
    assert!(
        matches!(
            error,
            CompileError::ReadBeforeWrite {
                operand: "state",
                ..
            }
        ),
        "{error}"
    );

    let mut graph = Graph::new();
    let zeros = graph.input("zeros", DType::F32, &[1, 4, 4]).unwrap();
    let scratch = graph.temp("scratch", DType::F32, &[1, 4, 4]).unwrap();
    graph.copy_into(zeros, scratch).unwrap();
    recurrence(&mut graph, scratch, "0");
    graph.set_output(scratch, "y").unwrap();
    assert_eq!(analyse(&graph).unwrap().nodes().len(), 2);
}
