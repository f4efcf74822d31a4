//! What crosses between devices, and where nodes run.

use kovar_core::ops::{Attention, Binary, BinaryKind, Op, Scale, Unary, UnaryKind};
use kovar_core::{DType, Graph, StorageId, ValueId};
use kovar_runtime::{DeviceId, Homes, PlaceError, Plan, Policy, compile};
use kovar_testkit::simulated::{Call, Events, Stage};

use crate::world::{World, add_to, agrees, data, device, only, reference, without};

const CPU: usize = 0;
const GPU: usize = 1;

fn on_cpu() -> Homes {
    Homes::all_on(device(CPU))
}

fn on_gpu() -> Homes {
    Homes::all_on(device(GPU))
}

fn scale_of(graph: &mut Graph, x: ValueId, scale: f32) {
    graph
        .apply_in_place(Op::from(Scale { scale }), &[x])
        .unwrap();
}

fn storage(plan: &Plan, value: ValueId) -> StorageId {
    plan.graph().value(value).unwrap().storage
}

/// The storages that are copied, with the bytes, in the order in which they are needed.
fn copied(plan: &Plan) -> Vec<(String, std::ops::Range<usize>, usize, usize)> {
    let copies = plan.schedule().copies.iter();
    let name = |id: StorageId| plan.graph().storages()[id.index()].name.clone();
    copies
        .map(|c| {
            (
                name(c.storage),
                c.bytes.clone(),
                c.from.index(),
                c.to.index(),
            )
        })
        .collect()
}

/// The device of each node.
fn nodes(plan: &Plan) -> Vec<usize> {
    plan.kernels().iter().map(|k| k.device.index()).collect()
}

/// A group_norm of `a + b`, multiplied, added to and activated in place by what only the other
/// device makes.
fn normed_chain() -> (Graph, ValueId) {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[1, 4, 2, 3]).unwrap();
    let weight = graph.weight("norm.weight", DType::F32, &[4]).unwrap();
    let bias = graph.weight("norm.bias", DType::F32, &[4]).unwrap();
    let gate = graph.scale(a, 0.5).unwrap();
    let shift = graph.scale(a, -2.0).unwrap();
    let x = graph.group_norm(a, weight, bias, 2, 1e-5).unwrap();
    let kind = BinaryKind::Mul;
    graph
        .apply_in_place(Op::from(Binary { kind }), &[x, gate])
        .unwrap();
    add_to(&mut graph, x, shift);
    let kind = UnaryKind::Silu;
    graph
        .apply_in_place(Op::from(Unary { kind }), &[x])
        .unwrap();
    graph.set_output(x, "y").unwrap();
    (graph, x)
}

#[test]
fn an_in_place_chain_stays_on_the_owner() {
    let (graph, x) = normed_chain();
    let devices = vec![
        only("cpu", &["group_norm", "mul", "add", "silu"]),
        without("gpu", &["group_norm"]),
        without("gpu1", &["group_norm"]),
    ];
    let plan = agrees(&graph, devices, on_gpu());
    assert_eq!(nodes(&plan), [GPU, GPU, CPU, CPU, CPU, CPU]);
    let copies = [("scale.0", 0..96, GPU, CPU), ("scale.1", 0..96, GPU, CPU)];
    let copies = copies.map(|(name, bytes, from, to)| (name.to_owned(), bytes, from, to));
    assert_eq!(copied(&plan), copies);
    assert_eq!(plan.output("y"), Some(x));
}

#[test]
fn a_chain_that_no_device_supports_whole_becomes_versions() {
    let (graph, x) = normed_chain();
    let devices = vec![
        only("cpu", &["group_norm", "add"]),
        without("gpu", &["group_norm", "silu"]),
        only("gpu1", &["silu"]),
    ];
    let plan = agrees(&graph, devices, on_gpu());
    assert_eq!(nodes(&plan)[2..], [CPU, GPU, GPU, 2]);
    let of_x: Vec<_> = copied(&plan)
        .into_iter()
        .filter(|copy| copy.0 == "y")
        .collect();
    assert_eq!(
        of_x,
        [("y".into(), 0..96, CPU, GPU), ("y".into(), 0..96, GPU, 2)]
    );
    let description = plan.describe();
    let versions = "output `y`: cpu from 2 gpu from 3 gpu1 from 5";
    assert!(description.contains(versions), "{description}");
    assert!(storage(&plan, x).index() > 0);
}

#[test]
fn a_long_chain_is_read_through_a_view_on_another_device() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[6, 4]).unwrap();
    let b = graph.input("b", DType::F32, &[6, 4]).unwrap();
    let x = graph.add(a, b).unwrap();
    for i in 0..30 {
        match i % 2 {
            0 => add_to(&mut graph, x, b),
            _ => scale_of(&mut graph, x, 0.5),
        }
    }
    let tail = graph.slice(x, 0, 4..6).unwrap();
    let y = graph.softmax(tail, None, 1.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = vec![without("cpu", &["softmax"]), only("gpu", &["softmax"])];
    let plan = agrees(&graph, devices, on_cpu());
    assert_eq!(plan.schedule().segments.len(), 2);
    assert_eq!(copied(&plan), [("add.0".into(), 64..96, CPU, GPU)]);
}

#[test]
fn a_view_of_a_view_crosses_a_boundary() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[6, 4]).unwrap();
    let x = graph.scale(a, 2.0).unwrap();
    let rows = graph.slice(x, 0, 2..6).unwrap();
    let turned = graph.permute(rows, &[1, 0]).unwrap();
    let columns = graph.slice(turned, 0, 1..3).unwrap();
    let y = graph.softmax(columns, None, 1.0).unwrap();
    // Written through the view, read whole elsewhere.
    graph.copy_into(y, columns).unwrap();
    let z = graph.scale(x, 3.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(z, "z").unwrap();
    let devices = vec![
        only("cpu", &["scale"]),
        only("gpu", &["softmax"]),
        only("gpu1", &["copy"]),
    ];
    let plan = agrees(&graph, devices, on_cpu());
    assert_eq!(nodes(&plan), [CPU, GPU, 2, CPU]);
    let span = 36..92;
    let expected = [
        ("scale.0".into(), span.clone(), CPU, GPU),
        ("y".into(), 0..32, GPU, 2),
        ("scale.0".into(), span.clone(), CPU, 2),
        ("scale.0".into(), span, 2, CPU),
    ];
    assert_eq!(copied(&plan), expected);
}

/// `x = softmax(a)` on the first device only, then `x *= w` in place.
fn pinned_weight() -> Graph {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 4]).unwrap();
    let w = graph.weight("blk.0.w", DType::F32, &[4]).unwrap();
    let x = graph.softmax(a, None, 1.0).unwrap();
    let kind = BinaryKind::Mul;
    graph
        .apply_in_place(Op::from(Binary { kind }), &[x, w])
        .unwrap();
    graph.set_output(x, "y").unwrap();
    graph
}

#[test]
fn a_pin_against_an_in_place_owner_is_lost_with_a_warning_or_refused() {
    let graph = pinned_weight();
    let devices = || vec![without("cpu", &[]), without("gpu", &["softmax"])];
    let homes = on_cpu().pin("blk.*", device(GPU));
    let plan = agrees(&graph, devices(), homes.clone());
    assert_eq!(nodes(&plan), [CPU, CPU]);
    let [lost] = plan.rejected_pins() else {
        panic!("{:?}", plan.rejected_pins());
    };
    assert_eq!(
        lost.to_string(),
        "`blk.*` pins `blk.0.w` to gpu, but softmax (node 0) cannot run there: no kernel for softmax"
    );
    let world = World::new(&graph, devices(), homes);
    let mut policy = Policy::default();
    policy.strict = true;
    let error = compile(&graph, &world.session, &policy).unwrap_err();
    assert_eq!(error, PlaceError::RejectedPin(lost.clone()).into());
}

#[test]
fn of_two_pins_the_one_of_the_written_storage_counts() {
    let graph = pinned_weight();
    let devices = vec![without("cpu", &[]), without("gpu", &[])];
    let homes = on_cpu().pin("blk.*", device(GPU)).pin("y", device(CPU));
    let plan = agrees(&graph, devices, homes);
    assert_eq!(nodes(&plan), [CPU, CPU]);
    assert_eq!(
        plan.rejected_pins()[0].to_string(),
        "`blk.*` pins `blk.0.w` to gpu, but mul (node 1) cannot run there: it writes `y`, which \
         `y` places on cpu"
    );
}

#[test]
fn a_state_is_written_by_an_operation_that_its_home_lacks() {
    let mut graph = Graph::new();
    let s = graph.state("s", DType::F32, &[4, 4]).unwrap();
    let a = graph.input("a", DType::F32, &[2, 4]).unwrap();
    let ids = graph.input("ids", DType::I32, &[2]).unwrap();
    let head = graph.slice(s, 0, 0..3).unwrap();
    graph.set_rows(head, a, ids).unwrap();
    let y = graph.scale(s, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = vec![only("a", &["set_rows"]), without("b", &["set_rows"])];
    let plan = agrees(
        &graph,
        devices,
        Homes::all_on(device(0)).pin("s", device(1)),
    );
    // Only the rows in question leave the home and come back to it.
    let copies = [("s".into(), 0..48, 1, 0), ("s".into(), 0..48, 0, 1)];
    assert_eq!(copied(&plan), copies);
    assert!(plan.rejected_pins().is_empty());
}

#[test]
fn a_cache_on_one_device_serves_attention_on_another() {
    let mut graph = Graph::new();
    let (rows, heads, dim) = (6, 2, 4);
    let keys = graph
        .state("keys", DType::F32, &[rows, heads * dim])
        .unwrap();
    let values = graph
        .state("values", DType::F32, &[rows, heads * dim])
        .unwrap();
    let x = graph.input("x", DType::F32, &[2, heads * dim]).unwrap();
    let ids = graph.input("ids", DType::I32, &[2]).unwrap();
    let v = graph.scale(x, 0.25).unwrap();
    graph.set_rows(keys, x, ids).unwrap();
    graph.set_rows(values, v, ids).unwrap();
    let kv_len = graph.scalar("kv_len", rows as i32).unwrap();
    let q = graph.reshape(x, &[1, 2, heads, dim]).unwrap();
    let cached = [keys, values].map(|s| graph.reshape(s, &[1, rows, heads, dim]).unwrap());
    let attributes = Attention {
        kv_len: Some(kv_len),
        ..Attention::new(0.5)
    };
    let y = graph
        .attention(attributes, q, cached[0], cached[1], &[])
        .unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = || vec![without("cpu", &["attention"]), only("gpu", &["attention"])];
    let plan = agrees(&graph, devices(), on_cpu());
    assert_eq!(nodes(&plan), [CPU, CPU, CPU, GPU]);
    let names: Vec<String> = copied(&plan).into_iter().map(|copy| copy.0).collect();
    assert_eq!(names, ["keys", "values"]);
    // Only the rows that are valid cross.
    let row = 4 * heads * dim;
    for valid in 0..=rows {
        let bytes = plan.schedule().copied_bytes(&[valid as i32]);
        assert_eq!(bytes, 2 * valid * row, "{valid} rows");

        let events = Events::new();
        let mut devices = devices();
        devices[CPU].events = Some(events.clone());
        let world = World::new(&graph, devices, on_cpu());
        let plan = world.compile(&graph).unwrap();
        let given = ["x", "ids"].map(|name| {
            let value = plan.input(name).unwrap();
            let storage = &graph.storages()[storage(&plan, value).index()];
            (value, data(storage, 1))
        });
        let given = given.each_ref().map(|(value, data)| (*value, data.into()));
        drop(plan.run(&given, &[valid as i32]).unwrap());
        world.session.wait().unwrap();
        let events = events.all().into_iter();
        let read = events.filter(|e| e.call == Call::Read && e.stage == Stage::Done);
        assert_eq!(read.map(|event| event.bytes).sum::<usize>(), bytes);
    }
    let description = plan.describe();
    let line = "keys[0..192], kv_len rows, from cpu after 0 to gpu before 1";
    assert!(description.contains(line), "{description}");
}

#[test]
fn what_is_read_within_two_limits_crosses_whole() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[1, 4, 1, 4]).unwrap();
    let y = graph.scale(x, 2.0).unwrap();
    let rows = ["few", "more"].map(|name| graph.scalar(name, 4).unwrap());
    let turned = graph.permute(y, &[0, 3, 2, 1]).unwrap();
    for (i, (kv_len, keys)) in [(rows[0], y), (rows[1], turned), (rows[0], y)]
        .into_iter()
        .enumerate()
    {
        let attributes = Attention {
            kv_len: Some(kv_len),
            ..Attention::new(0.5)
        };
        let z = graph.attention(attributes, x, keys, keys, &[]).unwrap();
        graph.set_output(z, &format!("z{i}")).unwrap();
    }
    let devices = vec![only("cpu", &["scale"]), only("gpu", &["attention"])];
    let plan = agrees(&graph, devices, on_cpu());
    let crossing = [[0, 0], [1, 0], [4, 4]].map(|rows| plan.schedule().copied_bytes(&rows));
    assert_eq!(crossing, [64, 64, 64]);
}

#[test]
fn a_copy_within_a_limit_and_one_of_all_that_follow_each_other_are_one() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[1, 4, 1, 4]).unwrap();
    let y = graph.scale(x, 2.0).unwrap();
    let flat = graph.reshape(y, &[16]).unwrap();
    let head = graph.slice(flat, 0, 0..4).unwrap();
    let head = graph.softmax(head, None, 1.0).unwrap();
    let attributes = Attention {
        kv_len: Some(graph.scalar("rows", 4).unwrap()),
        ..Attention::new(0.5)
    };
    let z = graph.attention(attributes, x, y, y, &[]).unwrap();
    let all = graph.softmax(flat, None, 1.0).unwrap();
    for (value, name) in [(head, "head"), (z, "z"), (all, "all")] {
        graph.set_output(value, name).unwrap();
    }
    let devices = vec![
        only("cpu", &["scale"]),
        only("gpu", &["softmax", "attention"]),
    ];
    let plan = agrees(&graph, devices, on_cpu());
    let y = graph.storage_of(y).unwrap().name.clone();
    let expected = [(y.clone(), 0..16, CPU, GPU), (y, 16..64, CPU, GPU)];
    assert_eq!(copied(&plan), expected);
    assert_eq!(plan.schedule().copied_bytes(&[0]), 64);
}

#[test]
fn tied_embeddings_have_a_replica_on_each_device_that_reads_them() {
    let mut graph = Graph::new();
    let table = graph.weight("embd", DType::F32, &[5, 4]).unwrap();
    let ids = graph.input("ids", DType::I32, &[3]).unwrap();
    let x = graph.get_rows(table, ids).unwrap();
    let y = graph.matmul(table, x).unwrap();
    graph.set_output(y, "y").unwrap();
    let devices = || vec![only("cpu", &["get_rows"]), only("gpu", &["matmul"])];
    let plan = agrees(&graph, devices(), on_cpu());
    assert_eq!(copied(&plan), [("get_rows.0".into(), 0..48, CPU, GPU)]);
    let weights: Vec<usize> = plan.memory().iter().map(|memory| memory.weights).collect();
    assert_eq!(weights, [80, 80]);
    let world = World::new(&graph, devices(), on_cpu());
    let plans = [
        world.compile(&graph).unwrap(),
        world.compile(&graph).unwrap(),
    ];
    assert_eq!(world.run(&plans[0], 1), world.run(&plans[1], 1));
    let prepared = world
        .devices
        .iter()
        .map(|device| device.calls(Call::Prepare));
    assert_eq!(prepared.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_partial_write_carries_over_what_it_leaves_alone() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let ids = graph.input("ids", DType::I32, &[2]).unwrap();
    let x = graph.scale(a, 2.0).unwrap();
    let rows = graph.slice(a, 0, 0..2).unwrap();
    let head = graph.slice(x, 0, 0..3).unwrap();
    graph.set_rows(head, rows, ids).unwrap();
    let column = graph.slice(x, 1, 1..2).unwrap();
    scale_of(&mut graph, column, 3.0);
    graph.set_output(x, "y").unwrap();
    let devices = vec![only("cpu", &["scale"]), only("gpu", &["set_rows"])];
    let plan = agrees(&graph, devices, on_cpu());
    assert_eq!(
        copied(&plan),
        // The first element, which the column does not have, comes back after the last node.
        [
            ("y".into(), 0..48, CPU, GPU),
            ("y".into(), 4..48, GPU, CPU),
            ("y".into(), 0..4, GPU, CPU),
        ]
    );
}

#[test]
fn an_overwritten_version_is_not_copied() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let x = graph.scale(a, 2.0).unwrap();
    let y = graph.softmax(x, None, 1.0).unwrap();
    graph
        .softmax(x, None, 2.0)
        .map(|z| graph.set_output(z, "z"))
        .unwrap()
        .unwrap();
    graph.copy_into(a, x).unwrap();
    let w = graph.softmax(x, None, 1.0).unwrap();
    graph.set_output(y, "y").unwrap();
    graph.set_output(w, "w").unwrap();
    let devices = vec![only("cpu", &["scale"]), only("gpu", &["softmax", "copy"])];
    let plan = agrees(&graph, devices, on_cpu());
    // Read twice, copied once; and the second version is made where it is read.
    assert_eq!(copied(&plan), [("scale.0".into(), 0..64, CPU, GPU)]);
}

#[test]
fn storages_without_bytes_need_no_copies() {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[0, 3]).unwrap();
    let ids = graph.input("ids", DType::I32, &[0]).unwrap();
    let state = graph.state("empty", DType::F32, &[0, 3]).unwrap();
    let full = graph.state("full", DType::F32, &[2, 3]).unwrap();
    let y = graph.scale(x, 2.0).unwrap();
    let z = graph.softmax(y, None, 1.0).unwrap();
    graph.set_output(z, "z").unwrap();
    graph.copy_into(z, state).unwrap();
    graph.set_rows(full, z, ids).unwrap();
    let devices = vec![
        only("cpu", &["scale", "set_rows"]),
        only("gpu", &["softmax", "copy"]),
    ];
    let plan = agrees(&graph, devices, on_gpu());
    assert!(copied(&plan).iter().all(|copy| copy.0 == "full"));
}

#[test]
fn an_output_may_be_read_and_written_on_other_devices_before_the_end() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
    let y = graph.softmax(a, None, 1.0).unwrap();
    let z = graph.scale(y, 2.0).unwrap();
    let head = graph.slice(y, 0, 0..2).unwrap();
    scale_of(&mut graph, head, 0.5);
    let w = graph.scale(z, 2.0).unwrap();
    for (value, name) in [(y, "y"), (z, "z"), (w, "w")] {
        graph.set_output(value, name).unwrap();
    }
    let devices = vec![only("cpu", &["softmax"]), only("gpu", &["scale"])];
    let plan = agrees(&graph, devices, on_cpu());
    assert_eq!(nodes(&plan), [CPU, GPU, GPU, GPU]);
    // The last version is on the second device, which has all of it already.
    assert_eq!(copied(&plan), [("y".into(), 0..64, CPU, GPU)]);
}

#[test]
fn plans_of_different_placements_share_states() {
    let step = |op: Op| {
        let mut graph = Graph::new();
        let s = graph.state("s", DType::F32, &[4, 4]).unwrap();
        let a = graph.input("a", DType::F32, &[4, 4]).unwrap();
        graph.apply_into(op, &[a], s).unwrap();
        add_to(&mut graph, s, a);
        let y = graph.scale(s, 2.0).unwrap();
        graph.set_output(y, "y").unwrap();
        graph
    };
    let prefill = step(Op::from(Scale { scale: 0.5 }));
    let decode = step(Op::from(Unary {
        kind: UnaryKind::Silu,
    }));
    let run = |devices: Vec<_>| {
        let world = World::new(&prefill, devices, on_cpu());
        let plans = [&prefill, &decode].map(|graph| world.compile(graph).unwrap());
        [0, 1, 1, 0, 1].map(|at| world.run(&plans[at], at as u32))
    };
    let split = vec![without("cpu", &["silu"]), without("gpu", &["scale"])];
    assert_eq!(run(split), run(vec![without("cpu", &[])]));
}

#[test]
fn neighbours_on_different_devices_give_what_one_device_does() {
    let mut graph = Graph::new();
    let s = graph.state("s", DType::F32, &[4, 4]).unwrap();
    let mut x = graph.input("a", DType::F32, &[4, 4]).unwrap();
    for _ in 0..20 {
        x = graph.scale(x, 0.5).unwrap();
        x = graph.softmax(x, None, 3.0).unwrap();
        x = graph.l2_norm(x, 1e-6).unwrap();
        add_to(&mut graph, s, x);
    }
    graph.set_output(x, "y").unwrap();
    let devices = vec![
        only("a", &["scale"]),
        only("b", &["softmax", "add"]),
        only("c", &["l2_norm"]),
    ];
    let plan = agrees(&graph, devices, on_cpu());
    assert_eq!(plan.schedule().segments.len(), 80);
}

#[test]
fn nothing_waits_for_a_device_but_for_bytes_of_its_own() {
    let (graph, _) = normed_chain();
    let devices = vec![
        only("cpu", &["group_norm", "mul", "add", "silu"]),
        without("gpu", &["group_norm"]),
    ];
    let world = World::new(&graph, devices, on_gpu());
    let plan = world.compile(&graph).unwrap();
    let calls = |call| {
        world
            .devices
            .iter()
            .map(|d| d.calls(call))
            .collect::<Vec<_>>()
    };
    let before = calls(Call::Wait);
    world.begin(&plan, 1);
    assert_eq!(calls(Call::Wait), before);
    assert_eq!(calls(Call::Fence), before);
    world.session.wait().unwrap();
    // The first device reads the input and two copies, the other only the input.
    assert_eq!(
        (calls(Call::Write), calls(Call::Read)),
        (vec![3, 1], vec![0, 2])
    );
    assert_eq!(calls(Call::Launch), [1, 1]);
}

#[test]
fn an_operation_that_no_device_supports_lists_the_reason_of_each() {
    let (graph, _) = normed_chain();
    let devices = vec![without("cpu", &["silu"]), only("gpu", &["scale"])];
    let world = World::new(&graph, devices, Homes::all_on(DeviceId::FIRST));
    let error = world.compile(&graph).unwrap_err();
    assert_eq!(
        error.to_string(),
        "silu (node 5, writing `y`) has no device: cpu: no kernel for silu; gpu: no kernel for silu"
    );
    assert_eq!(reference(&graph).len(), 2);
}
