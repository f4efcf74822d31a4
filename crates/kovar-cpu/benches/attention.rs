//! `cpu/attention/f16`: the attention of one layer, by shape.

use divan::Bencher;
use kovar_core::backend::{Backend, Binding, MemoryMap, Segment};
use kovar_core::ops::Attention;
use kovar_core::{DType, Graph, NodeId};
use kovar_cpu::{CpuBackend, CpuOptions};

fn main() {
    divan::main();
}

/// Tokens, heads, heads of keys, head_dim, valid rows.
const SHAPES: [(usize, usize, usize, usize, usize); 5] = [
    (512, 9, 3, 64, 512),
    (1, 9, 3, 64, 512),
    (1, 9, 3, 64, 2048),
    (512, 32, 8, 128, 512),
    (1, 32, 8, 128, 4096),
];

#[divan::bench(args = SHAPES)]
fn causal(bencher: Bencher<'_, '_>, shape: (usize, usize, usize, usize, usize)) {
    let (tokens, heads, kv_heads, head_dim, rows) = shape;
    let mut graph = Graph::new();
    let q = graph
        .input("q", DType::F32, &[1, tokens, heads, head_dim])
        .unwrap();
    let cache = [1, rows, kv_heads, head_dim];
    let k = graph.state("k", DType::F16, &cache).unwrap();
    let v = graph.state("v", DType::F16, &cache).unwrap();
    let positions = graph.input("positions", DType::I32, &[tokens]).unwrap();
    let attributes = Attention {
        causal: true,
        ..Attention::new(1.0 / (head_dim as f32).sqrt())
    };
    graph.attention(attributes, q, k, v, &[positions]).unwrap();
    let backend = CpuBackend::new(CpuOptions::new().threads(2)).unwrap();
    let mut memory = MemoryMap::new();
    for id in graph.storage_ids() {
        let storage = &graph.storages()[id.index()];
        let buffer = backend.alloc(storage.bytes).unwrap();
        if storage.name == "positions" {
            let first = rows - tokens;
            let bytes: Vec<u8> = (first..rows)
                .flat_map(|position| (position as i32).to_le_bytes())
                .collect();
            backend.queue().write(&buffer, 0, &bytes).unwrap();
        }
        memory.bind(id, Binding { buffer, offset: 0 });
    }
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let segment = Segment::unfused(&graph, &nodes);
    let program = backend.compile(segment).unwrap().bind(&memory).unwrap();
    bencher.bench_local(|| backend.queue().launch(&*program, &[]).unwrap());
}
