//! Which nodes are fused, and what that does to memory.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use kovar_core::ops::{Binary, BinaryKind, Op, Pairing, RmsNorm, Rope, Unary, UnaryKind};
use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::{Homes, HostSlice, Plan, Policy, RunError, compile};
use kovar_testkit::simulated::SimulatedOptions;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::generator::build;
use crate::property::choices;
use crate::world::{World, add_to, agrees, device, only, section, without};

/// A device that fuses every group of the table.
fn fusing_all() -> Vec<SimulatedOptions> {
    vec![without("a", &[]).fusing(|_| true)]
}

fn input(graph: &mut Graph, name: &str) -> ValueId {
    graph.input(name, DType::F32, &[2, 4]).unwrap()
}

fn relu(graph: &mut Graph, x: ValueId) -> ValueId {
    let kind = UnaryKind::Relu;
    graph.apply(Op::from(Unary { kind }), &[x]).unwrap()
}

fn norm(graph: &mut Graph, x: ValueId) -> ValueId {
    let norm = Op::from(RmsNorm { eps: 1.0 });
    graph.apply(norm, &[x]).unwrap()
}

/// The names of a plan's groups, each with the nodes of its segment and which results are kept.
fn groups(plan: &Plan) -> Vec<(&'static str, std::ops::Range<usize>, Vec<bool>)> {
    let groups = plan.schedule().segments.iter().flat_map(|s| &s.groups);
    groups
        .map(|g| (g.fusion.name(), g.nodes.clone(), g.kept.clone()))
        .collect()
}

/// Runs a graph on a device that fuses all it can, compares the results with those of one that
/// fuses nothing, and returns the groups.
fn fused(graph: &Graph) -> Vec<(&'static str, std::ops::Range<usize>, Vec<bool>)> {
    let plan = agrees(graph, fusing_all(), Homes::all_on(device(0)));
    groups(&plan)
}

#[test]
fn a_result_that_only_the_group_reads_takes_no_memory() {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
    let sum = g.add(a, b).unwrap();
    let y = relu(&mut g, sum);
    g.set_output(y, "y").unwrap();
    let plan = agrees(&g, fusing_all(), Homes::all_on(device(0)));
    let expected = ("bias+activation", 0..2, vec![false, true]);
    assert_eq!(groups(&plan), [expected]);
    let sum = g.value(sum).unwrap().storage;
    let replicas = &plan.schedule().replicas;
    assert!(replicas.iter().all(|replica| replica.storage != sum));
    // Both operands and the result, which lies over neither.
    assert_eq!(plan.memory()[0].arena_lower_bound, 3 * 64);
    let expected = "\
fusion: 1 group of 2 nodes
  bias+activation: 0, 1, writes y, not add.0
";
    assert_eq!(section(&plan, "fusion"), expected);
}

#[test]
fn a_result_that_is_read_later_or_outlives_the_run_is_written() {
    // By a later node, as an output, and as a state.
    for case in 0..3 {
        let mut g = Graph::new();
        let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
        let state = g.state("s", DType::F32, &[2, 4]).unwrap();
        let add = Op::from(Binary {
            kind: BinaryKind::Add,
        });
        let sum = match case {
            2 => g.apply_into(add, &[a, b], state).unwrap(),
            _ => g.apply(add, &[a, b]).unwrap(),
        };
        let mut y = norm(&mut g, sum);
        match case {
            0 => y = g.concat(&[y, sum], 0).unwrap(),
            1 => g.set_output(sum, "sum").unwrap(),
            _ => {}
        }
        g.set_output(y, "y").unwrap();
        let expected = ("residual+norm", 0..2, vec![true, true]);
        assert_eq!(fused(&g), [expected], "case {case}");
    }
}

#[test]
fn a_chain_in_place_writes_once() {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
    let x = g.softmax(a, None, 1.0).unwrap();
    add_to(&mut g, x, b);
    add_to(&mut g, x, b);
    let x = g
        .apply_in_place(Op::from(RmsNorm { eps: 1.0 }), &[x])
        .unwrap();
    let y = g.concat(&[x, b], 1).unwrap();
    g.set_output(y, "y").unwrap();
    // The pair of sums comes first.
    let pair = ("elementwise", 1..3, vec![false, true]);
    assert_eq!(fused(&g), [pair]);
}

#[test]
fn an_operand_that_the_group_makes_itself_is_not_fused() {
    // The square of a sum reads the sum twice.
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
    let sum = g.add(a, b).unwrap();
    let square = g.mul(sum, sum).unwrap();
    g.set_output(square, "y").unwrap();
    assert_eq!(fused(&g), []);
    // Once turned on its side.
    let mut g = Graph::new();
    let a = g.input("a", DType::F32, &[4, 4]).unwrap();
    let sum = g.add(a, a).unwrap();
    let turned = g.permute(sum, &[1, 0]).unwrap();
    let y = g.mul(sum, turned).unwrap();
    g.set_output(y, "y").unwrap();
    assert_eq!(fused(&g), []);
}

#[test]
fn results_over_other_elements_of_an_operand_are_not_fused() {
    let graph = |from: usize| {
        let mut g = Graph::new();
        let a = g.input("a", DType::F32, &[2, 4]).unwrap();
        let wide = g.temp("wide", DType::F32, &[3, 4]).unwrap();
        let all = g.input("all", DType::F32, &[3, 4]).unwrap();
        g.copy_into(all, wide).unwrap();
        let read = g.slice(wide, 0, 0..2).unwrap();
        let written = g.slice(wide, 0, from..from + 2).unwrap();
        let sum = g.add(a, read).unwrap();
        let kind = UnaryKind::Relu;
        let relu = Op::from(Unary { kind });
        g.apply_into(relu, &[sum], written).unwrap();
        g.set_output(wide, "y").unwrap();
        g
    };
    let expected = ("bias+activation", 1..3, vec![false, true]);
    assert_eq!(fused(&graph(0)), [expected]);
    assert_eq!(fused(&graph(1)), []);
}

#[test]
fn rope_from_rows_of_the_cache_that_it_goes_to_is_not_fused() {
    let graph = |from_cache: bool| {
        let mut g = Graph::new();
        let x = g.input("x", DType::F32, &[5, 1, 4]).unwrap();
        let cache = g.state("cache", DType::F32, &[5, 1, 4]).unwrap();
        let table = g.input("table", DType::F32, &[5, 2, 2]).unwrap();
        let ids = g.input("ids", DType::I32, &[5]).unwrap();
        let keys = if from_cache { cache } else { x };
        let pairing = Pairing::Neox;
        let turned = g.apply(Op::from(Rope { pairing }), &[keys, table]);
        g.set_rows(cache, turned.unwrap(), ids).unwrap();
        g
    };
    let groups_of = |graph: &Graph| {
        let world = World::new(graph, fusing_all(), Homes::all_on(device(0)));
        groups(&world.compile(graph).unwrap())
    };
    let expected = ("rope+cache write", 0..2, vec![false, true]);
    assert_eq!(groups_of(&graph(false)), [expected]);
    assert_eq!(groups_of(&graph(true)), []);
}

#[test]
fn a_group_is_of_one_device_and_one_segment() {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
    let sum = g.add(a, b).unwrap();
    let sum = relu(&mut g, sum);
    let sum = g.add(sum, b).unwrap();
    let y = norm(&mut g, sum);
    g.set_output(y, "y").unwrap();
    let devices = vec![
        only("a", &["add", "relu"]).fusing(|_| true),
        only("b", &["rms_norm"]).fusing(|_| true),
    ];
    let plan = agrees(&g, devices, Homes::all_on(device(0)));
    let expected = ("elementwise", 0..3, vec![false, false, true]);
    assert_eq!(groups(&plan), [expected]);

    let world = World::new(&g, fusing_all(), Homes::all_on(device(0)));
    for (most, expected) in [(1, vec![]), (2, vec![2, 2]), (4, vec![3])] {
        let mut policy = Policy::default();
        policy.max_segment_nodes = NonZeroUsize::new(most);
        let plan = compile(&g, &world.session, &policy).unwrap();
        let groups = groups(&plan).into_iter();
        let sizes: Vec<usize> = groups.map(|(_, nodes, _)| nodes.len()).collect();
        assert_eq!(sizes, expected, "segments of {most}");
    }
    let mut policy = Policy::default();
    policy.fuse = false;
    let plan = compile(&g, &world.session, &policy).unwrap();
    assert_eq!(groups(&plan), []);
}

#[test]
fn a_device_gets_the_first_group_that_it_has_a_kernel_for() {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
    let sum = g.add(a, b).unwrap();
    let normed = norm(&mut g, sum);
    let y = g.mul(normed, b).unwrap();
    g.set_output(y, "y").unwrap();
    let of = |names: &'static [&'static str]| {
        let options = without("a", &[]).fusing(move |group| names.contains(&group.fusion.name()));
        let plan = agrees(&g, vec![options], Homes::all_on(device(0)));
        let groups = groups(&plan).into_iter();
        groups
            .map(|(name, nodes, _)| (name, nodes))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), []);
    assert_eq!(of(&["norm+scale"]), [("norm+scale", 1..3)]);
    let both = of(&["norm+scale", "residual+norm"]);
    assert_eq!(both, [("residual+norm", 0..2)]);
}

#[test]
fn a_group_whose_operands_do_not_fit_the_budget_together_is_run_apart() {
    // Fused, `b` and `y` are there at one time; unfused, `y` lies over `b`.
    let mut g = Graph::new();
    let dims = [64];
    let a = g.input("a", DType::F32, &dims).unwrap();
    let b = g.softmax(a, None, 1.0).unwrap();
    let sum = g.add(a, b).unwrap();
    let y = norm(&mut g, sum);
    g.set_output(sum, "sum").unwrap();
    g.set_output(y, "y").unwrap();
    for (budget, fused) in [(1024, 1), (1023, 0), (768, 0)] {
        let homes = Homes::all_on(device(0)).budget(device(0), budget);
        let plan = agrees(&g, fusing_all(), homes);
        assert_eq!(groups(&plan).len(), fused, "{budget} bytes");
    }
}

#[test]
fn an_observer_cannot_read_what_is_only_within_a_group() {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
    let sum = g.add(a, b).unwrap();
    let y = relu(&mut g, sum);
    g.set_output(y, "y").unwrap();
    let world = World::new(&g, fusing_all(), Homes::all_on(device(0)));
    let plan = world.compile(&g).unwrap();
    let ones = [1.0f32; 8];
    let mut seen = 0;
    let mut observer = |evaluated: &kovar_runtime::ObservedSegment<'_>| {
        let read = |value| evaluated.read(g.value(value).unwrap());
        assert!(matches!(read(sum), Err(RunError::NotInMemory { .. })));
        assert!(read(a).is_ok() && read(b).is_ok());
        assert_eq!(read(y).unwrap()[..4], 2f32.to_le_bytes());
        let replaced = evaluated.replace(g.value(sum).unwrap(), &[0; 32]);
        assert!(matches!(replaced, Err(RunError::NotInMemory { .. })));
        seen += 1;
        ControlFlow::Continue(())
    };
    let inputs = [(a, HostSlice::f32(&ones)), (b, HostSlice::f32(&ones))];
    plan.run_observed(&inputs, &[], Some(&mut observer))
        .unwrap();
    assert_eq!(seen, 1);
}

/// The graphs of the scheduler's property have groups of every kind.
#[test]
fn arbitrary_graphs_are_fused_in_every_way() {
    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    for _ in 0..2000 {
        let choices = choices().new_tree(&mut runner).unwrap().current();
        let graph = build(&choices);
        let world = World::new(&graph, fusing_all(), Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        for (name, _, kept) in groups(&plan) {
            let all = kept.iter().all(|&kept| kept);
            *seen.entry(name).or_default() += 1;
            let written = if all {
                "all written"
            } else {
                "not all written"
            };
            *seen.entry(written).or_default() += 1;
        }
    }
    for name in [
        "residual+norm",
        "norm+scale",
        "norm+activation",
        "bias+activation",
        "gate*up",
        "elementwise",
        "rope+cache write",
        "all written",
        "not all written",
    ] {
        assert!(seen.get(name).is_some_and(|&n| n > 10), "{name}: {seen:?}");
    }
}
