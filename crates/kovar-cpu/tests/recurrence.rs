//! Recurrent operations: a sequence, its chunks and its single tokens leave the same.

use kovar_core::backend::{Backend, Binding, MemoryMap, Segment};
use kovar_core::{DType, Graph, NodeId, ScalarId, StorageKind, ValueId, quant};
use kovar_cpu::simd::SimdLevel;
use kovar_cpu::{CpuBackend, CpuOptions};

mod common;
use common::{Random, nmse};

const TOKENS: usize = 48;

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / 4];
    quant::decode(DType::F32, bytes, &mut values).unwrap();
    values
}

type Build = dyn Fn(&mut Graph, &[ValueId], ValueId, ScalarId) -> ValueId;

/// Runs `build(graph, inputs, state)` over the chunks of all tokens, each graph padded to `size`
/// tokens; returns all results and the last state. Padding holds NaNs.
fn in_chunks(
    backend: &CpuBackend,
    inputs: &[Vec<f32>],
    state: &[f32],
    (dims, state_dims): (&[usize], &[usize]),
    (chunks, size): (&[usize], usize),
    build: &Build,
) -> (Vec<f32>, Vec<f32>) {
    let mut graph = Graph::new();
    let all: Vec<usize> = [size].iter().chain(dims).copied().collect();
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let values: Vec<ValueId> = names
        .iter()
        .map(|name| graph.input(name, DType::F32, &all).unwrap())
        .collect();
    let state_value = graph.state("state", DType::F32, state_dims).unwrap();
    let n_valid = graph.scalar("n_valid", size as i32).unwrap();
    let y = build(&mut graph, &values, state_value, n_valid);
    graph.set_output(y, "y").unwrap();
    let mut memory = MemoryMap::default();
    for id in graph.storage_ids() {
        let buffer = backend.alloc(graph.storages()[id.index()].bytes).unwrap();
        memory.bind(id, Binding { buffer, offset: 0 });
    }
    let of = |kind, name: &str| {
        let id = graph.storage_named(kind, name).unwrap();
        memory.get(id).unwrap().buffer.clone()
    };
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let segment = Segment::unfused(&graph, &nodes);
    let program = backend.compile(segment).unwrap().bind(&memory).unwrap();
    let queue = backend.queue();
    let (kept, result) = (
        of(StorageKind::State, "state"),
        of(StorageKind::Output, "y"),
    );
    queue.write(&kept, 0, &bytes(state)).unwrap();
    let row: usize = dims.iter().product();
    let (mut results, mut at) = (Vec::new(), 0);
    for &tokens in chunks {
        for (name, input) in names.iter().zip(inputs) {
            let mut part = input[at * row..(at + tokens) * row].to_vec();
            part.resize(size * row, f32::NAN);
            let buffer = of(StorageKind::Input, name);
            queue.write(&buffer, 0, &bytes(&part)).unwrap();
        }
        queue.launch(program.as_ref(), &[tokens as i32]).unwrap();
        let mut back = vec![0; size * row * 4];
        queue.read_into(&result, 0, &mut back).unwrap();
        let back = floats(&back);
        assert!(back[tokens * row..].iter().all(|&y| y == 0.0));
        results.extend_from_slice(&back[..tokens * row]);
        at += tokens;
    }
    assert_eq!(at, TOKENS);
    let mut back = vec![0; state.len() * 4];
    queue.read_into(&kept, 0, &mut back).unwrap();
    (results, floats(&back))
}

fn each_backend(run: impl Fn(&CpuBackend)) {
    for level in SimdLevel::available() {
        for threads in [1, 2] {
            let options = CpuOptions::new().threads(threads).simd(level);
            run(&CpuBackend::new(options).unwrap());
        }
    }
}

/// Chunks and the tokens that the graph is padded to.
const CUTS: [(&[usize], usize); 4] = [
    (&[TOKENS], TOKENS),
    (&[1; TOKENS], 1),
    (&[20, 20, 8], 20),
    (&[31, 1, 0, 16], 32),
];

#[test]
fn wkv7_of_a_sequence_equals_its_steps() {
    for (heads, n) in [(3, 64), (2, 20)] {
        let mut random = Random(1);
        let count = TOKENS * heads * n;
        let mut inputs: Vec<Vec<f32>> = (0..6).map(|_| random.normals(count)).collect();
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        inputs[1]
            .iter_mut()
            .for_each(|w| *w = (-0.606531 * sigmoid(*w)).exp());
        let rates = std::mem::take(&mut inputs[5]);
        for head in inputs[4].chunks_exact_mut(n) {
            let length = head.iter().map(|x| x * x).sum::<f32>().sqrt();
            head.iter_mut().for_each(|x| *x /= -length);
        }
        inputs[5] = inputs[4]
            .iter()
            .zip(rates)
            .map(|(a, rate)| -a * sigmoid(rate))
            .collect();
        let state = random.normals(heads * n * n);
        each_backend(|backend| {
            let run = |cut| {
                let dims: (&[usize], &[usize]) = (&[heads, n], &[heads, n, n]);
                in_chunks(
                    backend,
                    &inputs,
                    &state,
                    dims,
                    cut,
                    &|g, x, state, n_valid| {
                        let rwkvab = std::array::from_fn(|i| x[i]);
                        g.wkv7(rwkvab, state, Some(n_valid)).unwrap()
                    },
                )
            };
            let (whole, last) = run(CUTS[0]);
            let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
            assert!(whole.iter().any(|y| y.abs() > 0.1));
            for cut in &CUTS[1..] {
                let (results, state) = run(*cut);
                // 1e-5 of the values, squared.
                assert!(nmse(results, &wide(&whole)) < 1e-10);
                assert!(nmse(state, &wide(&last)) < 1e-10);
            }
        });
    }
}

#[test]
fn token_shift_of_a_sequence_equals_its_steps() {
    let n = 1030;
    let mut random = Random(2);
    let inputs = [random.normals(TOKENS * n)];
    let state = random.normals(n);
    each_backend(|backend| {
        for cut in CUTS {
            let dims: (&[usize], &[usize]) = (&[n], &[n]);
            let (results, last) = in_chunks(
                backend,
                &inputs,
                &state,
                dims,
                cut,
                &|g, x, state, n_valid| g.token_shift(x[0], state, Some(n_valid)).unwrap(),
            );
            assert_eq!(results[..n], state);
            assert_eq!(results[n..], inputs[0][..(TOKENS - 1) * n]);
            assert_eq!(last, inputs[0][(TOKENS - 1) * n..]);
        }
    });
}
