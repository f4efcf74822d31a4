//! Plans over a GPU and the CPU, and over two devices of one GPU, give what the CPU alone gives.

use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::ops::{Attention, Binary, BinaryKind, Op, Unary, UnaryKind};
use kovar_core::{DType, Graph, HostBytes, Storage, StorageKind, ValueId};
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_gpu::{GpuOptions, Gpus};
use kovar_runtime::{DeviceId, Homes, HostSlice, Plan, Policy, Preference, Session, compile};
use kovar_testkit::metrics::nmse;
use kovar_testkit::restricted::Restricted;

fn cpu() -> Arc<dyn Backend> {
    Arc::new(CpuBackend::new(CpuOptions::new().threads(1)).unwrap())
}

fn gpu() -> Arc<dyn Backend> {
    Arc::new(Gpus::new().open(GpuOptions::new()).unwrap())
}

/// A second device over the same driver.
fn virtual_gpu() -> Arc<dyn Backend> {
    Arc::new(
        Gpus::new()
            .open(GpuOptions::new().virtual_id(1).id("gpu1"))
            .unwrap(),
    )
}

fn device(n: usize) -> DeviceId {
    DeviceId::all(n + 1).last().unwrap()
}

/// Numbers between -2 and 2, or rows 0, 1, 2, ... where indices are wanted.
fn data(storage: &Storage, seed: usize) -> Vec<u8> {
    let elements: usize = storage.dims.iter().product();
    let bytes: Vec<[u8; 4]> = match storage.dtype {
        DType::I32 => (0..elements).map(|i| (i as i32).to_le_bytes()).collect(),
        DType::F32 => (0..elements)
            .map(|i| (((i * 37 + seed * 11) % 41) as f32 / 10.0 - 2.0).to_le_bytes())
            .collect(),
        other => panic!("no data of {other}"),
    };
    bytes.concat()
}

/// The outputs and states after two runs on `devices`, in the order of the graph, and the plan.
fn run(graph: &Graph, devices: Vec<Arc<dyn Backend>>, homes: Homes) -> (Vec<Vec<f64>>, Plan) {
    let session = Session::with_homes(devices, homes).unwrap();
    for storage in graph.storages() {
        if storage.kind == StorageKind::Weight {
            let bytes = HostBytes::new(Arc::new(data(storage, 7)));
            let (name, dims) = (&storage.name, &storage.dims);
            session
                .add_weight(name, storage.dtype, dims, bytes)
                .unwrap();
        }
    }
    let mut policy = Policy::default();
    policy.check_plan = true;
    policy.preference = Preference::Gpu;
    let plan = compile(graph, &session, &policy).unwrap();
    let mut results = Vec::new();
    for seed in [1, 2] {
        let inputs: Vec<_> = plan
            .graph()
            .storages()
            .iter()
            .filter(|storage| storage.kind == StorageKind::Input)
            .map(|storage| (plan.input(&storage.name).unwrap(), data(storage, seed)))
            .collect();
        let inputs: Vec<_> = inputs
            .iter()
            .map(|(value, bytes)| (*value, HostSlice::raw(bytes)))
            .collect();
        let scalars: Vec<i32> = plan.graph().scalars().iter().map(|s| s.max).collect();
        let outputs = plan.run(&inputs, &scalars).unwrap();
        for storage in plan.graph().storages() {
            if storage.kind == StorageKind::Output {
                let mut bytes = vec![0; storage.bytes];
                let value = plan.output(&storage.name).unwrap();
                outputs.read(value, &mut bytes).unwrap();
                results.push(floats(&bytes));
            }
        }
        outputs.wait().unwrap();
        drop(outputs);
        for state in session.states() {
            let mut bytes = vec![0; state.bytes];
            session.read_state(&state.name, 0, &mut bytes).unwrap();
            results.push(floats(&bytes));
        }
    }
    (results, plan)
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|&word| f32::from_le_bytes(word).into()).collect()
}

/// Runs a graph on several devices and on a CPU. Returns the devices of the nodes.
fn agrees(graph: &Graph, devices: Vec<Arc<dyn Backend>>, homes: Homes) -> Vec<usize> {
    let (expected, _) = run(graph, vec![cpu()], Homes::all_on(DeviceId::FIRST));
    let (found, plan) = run(graph, devices, homes);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let error = nmse(expected, found);
        assert!(error < 1e-10, "NMSE {error}: {}", plan.describe());
    }
    plan.kernels().iter().map(|k| k.device.index()).collect()
}

fn in_place(graph: &mut Graph, op: impl Into<Op>, inputs: &[ValueId]) {
    graph.apply_in_place(op.into(), inputs).unwrap();
}

#[test]
fn an_in_place_chain_stays_with_its_group_norm_on_the_cpu() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[2, 8, 5, 7]).unwrap();
    let weight = graph.weight("norm.weight", DType::F32, &[8]).unwrap();
    let bias = graph.weight("norm.bias", DType::F32, &[8]).unwrap();
    let gate = graph.scale(a, 0.5).unwrap();
    let shift = graph.scale(a, -2.0).unwrap();
    let x = graph.group_norm(a, weight, bias, 2, 1e-5).unwrap();
    let (mul, add) = (BinaryKind::Mul, BinaryKind::Add);
    in_place(&mut graph, Binary { kind: mul }, &[x, gate]);
    in_place(&mut graph, Binary { kind: add }, &[x, shift]);
    let kind = UnaryKind::Silu;
    in_place(&mut graph, Unary { kind }, &[x]);
    graph.set_output(x, "y").unwrap();

    let gpu_without = Restricted::without(gpu(), &["group_norm"]);
    let devices = vec![cpu(), Arc::new(gpu_without) as Arc<dyn Backend>];
    let nodes = agrees(&graph, devices, Homes::all_on(device(1)));
    assert_eq!(nodes, [1, 1, 0, 0, 0, 0]);
    // With all its kernels, the GPU does it alone.
    let nodes = agrees(&graph, vec![cpu(), gpu()], Homes::all_on(device(1)));
    assert_eq!(nodes, [1; 6]);
}

#[test]
fn a_chain_that_no_device_supports_whole_crosses_between_them() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[3, 33]).unwrap();
    let x = graph.scale(a, 0.5).unwrap();
    let kind = UnaryKind::Silu;
    in_place(&mut graph, Unary { kind }, &[x]);
    let kind = BinaryKind::Add;
    in_place(&mut graph, Binary { kind }, &[x, a]);
    graph.set_output(x, "y").unwrap();
    let cpu_without: Arc<dyn Backend> = Arc::new(Restricted::without(cpu(), &["silu"]));
    let gpu_without: Arc<dyn Backend> = Arc::new(Restricted::without(gpu(), &["add"]));
    let devices = vec![cpu_without, gpu_without];
    let nodes = agrees(&graph, devices, Homes::all_on(device(1)));
    assert_eq!(nodes[1..], [1, 0]);
}

/// A cache that two rows are written to, and attention over it.
fn attention_over_a_cache() -> Graph {
    let mut graph = Graph::new();
    let (rows, heads, dim) = (6, 2, 4);
    let dims = [rows, heads * dim];
    let keys = graph.state("keys", DType::F32, &dims).unwrap();
    let values = graph.state("values", DType::F32, &dims).unwrap();
    let x = graph.input("x", DType::F32, &[2, heads * dim]).unwrap();
    let ids = graph.input("ids", DType::I32, &[2]).unwrap();
    let v = graph.scale(x, 0.25).unwrap();
    graph.set_rows(keys, x, ids).unwrap();
    graph.set_rows(values, v, ids).unwrap();
    let kv_len = graph.scalar("kv_len", 2).unwrap();
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
    graph
}

#[test]
fn a_cache_on_the_gpu_serves_attention_on_the_cpu() {
    let graph = attention_over_a_cache();
    let gpu_without: Arc<dyn Backend> = Arc::new(Restricted::without(gpu(), &["attention"]));
    let devices = vec![cpu(), gpu_without];
    let nodes = agrees(&graph, devices, Homes::all_on(device(1)));
    assert_eq!(nodes, [1, 1, 1, 0]);
}

#[test]
fn a_state_is_written_by_a_device_that_is_not_its_home() {
    let mut graph = Graph::new();
    let s = graph.state("s", DType::F32, &[4, 5]).unwrap();
    let a = graph.input("a", DType::F32, &[2, 5]).unwrap();
    let ids = graph.input("ids", DType::I32, &[2]).unwrap();
    let head = graph.slice(s, 0, 0..3).unwrap();
    graph.set_rows(head, a, ids).unwrap();
    let y = graph.scale(s, 2.0).unwrap();
    graph.set_output(y, "y").unwrap();
    let gpu_without: Arc<dyn Backend> = Arc::new(Restricted::without(gpu(), &["set_rows"]));
    let devices = vec![cpu(), gpu_without];
    let nodes = agrees(&graph, devices, Homes::all_on(device(1)));
    assert_eq!(nodes, [0, 1]);
}

#[test]
fn two_devices_of_one_gpu_share_a_chain() {
    let mut graph = Graph::new();
    let a = graph.input("a", DType::F32, &[3, 1000]).unwrap();
    let x = graph.scale(a, 0.5).unwrap();
    let kind = UnaryKind::Tanh;
    let y = graph.apply(Unary { kind }.into(), &[x]).unwrap();
    let z = graph.add(y, a).unwrap();
    graph.set_output(z, "z").unwrap();
    let first: Arc<dyn Backend> = Arc::new(Restricted::without(gpu(), &["tanh"]));
    let second: Arc<dyn Backend> = Arc::new(Restricted::without(virtual_gpu(), &["add"]));
    let nodes = agrees(&graph, vec![first, second], Homes::all_on(device(0)));
    assert_eq!(nodes[1..], [1, 0]);
}
