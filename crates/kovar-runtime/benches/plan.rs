//! `runtime/plan`: the time to plan a decoder of 32 layers, and the overhead of a run. The devices
//! are idle: they compute nothing.

use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use kovar_core::backend::Backend;
use kovar_core::ops::{Attention, Binary, BinaryKind, Op, Pairing};
use kovar_core::{DType, Graph, HostBytes, StorageKind, ValueId};
use kovar_runtime::{DeviceId, Homes, HostSlice, Policy, Session, compile, forecast};
use kovar_testkit::simulated::{Executor, SimulatedDevice, SimulatedOptions};

fn main() {
    divan::main();
}

const LAYERS: usize = 32;
const WIDTH: usize = 64;
const HEADS: usize = 4;

/// A decoder that evaluates one token.
fn decoder() -> Graph {
    let mut graph = Graph::new();
    let g = &mut graph;
    let weight = |g: &mut Graph, name: String, dims: &[usize]| -> ValueId {
        g.weight(&name, DType::F32, dims).unwrap()
    };
    let head_dim = WIDTH / HEADS;
    let ids = g.input("ids", DType::I32, &[1]).unwrap();
    let positions = g.input("positions", DType::I32, &[1]).unwrap();
    let angles = g
        .input("angles", DType::F32, &[1, head_dim / 2, 2])
        .unwrap();
    let table = weight(g, "embd".into(), &[16, WIDTH]);
    let mut x = g.get_rows(table, ids).unwrap();
    for layer in 0..LAYERS {
        let name = |tensor: &str| format!("blk.{layer}.{tensor}");
        let norm = weight(g, name("attn_norm"), &[WIDTH]);
        let y = g.rms_norm(x, norm, 1e-5).unwrap();
        let heads = ["q", "k", "v"].map(|part| {
            let w = weight(g, name(part), &[WIDTH, WIDTH]);
            let y = g.matmul(w, y).unwrap();
            g.reshape(y, &[1, HEADS, head_dim]).unwrap()
        });
        let q = g.rope_in_place(heads[0], angles, Pairing::Neox).unwrap();
        let k = g.rope_in_place(heads[1], angles, Pairing::Neox).unwrap();
        let cached = [("cache.k", k), ("cache.v", heads[2])].map(|(part, rows)| {
            let cache = g
                .state(&name(part), DType::F32, &[32, HEADS, head_dim])
                .unwrap();
            g.set_rows(cache, rows, positions).unwrap();
            g.reshape(cache, &[1, 32, HEADS, head_dim]).unwrap()
        });
        let q = g.reshape(q, &[1, 1, HEADS, head_dim]).unwrap();
        let mixed = g
            .attention(Attention::new(0.25), q, cached[0], cached[1], &[])
            .unwrap();
        let mixed = g.reshape(mixed, &[1, WIDTH]).unwrap();
        let w = weight(g, name("o"), &[WIDTH, WIDTH]);
        x = add_in_place(g, w, mixed, x);
        let norm = weight(g, name("ffn_norm"), &[WIDTH]);
        let y = g.rms_norm(x, norm, 1e-5).unwrap();
        let [gate, up] = ["gate", "up"].map(|part| {
            let w = weight(g, name(part), &[2 * WIDTH, WIDTH]);
            g.matmul(w, y).unwrap()
        });
        let gated = g.swiglu(gate, up).unwrap();
        let w = weight(g, name("down"), &[WIDTH, 2 * WIDTH]);
        x = add_in_place(g, w, gated, x);
    }
    let y = g.matmul(table, x).unwrap();
    g.set_output(y, "logits").unwrap();
    graph
}

fn add_in_place(g: &mut Graph, w: ValueId, x: ValueId, rest: ValueId) -> ValueId {
    let y = g.matmul(w, x).unwrap();
    let kind = BinaryKind::Add;
    g.apply_in_place(Op::from(Binary { kind }), &[y, rest])
        .unwrap()
}

/// A session whose layers alternate between `n_devices` devices.
fn session(graph: &Graph, n_devices: usize) -> Session {
    let devices = (0..n_devices).map(|i| -> Arc<dyn Backend> {
        Arc::new(SimulatedDevice::new(SimulatedOptions {
            executor: Executor::Idle,
            flops_per_ns: 100.0,
            bytes_per_ns: f64::INFINITY,
            ..SimulatedOptions::new(&format!("d{i}"))
        }))
    });
    let ids: Vec<DeviceId> = DeviceId::all(n_devices).collect();
    let homes = (0..LAYERS).fold(Homes::all_on(DeviceId::FIRST), |homes, layer| {
        homes.pin(&format!("blk.{layer}.*"), ids[layer % n_devices])
    });
    let session = Session::with_homes(devices.collect(), homes).unwrap();
    for storage in graph.storages() {
        if storage.kind == StorageKind::Weight {
            let bytes = HostBytes::new(Arc::new(vec![0u8; storage.bytes]));
            let (name, dims) = (&storage.name, &storage.dims);
            session
                .add_weight(name, storage.dtype, dims, bytes)
                .unwrap();
        }
    }
    session
}

/// All passes, with the checker and without.
#[divan::bench(args = [(1, false), (2, false), (2, true), (4, false)])]
fn plan(bencher: Bencher<'_, '_>, (n_devices, checked): (usize, bool)) {
    let graph = decoder();
    let session = session(&graph, n_devices);
    let mut policy = Policy::default();
    policy.check_plan = checked;
    bencher.bench(|| forecast(&graph, &session, &policy).unwrap());
}

/// A run; items are segments.
#[divan::bench(args = [1, 2, 4])]
fn run(bencher: Bencher<'_, '_>, n_devices: usize) {
    let graph = decoder();
    let session = session(&graph, n_devices);
    let plan = compile(&graph, &session, &Policy::default()).unwrap();
    let (id, angles) = ([0i32], [0f32; WIDTH / HEADS]);
    let inputs = [
        (plan.input("ids").unwrap(), HostSlice::i32(&id)),
        (plan.input("positions").unwrap(), HostSlice::i32(&id)),
        (plan.input("angles").unwrap(), HostSlice::f32(&angles)),
    ];
    bencher
        .counter(ItemsCount::new(plan.schedule().segments.len()))
        .bench(|| drop(plan.run(&inputs, &[]).unwrap()));
}
