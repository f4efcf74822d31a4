//! Which nodes are fused, what that does to memory, and what the checker finds in wrong groups.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use kovar_core::fusion::{Fusion, Group};
use kovar_core::ops::{Binary, BinaryKind, Op, Pairing, RmsNorm, Rope, Unary, UnaryKind};
use kovar_core::{DType, Graph, ValueId};
use kovar_runtime::check::{Violation, check_groups, check_memory, check_segments};
use kovar_runtime::flow::check_flow;
use kovar_runtime::fusion::{dump, fuse};
use kovar_runtime::liveness::analyse;
use kovar_runtime::memory::{MemoryPlan, plan};
use kovar_runtime::placement::{Rules, place};
use kovar_runtime::segment::{Schedule, schedule};
use kovar_runtime::{Homes, HostSlice, Policy, RunError, compile};
use kovar_testkit::simulated::SimulatedOptions;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::generator::build;
use crate::property::choices;
use crate::world::{World, agrees, device, only, without};

/// A device that fuses whatever the table has.
fn fusing(options: SimulatedOptions) -> SimulatedOptions {
    SimulatedOptions {
        fuses: Some(Arc::new(|_| true)),
        ..options
    }
}

fn fusing_all() -> Vec<SimulatedOptions> {
    vec![fusing(without("a", &[]))]
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

fn add_over(graph: &mut Graph, a: ValueId, b: ValueId) -> ValueId {
    let kind = BinaryKind::Add;
    let add = Op::from(Binary { kind });
    graph.apply_in_place(add, &[a, b]).unwrap()
}

/// The names of a plan's groups, each with the nodes of its segment and which results are kept.
fn groups(schedule: &Schedule) -> Vec<(&'static str, std::ops::Range<usize>, Vec<bool>)> {
    let groups = schedule.segments.iter().flat_map(|s| &s.groups);
    groups
        .map(|g| (g.fusion.name(), g.nodes.clone(), g.kept.clone()))
        .collect()
}

/// Runs a graph on a device that fuses all it can, compares it with one that fuses nothing, and
/// gives the groups.
fn fused(graph: &Graph) -> Vec<(&'static str, std::ops::Range<usize>, Vec<bool>)> {
    let plan = agrees(graph, fusing_all(), Homes::all_on(device(0)));
    groups(plan.schedule())
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
    assert_eq!(groups(plan.schedule()), [expected]);
    let sum = g.value(sum).unwrap().storage;
    let replicas = &plan.schedule().replicas;
    assert!(replicas.iter().all(|replica| replica.storage != sum));
    // Both operands and the result, which lies over neither.
    assert_eq!(plan.memory()[0].arena_lower_bound, 3 * 64);
    let of_fusion = plan.describe();
    let of_fusion = of_fusion.split("fusion: ").nth(1).unwrap();
    let of_fusion = of_fusion.split("memory:").next().unwrap();
    let expected = "1 group of 2 nodes\n  bias+activation: 0, 1, writes y, not add.0\n";
    assert_eq!(of_fusion, expected);
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
    let x = add_over(&mut g, x, b);
    let x = add_over(&mut g, x, b);
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
        groups(world.compile(graph).unwrap().schedule())
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
        fusing(only("a", &["add", "relu"])),
        fusing(only("b", &["rms_norm"])),
    ];
    let plan = agrees(&g, devices, Homes::all_on(device(0)));
    let expected = ("elementwise", 0..3, vec![false, false, true]);
    assert_eq!(groups(plan.schedule()), [expected]);

    let world = World::new(&g, fusing_all(), Homes::all_on(device(0)));
    for (most, expected) in [(1, vec![]), (2, vec![2, 2]), (4, vec![3])] {
        let mut policy = Policy::default();
        policy.max_segment_nodes = NonZeroUsize::new(most);
        let plan = compile(&g, &world.session, &policy).unwrap();
        let groups = groups(plan.schedule()).into_iter();
        let sizes: Vec<usize> = groups.map(|(_, nodes, _)| nodes.len()).collect();
        assert_eq!(sizes, expected, "segments of {most}");
    }
    let mut policy = Policy::default();
    policy.fuse = false;
    let plan = compile(&g, &world.session, &policy).unwrap();
    assert_eq!(groups(plan.schedule()), []);
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
        let options = SimulatedOptions {
            fuses: Some(Arc::new(move |group| names.contains(&group.fusion.name()))),
            ..without("a", &[])
        };
        let plan = agrees(&g, vec![options], Homes::all_on(device(0)));
        let groups = groups(plan.schedule()).into_iter();
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
        assert_eq!(groups(plan.schedule()).len(), fused, "{budget} bytes");
    }
}

#[test]
fn an_observer_is_told_what_is_only_within_a_group() {
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
        assert!(matches!(read(sum), Err(RunError::NotReadable { .. })));
        assert!(read(a).is_ok() && read(b).is_ok());
        assert_eq!(read(y).unwrap()[..4], 2f32.to_le_bytes());
        let replaced = evaluated.replace(g.value(sum).unwrap(), &[0; 32]);
        assert!(matches!(replaced, Err(RunError::NotReadable { .. })));
        seen += 1;
        ControlFlow::Continue(())
    };
    let inputs = [(a, HostSlice::f32(&ones)), (b, HostSlice::f32(&ones))];
    plan.run_observed(&inputs, &[], Some(&mut observer))
        .unwrap();
    assert_eq!(seen, 1);
}

/// `y = norm(a + b)`, `z = y + b`, where the sum is needed if `sum_is_output`.
fn residual(sum_is_output: bool) -> Graph {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| input(&mut g, name));
    let sum = g.add(a, b).unwrap();
    let y = norm(&mut g, sum);
    let z = g.softmax(y, None, 1.0).unwrap();
    if sum_is_output {
        g.set_output(sum, "sum").unwrap();
    }
    g.set_output(z, "z").unwrap();
    g
}

/// What the checker says of a fused plan after a change of its schedule, before (`true`) or behind
/// the memory plan.
fn changed(
    graph: &Graph,
    before: bool,
    change: impl Fn(&mut Schedule),
) -> Result<MemoryPlan, Violation> {
    let homes = Homes::all_on(device(0));
    let world = World::new(graph, fusing_all(), homes.clone());
    let devices = world.session.devices();
    let liveness = analyse(graph).unwrap();
    let placement = place(graph, &liveness, devices, &Rules::new(&homes)).unwrap();
    let mut schedule = schedule(graph, &liveness, &placement, None);
    fuse(graph, &liveness, devices, &mut schedule);
    if before {
        change(&mut schedule);
    }
    let memory = plan(graph, &liveness, &placement, &schedule, devices, true).unwrap();
    if !before {
        change(&mut schedule);
    }
    check_segments(graph, &liveness, &placement, &schedule)?;
    check_groups(graph, &schedule, devices)?;
    check_memory(graph, &placement, &schedule, &memory)?;
    check_flow(graph, &liveness, &placement, &schedule, &memory)?;
    Ok(memory)
}

fn kept(schedule: &mut Schedule, kept: &[bool]) {
    schedule.segments[0].groups[0].kept = kept.to_vec();
}

#[test]
fn a_needed_result_that_is_not_written_is_found() {
    let graph = residual(true);
    assert!(changed(&graph, false, |_| {}).is_ok());
    let stale = Violation::Stale {
        node: None,
        storage: "sum".into(),
        device: 0,
        bytes: 0..32,
    };
    let found = changed(&graph, false, |schedule| kept(schedule, &[false, true]));
    assert_eq!(found, Err(stale));
}

#[test]
fn a_written_result_without_memory_is_found() {
    let graph = residual(false);
    let found = changed(&graph, false, |schedule| kept(schedule, &[true, true]));
    let missing = Violation::ReadsForeign {
        node: 0,
        runs_on: 0,
        storage: "add.0".into(),
    };
    assert_eq!(found, Err(missing));
}

#[test]
fn an_operand_that_shares_memory_with_a_result_of_its_group_is_found() {
    let graph = residual(true);
    // As if the nodes ran one after the other: the norm's result over an operand of the sum.
    let unfused = |schedule: &mut Schedule| {
        for replica in &mut schedule.replicas {
            match graph.storages()[replica.storage.index()].name.as_str() {
                "a" | "b" => replica.lifetime.end = 0,
                "rms_norm.1" => replica.lifetime.start = 1,
                _ => {}
            }
        }
    };
    let found = changed(&graph, true, unfused).unwrap_err();
    let Violation::GroupOverlap {
        touched, written, ..
    } = &found
    else {
        panic!("{found}");
    };
    assert!(
        ["a", "b"].contains(&touched.as_str()) && written == "rms_norm.1",
        "{found}"
    );
}

#[test]
fn groups_that_are_none_are_found() {
    let graph = residual(true);
    let found = |change: &dyn Fn(&mut Group)| {
        let change = |schedule: &mut Schedule| change(&mut schedule.segments[0].groups[0]);
        match changed(&graph, false, change) {
            Err(Violation::Group { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let other = |group: &mut Group| group.nodes = 1..3;
    assert_eq!(found(&other), "which are none of its pattern");
    let beyond = |group: &mut Group| group.nodes = 3..5;
    assert_eq!(found(&beyond), "which are none of its pattern");
    let row = |name| Fusion::all().iter().find(|fusion| fusion.name() == name);
    let another = |group: &mut Group| group.fusion = row("gate*up").unwrap();
    assert_eq!(found(&another), "which are none of its pattern");
    let short = |group: &mut Group| group.kept = vec![true];
    assert_eq!(found(&short), "and does not keep the last one's result");
    let lost = |group: &mut Group| group.kept = vec![true, false];
    assert_eq!(found(&lost), "and does not keep the last one's result");
    let twice = |schedule: &mut Schedule| {
        let group = schedule.segments[0].groups[0].clone();
        schedule.segments[0].groups.push(group);
    };
    let twice = changed(&graph, false, twice).unwrap_err();
    assert!(
        twice.to_string().contains("which another group has"),
        "{twice}"
    );
}

#[test]
fn a_device_is_not_given_a_group_that_it_has_no_kernel_for() {
    let graph = residual(true);
    let homes = Homes::all_on(device(0));
    let world = World::new(&graph, fusing_all(), homes.clone());
    let plain = World::new(&graph, vec![without("a", &[])], homes.clone());
    let liveness = analyse(&graph).unwrap();
    let placement = place(
        &graph,
        &liveness,
        plain.session.devices(),
        &Rules::new(&homes),
    );
    let mut schedule = schedule(&graph, &liveness, &placement.unwrap(), None);
    fuse(&graph, &liveness, world.session.devices(), &mut schedule);
    let found = check_groups(&graph, &schedule, plain.session.devices());
    assert!(
        matches!(found, Err(Violation::Group { segment: 0, reason, .. })
            if reason == "for which its device has no kernel")
    );
    fuse(&graph, &liveness, plain.session.devices(), &mut schedule);
    assert_eq!(dump(&graph, &schedule), "fusion: 0 groups of 0 nodes\n");
}

/// The property of the scheduler runs with fusion: its graphs have groups of every kind.
#[test]
fn arbitrary_graphs_are_fused_in_every_way() {
    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    for _ in 0..2000 {
        let choices = choices().new_tree(&mut runner).unwrap().current();
        let graph = build(&choices);
        let world = World::new(&graph, fusing_all(), Homes::all_on(device(0)));
        let plan = world.compile(&graph).unwrap();
        for (name, _, kept) in groups(plan.schedule()) {
            let all = kept.iter().all(|&kept| kept);
            *seen.entry(name).or_default() += 1;
            *seen
                .entry(if all {
                    "all written"
                } else {
                    "not all written"
                })
                .or_default() += 1;
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
