//! What a step costs on the first GPU: `gpu0/launch/<what>/<dispatches>`.
//!
//! `record` is the caller's time for a launch that does not wait, `step` a write, a launch and a
//! read, as generation does them.

use std::sync::Arc;

use divan::Bencher;
use kovar_core::backend::{Backend, Binding, Buffer, MemoryMap, Program, Segment};
use kovar_core::ops::{Op, Unary, UnaryKind};
use kovar_core::{DType, Graph};
use kovar_gpu::{GpuBackend, GpuOptions, Gpus};

const DISPATCHES: [usize; 4] = [1, 100, 1000, 4000];

fn main() {
    divan::main();
}

fn program(backend: &GpuBackend, times: usize) -> (Buffer, Arc<dyn Program>) {
    let mut graph = Graph::new();
    let x = graph.temp("x", DType::F32, &[64]).unwrap();
    for _ in 0..times {
        let kind = UnaryKind::Neg;
        graph
            .apply_in_place(Op::Unary(Unary { kind }), &[x])
            .unwrap();
    }
    let buffer = backend.alloc_zeroed(256).unwrap();
    let mut memory = MemoryMap::new();
    let binding = Binding {
        buffer: buffer.clone(),
        offset: 0,
    };
    memory.bind(graph.value(x).unwrap().storage, binding);
    let nodes: Vec<_> = graph.node_ids().collect();
    let segment = Segment::unfused(&graph, &nodes);
    (
        buffer,
        backend.compile(segment).unwrap().bind(&memory).unwrap(),
    )
}

#[divan::bench(name = "gpu0/launch/record", args = DISPATCHES, sample_count = 30, sample_size = 1)]
fn record(bencher: Bencher<'_, '_>, times: usize) {
    let backend = Gpus::new().open(GpuOptions::new()).unwrap();
    let (_, program) = program(&backend, times);
    let queue = backend.queue();
    bencher
        .with_inputs(|| queue.wait(queue.fence().unwrap()).unwrap())
        .bench_local_values(|()| queue.launch(program.as_ref(), &[]).unwrap());
}

#[divan::bench(name = "gpu0/launch/step", args = DISPATCHES, sample_count = 30, sample_size = 1)]
fn step(bencher: Bencher<'_, '_>, times: usize) {
    let backend = Gpus::new().open(GpuOptions::new()).unwrap();
    let (buffer, program) = program(&backend, times);
    let queue = backend.queue();
    let mut bytes = [0; 256];
    bencher.bench_local(|| {
        queue.write(&buffer, 0, &[0; 256]).unwrap();
        queue.launch(program.as_ref(), &[]).unwrap();
        queue.read_into(&buffer, 0, &mut bytes).unwrap();
    });
}
