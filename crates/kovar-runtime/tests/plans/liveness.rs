//! Which nodes of a graph are needed, and how long its storages live.

use kovar_core::{DType, Graph};
use kovar_runtime::{CompileError, Homes, PlaceError, Plan};
use kovar_testkit::simulated::SimulatedOptions;

use crate::world::{World, device, recurrence, section, two_inputs};

fn planned(graph: &Graph) -> Result<Plan, CompileError> {
    let homes = Homes::all_on(device(0));
    World::new(graph, vec![SimulatedOptions::default()], homes).compile(graph)
}

/// The needed nodes.
fn needed(graph: &Graph) -> Vec<usize> {
    let plan = planned(graph).unwrap();
    plan.kernels().iter().map(|k| k.node.index()).collect()
}

/// The first and the last node of the run for which storage `name` must be there.
fn lifetime(plan: &Plan, name: &str) -> Option<String> {
    let replicas = section(plan, "replicas");
    let line = replicas
        .lines()
        .find(|line| line.contains(&format!("`{name}`")))?;
    line.split(": ").nth(1).map(str::to_owned)
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
    let plan = planned(&graph).unwrap();
    assert_eq!(plan.kernels().len(), 5);
    let expected = [("a", "0..=0"), ("b", "0..=1"), ("add.0", "0..=3")];
    let expected = expected
        .into_iter()
        .chain([("mul.1", "1..=2"), ("y", "4..=4")]);
    for (name, nodes) in expected {
        assert_eq!(lifetime(&plan, name).as_deref(), Some(nodes), "{name}");
    }
}

#[test]
fn inputs_live_from_the_start_and_outputs_to_the_end() {
    let (mut graph, a, b) = two_inputs(4);
    let early = graph.scale(a, 2.0).unwrap();
    let late = graph.scale(b, 2.0).unwrap();
    graph.set_output(early, "early").unwrap();
    graph.set_output(late, "late").unwrap();
    let plan = planned(&graph).unwrap();
    for name in ["b", "early"] {
        assert_eq!(lifetime(&plan, name).as_deref(), Some("0..=1"), "{name}");
    }
}

#[test]
fn nodes_with_unread_results_are_dropped() {
    let (mut graph, a, b) = two_inputs(4);
    let unused = graph.add(a, b).unwrap();
    graph.mul(unused, b).unwrap();
    let used = graph.scale(a, 2.0).unwrap();
    graph.set_output(used, "y").unwrap();
    assert_eq!(needed(&graph), [2]);
    assert_eq!(lifetime(&planned(&graph).unwrap(), "b"), None);
}

#[test]
fn a_result_that_is_overwritten_unread_is_dropped() {
    let (mut graph, a, b) = two_inputs(4);
    let y = graph.scale(a, 2.0).unwrap();
    graph.copy_into(b, y).unwrap();
    graph.set_output(y, "y").unwrap();
    assert_eq!(needed(&graph), [1]);
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
    assert_eq!(needed(&graph).len(), 3);
}

#[test]
fn writes_to_a_state_are_always_needed() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2]).unwrap();
    let state = graph.state("s", DType::F32, &[2]).unwrap();
    graph.copy_into(x, state).unwrap();
    assert_eq!(needed(&graph).len(), 1);
}

#[test]
fn reading_a_temporary_before_any_write_names_it() {
    let mut graph = Graph::new();
    let scratch = graph.temp("scratch", DType::F32, &[4]).unwrap();
    let y = graph.scale(scratch, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    assert_eq!(
        planned(&graph).unwrap_err(),
        PlaceError::ReadBeforeWrite {
            storage: "scratch".into(),
            op: "scale",
            node: 0,
            operand: "x",
        }
        .into()
    );
}

#[test]
fn reading_elements_that_are_not_the_written_ones_is_an_error() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2]).unwrap();
    let scratch = graph.temp("scratch", DType::F32, &[4]).unwrap();
    let [head, tail] = [0..2, 2..4].map(|range| graph.slice(scratch, 0, range).unwrap());
    graph.copy_into(x, head).unwrap();
    let y = graph.scale(tail, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let error = planned(&graph).unwrap_err();
    assert!(matches!(
        error,
        CompileError::Place(PlaceError::ReadBeforeWrite { .. })
    ));
}

#[test]
fn an_output_that_nothing_writes_is_an_error() {
    let mut graph = Graph::new();
    let y = graph.temp("y", DType::F32, &[4]).unwrap();
    graph.set_output(y, "y").unwrap();
    let error = planned(&graph).unwrap_err();
    assert_eq!(
        error,
        PlaceError::OutputNotWritten { name: "y".into() }.into()
    );
    let mut graph = Graph::new();
    let empty = graph.temp("y", DType::F32, &[0]).unwrap();
    graph.set_output(empty, "y").unwrap();
    assert_eq!(needed(&graph), []);
}

#[test]
fn the_description_shows_each_needed_node() {
    let (mut graph, a, b) = two_inputs(4);
    let sum = graph.add(a, b).unwrap();
    let y = graph.scale(sum, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let expected = "\
liveness: 2 of 2 nodes needed
     0  add.0[0..16] = add(a, b)
     1  y[0..16] = scale(add.0)
";
    assert_eq!(section(&planned(&graph).unwrap(), "liveness"), expected);
}

#[test]
fn a_node_that_updates_a_state_is_needed_though_its_result_is_unread() {
    let mut graph = Graph::new();
    let state = graph.state("s", DType::F32, &[1, 4, 4]).unwrap();
    recurrence(&mut graph, state, "0");
    let scratch = graph.temp("scratch", DType::F32, &[1, 4, 4]).unwrap();
    graph.copy_into(state, scratch).unwrap();
    recurrence(&mut graph, scratch, "1");
    assert_eq!(needed(&graph), [0]);
    let description = planned(&graph).unwrap().describe();
    assert!(
        description.contains("= wkv7(r0, w0, k0, v0, a0, b0, s), updates s\n"),
        "{description}"
    );
}

#[test]
fn an_updated_temporary_counts_as_read_and_as_written() {
    let graph = |is_written: bool| {
        let mut graph = Graph::new();
        let scratch = graph.temp("scratch", DType::F32, &[1, 4, 4]).unwrap();
        if is_written {
            let zeros = graph.input("zeros", DType::F32, &[1, 4, 4]).unwrap();
            graph.copy_into(zeros, scratch).unwrap();
        }
        recurrence(&mut graph, scratch, "0");
        graph.set_output(scratch, "y").unwrap();
        graph
    };
    let error = planned(&graph(false)).unwrap_err();
    let operand = "state";
    assert!(
        matches!(error, CompileError::Place(PlaceError::ReadBeforeWrite { operand: o, .. }) if o == operand),
        "{error}"
    );
    assert_eq!(needed(&graph(true)).len(), 2);
}
