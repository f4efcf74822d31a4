//! The queue of the first GPU: what its calls promise.

#[path = "queue/errors.rs"]
mod errors;
#[path = "queue/interleave.rs"]
mod interleave;
#[path = "queue/large.rs"]
mod large;
#[path = "queue/programs.rs"]
mod programs;
#[path = "queue/share.rs"]
mod share;
#[path = "queue/transfer.rs"]
mod transfer;

use std::sync::Arc;

use kovar_core::backend::{Backend, Binding, Buffer, Kernel, MemoryMap, Program, Segment};
use kovar_core::ops::UnaryKind;
use kovar_core::{DType, Graph, StorageId};
use kovar_gpu::{GpuBackend, GpuOptions, Gpus};

/// A device of a test's own, with rings so small that they fill.
fn device(virtual_id: u32) -> GpuBackend {
    Gpus::new().open(options(virtual_id)).unwrap()
}

fn options(virtual_id: u32) -> GpuOptions {
    GpuOptions::new()
        .virtual_id(virtual_id)
        .upload_chunks(4096, 1024, 2)
}

/// All bytes of a buffer, after all work queued before.
fn read(backend: &dyn Backend, buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    backend.queue().read_into(buffer, 0, &mut bytes).unwrap();
    bytes
}

/// Waits for all work.
fn settle(backend: &dyn Backend) {
    let queue = backend.queue();
    queue.wait(queue.fence().unwrap()).unwrap();
}

/// A program that negates `n` f32 values at `offset` of a buffer, `times` times. Devices may turn
/// NaN and subnormal numbers into others.
fn negations(
    backend: &dyn Backend,
    buffer: &Buffer,
    offset: usize,
    n: usize,
    times: usize,
) -> Arc<dyn Program> {
    let mut graph = Graph::new();
    let x = graph.temp("x", DType::F32, &[n]).unwrap();
    for _ in 0..times {
        let kind = UnaryKind::Neg;
        let op = kovar_core::ops::Op::Unary(kovar_core::ops::Unary { kind });
        graph.apply_in_place(op, &[x]).unwrap();
    }
    let nodes: Vec<_> = graph.node_ids().collect();
    let kernel = backend.compile(Segment::unfused(&graph, &nodes)).unwrap();
    let storage = graph.value(x).unwrap().storage;
    bind(kernel.as_ref(), storage, buffer, offset)
}

/// A program of a kernel that uses one storage.
fn bind(
    kernel: &dyn Kernel,
    storage: StorageId,
    buffer: &Buffer,
    offset: usize,
) -> Arc<dyn Program> {
    let mut memory = MemoryMap::new();
    let buffer = buffer.clone();
    memory.bind(storage, Binding { buffer, offset });
    kernel.bind(&memory).unwrap()
}

/// A program that copies `n` words between places of buffers.
fn word_copy(
    backend: &dyn Backend,
    from: (&Buffer, usize),
    to: (&Buffer, usize),
    n: usize,
) -> Arc<dyn Program> {
    let mut graph = Graph::new();
    let x = graph.temp("x", DType::I32, &[n]).unwrap();
    let y = graph.temp("y", DType::I32, &[n]).unwrap();
    graph.copy_into(x, y).unwrap();
    let mut memory = MemoryMap::new();
    for (value, (buffer, offset)) in [(x, from), (y, to)] {
        let buffer = buffer.clone();
        let storage = graph.value(value).unwrap().storage;
        memory.bind(storage, Binding { buffer, offset });
    }
    let nodes: Vec<_> = graph.node_ids().collect();
    let segment = Segment::unfused(&graph, &nodes);
    backend.compile(segment).unwrap().bind(&memory).unwrap()
}

/// Negates the f32 values of whole words, as the program does.
fn negate(bytes: &mut [u8]) {
    for word in bytes.chunks_exact_mut(4) {
        word[3] ^= 0x80;
    }
}
