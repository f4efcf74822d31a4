//! A run allocates nothing: neither on the caller's thread nor on the pool's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kovar_core::backend::{Backend, Binding, Buffer, MemoryMap, Segment, WeightUse};
use kovar_core::ops::{
    Attention, Conv2d, ConvTranspose2d, Gemm, Pairing, Pool2d, PoolKind, Upscale, UpscaleMode,
};
use kovar_core::{DType, Graph, HostBytes, NodeId, StorageId, StorageKind, quant};
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_runtime::{HostSlice, Policy, Session, compile};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TOKENS: usize = 24;
const ROWS: usize = 300;
const DIM: usize = 256;
const HEAD_DIM: usize = 64;

/// One layer of a model with every operation in it, over `tokens` tokens.
fn layer(tokens: usize) -> Graph {
    let mut g = Graph::new();
    let table = g.weight("embedding", DType::Q4_1, &[100, DIM]).unwrap();
    let norm = g.weight("norm", DType::F32, &[DIM]).unwrap();
    let wq = g.weight("q", DType::Q4_1, &[DIM, DIM]).unwrap();
    let wk = g.weight("k", DType::Q4_1, &[DIM / 2, DIM]).unwrap();
    let wv = g.weight("v", DType::F16, &[DIM / 2, DIM]).unwrap();
    let wo = g.weight("o", DType::Q6K, &[DIM, DIM]).unwrap();
    let keys = g.state("keys", DType::F16, &[ROWS, 2, HEAD_DIM]).unwrap();
    let values = g
        .state("values", DType::Q8_0, &[ROWS, 2, HEAD_DIM])
        .unwrap();
    let ids = g.input("ids", DType::I32, &[tokens]).unwrap();
    let positions = g.input("positions", DType::I32, &[tokens]).unwrap();
    let angles = g
        .input("angles", DType::F32, &[tokens, HEAD_DIM / 2, 2])
        .unwrap();
    let kv_len = g.scalar("kv_len", ROWS as i32).unwrap();

    let x = g.get_rows(table, ids).unwrap();
    let h = g.rms_norm(x, norm, 1e-5).unwrap();
    let q = g.matmul(wq, h).unwrap();
    let k = g.matmul(wk, h).unwrap();
    let v = g.matmul(wv, h).unwrap();
    let q = g.reshape(q, &[1, tokens, 4, HEAD_DIM]).unwrap();
    let k = g.reshape(k, &[tokens, 2, HEAD_DIM]).unwrap();
    let v = g.reshape(v, &[tokens, 2, HEAD_DIM]).unwrap();
    let q = g.rope_in_place(q, angles, Pairing::Normal).unwrap();
    let k = g.rope_in_place(k, angles, Pairing::Neox).unwrap();
    g.set_rows(keys, k, positions).unwrap();
    g.set_rows(values, v, positions).unwrap();
    let cache = [1, ROWS, 2, HEAD_DIM];
    let keys = g.reshape(keys, &cache).unwrap();
    let values = g.reshape(values, &cache).unwrap();
    let attributes = Attention {
        causal: true,
        kv_len: Some(kv_len),
        ..Attention::new(0.125)
    };
    let y = g
        .attention(attributes, q, keys, values, &[positions])
        .unwrap();
    let y = g.reshape(y, &[tokens, DIM]).unwrap();
    let y = g.matmul(wo, y).unwrap();
    let gate = g.swiglu(y, h).unwrap();
    let y = g.add(gate, x).unwrap();
    let y = g.mul(y, norm).unwrap();
    let y = g.scale(y, 0.5).unwrap();
    let half = g.cast(y, DType::F16).unwrap();
    let turned = g.permute(half, &[1, 0]).unwrap();
    let turned = g.contiguous(turned).unwrap();
    let y = g.softmax(turned, None, 1.0).unwrap();
    g.set_output(y, "y").unwrap();
    g
}

/// Images, general and 8-bit products and a mixture of experts.
fn images(tokens: usize) -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", DType::F16, &[1, 4, tokens, 9]).unwrap();
    let w = g.weight("w", DType::F16, &[6, 4, 3, 3]).unwrap();
    let wt = g.weight("wt", DType::F32, &[6, 3, 2, 2]).unwrap();
    let a = g.input("a", DType::F32, &[tokens, 32]).unwrap();
    let b = g.weight("b", DType::BF16, &[32, 16]).unwrap();
    let w8 = g.weight("w8", DType::I8, &[5, 16]).unwrap();
    let s8 = g.weight("s8", DType::F32, &[5]).unwrap();
    let experts = g.weight("experts", DType::Q8_0, &[3, 17, 32]).unwrap();
    let ids = g.input("ids", DType::I32, &[tokens, 2]).unwrap();
    let padded = Conv2d {
        padding: [1; 2],
        ..Conv2d::default()
    };
    let y = g.conv2d(padded, x, w, None).unwrap();
    let doubled = ConvTranspose2d {
        stride: [2; 2],
        ..ConvTranspose2d::default()
    };
    let y = g.conv_transpose2d(doubled, y, wt, None).unwrap();
    let pool = Pool2d {
        kind: PoolKind::Max,
        kernel: [2; 2],
        stride: [2; 2],
        padding: [0; 2],
    };
    let y = g.pool2d(pool, y).unwrap();
    let mode = UpscaleMode::Bilinear {
        align_corners: false,
    };
    let size = [7, 20];
    let image = g.upscale(Upscale { size, mode }, y).unwrap();
    g.set_output(image, "image").unwrap();
    let y = g.gemm(Gemm::default(), a, b, None).unwrap();
    let (codes, scales) = g.quantize_rows(y).unwrap();
    let y = g.matmul_i8(w8, s8, codes, Some(scales)).unwrap();
    g.set_output(y, "codes").unwrap();
    let rows = g.reshape(a, &[tokens, 1, 32]).unwrap();
    let y = g.matmul_id(experts, rows, ids).unwrap();
    g.set_output(y, "mixture").unwrap();
    let eight = g.weight("eight", DType::F8E4M3, &[7, 32]).unwrap();
    let y = g.matmul(eight, a).unwrap();
    let y = g.cast(y, DType::I16).unwrap();
    let y = g.permute(y, &[1, 0]).unwrap();
    let y = g.cast(y, DType::F64).unwrap();
    g.set_output(y, "doubles").unwrap();
    g
}

fn bytes_of(graph: &Graph, id: StorageId) -> Vec<u8> {
    let storage = &graph.storages()[id.index()];
    let len = storage.bytes / storage.dtype.block_bytes() * storage.dtype.block_len();
    let mut bytes = vec![0; storage.bytes];
    match storage.dtype {
        DType::I32 => {
            for (i, slot) in bytes.chunks_exact_mut(4).enumerate() {
                slot.copy_from_slice(&(i as i32).to_le_bytes());
            }
        }
        DType::I8 => bytes.fill(3),
        dtype => {
            let values: Vec<f32> = (0..len)
                .map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0)
                .collect();
            quant::encode(dtype, &values, &mut bytes).unwrap();
        }
    }
    bytes
}

fn bind(backend: &CpuBackend, graph: &Graph) -> (MemoryMap, Vec<(StorageId, Buffer)>) {
    let mut memory = MemoryMap::new();
    let mut buffers = Vec::new();
    let mut uses = WeightUse::all(graph);
    for id in graph.storage_ids() {
        let storage = &graph.storages()[id.index()];
        let bytes = bytes_of(graph, id);
        let buffer = if storage.kind == StorageKind::Weight {
            let uses = uses.remove(&id).unwrap_or_default();
            let host = HostBytes::new(Arc::new(bytes));
            backend.prepare(storage, &host, &uses).unwrap()
        } else {
            let buffer = backend.alloc(storage.bytes).unwrap();
            backend.queue().write(&buffer, 0, &bytes).unwrap();
            buffers.push((id, buffer.clone()));
            buffer
        };
        memory.bind(id, Binding { buffer, offset: 0 });
    }
    (memory, buffers)
}

/// The fewest allocations of several calls of `run`. During the first calls a thread of the pool
/// may still be starting, which allocates.
fn allocations(mut run: impl FnMut()) -> usize {
    let turns = (0..5).map(|_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        run();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    });
    turns.min().unwrap_or(usize::MAX)
}

/// Allocations of all runs of a plan but the first, with their inputs and outputs.
fn plan_allocations(graph: &Graph, backend: Arc<dyn Backend>) -> usize {
    let session = Session::new(vec![backend]).unwrap();
    for id in graph.storage_ids() {
        let storage = &graph.storages()[id.index()];
        if storage.kind == StorageKind::Weight {
            let host = HostBytes::new(Arc::new(bytes_of(graph, id)));
            let (name, dtype, dims) = (&storage.name, storage.dtype, &storage.dims);
            session.add_weight(name, dtype, dims, host).unwrap();
        }
    }
    let plan = compile(graph, &session, &Policy::default()).unwrap();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for id in graph.storage_ids() {
        let (name, bytes) = (&graph.storages()[id.index()].name, bytes_of(graph, id));
        match graph.storages()[id.index()].kind {
            StorageKind::Input => inputs.push((plan.input(name).unwrap(), bytes)),
            StorageKind::Output => outputs.push((plan.output(name).unwrap(), bytes)),
            _ => {}
        }
    }
    let inputs: Vec<_> = inputs
        .iter()
        .map(|(value, bytes)| (*value, HostSlice::raw(bytes)))
        .collect();
    let scalars = vec![77; graph.scalars().len()];
    let mut run = || {
        let done = plan.run(&inputs, &scalars).unwrap();
        for (value, bytes) in &mut outputs {
            done.read(*value, bytes).unwrap();
        }
        done.wait().unwrap();
    };
    run();
    allocations(|| (0..3).for_each(|_| run()))
}

/// The only test of this binary, because other tests would allocate meanwhile.
#[test]
fn neither_a_program_nor_a_plan_allocates_when_it_runs() {
    for threads in [1, 3] {
        let graphs = [TOKENS, 1].map(|tokens| [layer(tokens), images(tokens)]);
        for (which, graph) in graphs.into_iter().flatten().enumerate() {
            let backend = || CpuBackend::new(CpuOptions::new().threads(threads)).unwrap();
            let allocated = plan_allocations(&graph, Arc::new(backend()));
            assert_eq!(allocated, 0, "{threads} threads, plan {which}");
            let backend = backend();
            let (memory, buffers) = bind(&backend, &graph);
            let nodes: Vec<NodeId> = graph.node_ids().collect();
            let segment = Segment::unfused(&graph, &nodes);
            let program = backend.compile(segment).unwrap().bind(&memory).unwrap();
            let queue = backend.queue();
            let (_, buffer) = buffers.last().unwrap();
            let mut bytes = vec![0; buffer.len()];
            queue.launch(&*program, &[ROWS as i32]).unwrap();

            let allocated = allocations(|| {
                for len in [ROWS as i32, 77, 0] {
                    queue.write(buffer, 0, &bytes).unwrap();
                    queue.fill(buffer, 0, 8, 3).unwrap();
                    queue.launch(&*program, &[len]).unwrap();
                    queue.read_into(buffer, 0, &mut bytes).unwrap();
                    let fence = queue.fence().unwrap();
                    queue.wait(fence).unwrap();
                }
            });
            assert_eq!(allocated, 0, "{threads} threads, graph {which}");
            assert_eq!(program.kernels().len(), nodes.len());
        }
    }
}
