//! What the checker finds in wrong groups of fused nodes.

use kovar_core::fusion::{Fusion, Group};
use kovar_core::ops::{Op, RmsNorm};
use kovar_core::{DType, Graph};
use kovar_testkit::simulated::SimulatedOptions;

use super::{Planned, devices};
use crate::check::check_groups;
use crate::device::DeviceId;
use crate::place::{Homes, Inputs};
use crate::schedule::Schedule;
use crate::schedule::fusion::{dump, fuse};
use crate::violation::Violation;

/// `y = norm(a + b)`, `z = softmax(y)`, where the sum is needed if `sum_is_output`. The first two
/// nodes are one group.
fn residual(sum_is_output: bool) -> Planned {
    residual_with(sum_is_output, |_, _| {})
}

fn residual_with(sum_is_output: bool, change: impl Fn(&Graph, &mut Schedule)) -> Planned {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| g.input(name, DType::F32, &[2, 4]).unwrap());
    let sum = g.add(a, b).unwrap();
    let norm = Op::from(RmsNorm { eps: 1.0 });
    let y = g.apply(norm, &[sum]).unwrap();
    let z = g.softmax(y, None, 1.0).unwrap();
    if sum_is_output {
        g.set_output(sum, "sum").unwrap();
    }
    g.set_output(z, "z").unwrap();
    let options = vec![SimulatedOptions::new("a").fusing(|_| true)];
    Planned::new(g, options, &Homes::all_on(DeviceId::FIRST)).with_schedule(change)
}

fn group(planned: &mut Planned) -> &mut Group {
    &mut planned.passes.schedule.segments[0].groups[0]
}

#[test]
fn a_needed_result_that_is_not_written_is_found() {
    let mut planned = residual(true);
    planned.check().unwrap();
    group(&mut planned).kept = vec![false, true];
    let stale = Violation::Stale {
        node: None,
        storage: "sum".into(),
        device: 0,
        bytes: 0..32,
    };
    assert_eq!(planned.check(), Err(stale));
}

#[test]
fn a_written_result_without_memory_is_found() {
    let mut planned = residual(false);
    group(&mut planned).kept = vec![true, true];
    let missing = Violation::ReadsForeign {
        node: 0,
        runs_on: 0,
        storage: "add.0".into(),
    };
    assert_eq!(planned.check(), Err(missing));
}

#[test]
fn an_operand_that_shares_memory_with_a_result_of_its_group_is_found() {
    // As if the nodes ran one after the other: the norm's result over an operand of the sum.
    let planned = residual_with(true, |graph, schedule| {
        for replica in &mut schedule.replicas {
            match graph.storages()[replica.storage.index()].name.as_str() {
                "a" | "b" => replica.lifetime.end = 0,
                "rms_norm.1" => replica.lifetime.start = 1,
                _ => {}
            }
        }
    });
    let found = planned.check().unwrap_err();
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
    let found = |change: &dyn Fn(&mut Group)| {
        let mut planned = residual(true);
        change(group(&mut planned));
        match planned.check() {
            Err(Violation::Group { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let row = |name| Fusion::all().iter().find(|fusion| fusion.name() == name);
    let changes: [&dyn Fn(&mut Group); 3] = [
        &|group| group.nodes = 1..3,
        &|group| group.nodes = 3..5,
        &|group| group.fusion = row("gate*up").unwrap(),
    ];
    for change in changes {
        assert_eq!(found(change), "which do not match its pattern");
    }
    for kept in [vec![true], vec![true, false]] {
        let reason = found(&|group| group.kept = kept.clone());
        assert_eq!(reason, "and does not keep the result of the last one");
    }
    let mut planned = residual(true);
    let twice = group(&mut planned).clone();
    planned.passes.schedule.segments[0].groups.push(twice);
    let twice = planned.check().unwrap_err();
    assert!(
        twice.to_string().contains("which belong to another group"),
        "{twice}"
    );
}

#[test]
fn a_device_is_not_given_a_group_that_it_has_no_kernel_for() {
    let mut planned = residual(true);
    let plain = devices(vec![SimulatedOptions::new("a")]);
    let found = check_groups(&planned.graph, &planned.passes.schedule, &plain);
    assert!(
        matches!(found, Err(Violation::Group { segment: 0, reason, .. })
            if reason == "for which its device has no kernel")
    );
    let inputs = Inputs {
        graph: &planned.graph,
        devices: &plain,
        homes: &planned.homes,
        policy: &planned.policy,
        cutoffs: &[],
    };
    fuse(
        inputs,
        &planned.passes.liveness,
        &mut planned.passes.schedule,
    );
    assert_eq!(
        dump(&planned.graph, &planned.passes.schedule),
        "fusion: 0 groups of 0 nodes\n"
    );
}
