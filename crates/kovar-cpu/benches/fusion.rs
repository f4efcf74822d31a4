//! `cpu/fusion/f32`: groups of nodes as one kernel and as one kernel per node, in alternating runs.
//! Prints the least and the median time of a group, and its speed-up by fusion: the ratio of the
//! least times, and the median of the ratios of neighbouring runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kovar_core::backend::{Backend, Binding, MemoryMap, Program, Segment, SegmentItem};
use kovar_core::error::GraphError;
use kovar_core::fusion::{Fusion, Group};
use kovar_core::ops::{Binary, BinaryKind, GroupNorm, Op, Pairing, Rope, Scale, Unary, UnaryKind};
use kovar_core::{DType, Graph, NodeId, StorageKind, ValueId};
use kovar_cpu::{CpuBackend, CpuOptions};

/// Groups of a graph: enough that the start of a program does not matter.
const GROUPS: usize = 8;

/// The time for all runs of a pattern.
const TIME: Duration = Duration::from_millis(400);

const WIDTH: usize = 2048;

type Pattern = fn(&mut Graph, usize, usize) -> Result<(), GraphError>;

/// Patterns of models, and which results of each are kept.
const PATTERNS: [(&str, Pattern, &[bool]); 6] = [
    ("residual+norm", residual_norm, &[true, true]),
    ("rope+cache write", rope_cache_write, &[false, true]),
    ("bias+activation", bias_activation, &[false, true]),
    ("gate*up", gate_up, &[false, true]),
    ("elementwise", decay, &[false, false, false, true]),
    ("norm+activation", norm_activation, &[false, true]),
];

fn input(g: &mut Graph, what: &str, i: usize, dims: &[usize]) -> Result<ValueId, GraphError> {
    g.input(&format!("{what}.{i}"), DType::F32, dims)
}

fn residual_norm(g: &mut Graph, i: usize, tokens: usize) -> Result<(), GraphError> {
    let x = input(g, "x", i, &[tokens, WIDTH])?;
    let y = g.temp("y", DType::F32, &[tokens, WIDTH])?;
    let weight = input(g, "weight", i, &[WIDTH])?;
    let kind = BinaryKind::Add;
    let sum = g.apply_in_place(Op::from(Binary { kind }), &[y, x])?;
    g.rms_norm(sum, weight, 1e-5).map(drop)
}

fn rope_cache_write(g: &mut Graph, i: usize, tokens: usize) -> Result<(), GraphError> {
    let (heads, dim) = (8, 128);
    let x = input(g, "x", i, &[tokens, heads, dim])?;
    let table = input(g, "table", i, &[tokens, dim / 2, 2])?;
    let ids = g.input(&format!("ids.{i}"), DType::I32, &[tokens])?;
    let cache = g.state(&format!("cache.{i}"), DType::F16, &[512, heads, dim])?;
    let pairing = Pairing::Neox;
    let turned = g.apply(Op::from(Rope { pairing }), &[x, table])?;
    g.set_rows(cache, turned, ids).map(drop)
}

fn unary(g: &mut Graph, kind: UnaryKind, x: ValueId) -> Result<ValueId, GraphError> {
    g.apply(Op::from(Unary { kind }), &[x])
}

fn bias_activation(g: &mut Graph, i: usize, tokens: usize) -> Result<(), GraphError> {
    let x = input(g, "x", i, &[tokens, WIDTH])?;
    let bias = input(g, "bias", i, &[WIDTH])?;
    let sum = g.add(x, bias)?;
    unary(g, UnaryKind::GeluTanh, sum).map(drop)
}

fn gate_up(g: &mut Graph, i: usize, tokens: usize) -> Result<(), GraphError> {
    let gate = input(g, "gate", i, &[tokens, WIDTH])?;
    let up = input(g, "up", i, &[tokens, WIDTH])?;
    let gate = unary(g, UnaryKind::Silu, gate)?;
    g.mul(gate, up).map(drop)
}

/// The decay of RWKV-7.
fn decay(g: &mut Graph, i: usize, tokens: usize) -> Result<(), GraphError> {
    let x = input(g, "x", i, &[tokens, WIDTH])?;
    let bias = input(g, "bias", i, &[WIDTH])?;
    let sum = g.add(x, bias)?;
    let share = unary(g, UnaryKind::Sigmoid, sum)?;
    let scaled = g.apply(Op::from(Scale { scale: -0.6 }), &[share])?;
    unary(g, UnaryKind::Exp, scaled).map(drop)
}

/// The norm and the activation before a convolution, on images with the same number of elements.
fn norm_activation(g: &mut Graph, i: usize, tokens: usize) -> Result<(), GraphError> {
    let x = input(g, "x", i, &[1, 64, tokens * WIDTH / 64])?;
    let norm = Op::from(GroupNorm {
        groups: 32,
        eps: 1e-5,
    });
    let normed = g.apply(norm, &[x])?;
    unary(g, UnaryKind::Silu, normed).map(drop)
}

/// The program of a graph whose storages all have memory.
fn program(
    backend: &CpuBackend,
    graph: &Graph,
    memory: &MemoryMap,
    groups: &[Group],
) -> Arc<dyn Program> {
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let segment = Segment {
        graph,
        nodes: &nodes,
        groups,
    };
    let fused = segment
        .items()
        .filter(|item| matches!(item, SegmentItem::Group(_)));
    assert_eq!(fused.count(), groups.len());
    backend.compile(segment).unwrap().bind(memory).unwrap()
}

fn bind(backend: &CpuBackend, graph: &Graph) -> MemoryMap {
    let mut memory = MemoryMap::new();
    for (id, storage) in graph.storage_ids().zip(graph.storages()) {
        let buffer = backend.alloc(storage.bytes).unwrap();
        if storage.dtype == DType::F32 && storage.kind != StorageKind::State {
            let ones: Vec<u8> = (0..storage.bytes / 4)
                .flat_map(|i| (1.0 + (i % 7) as f32 / 8.0).to_le_bytes())
                .collect();
            backend.queue().write(&buffer, 0, &ones).unwrap();
        }
        memory.bind(id, Binding { buffer, offset: 0 });
    }
    memory
}

fn main() {
    for threads in [1, 2] {
        let backend = CpuBackend::new(CpuOptions::new().threads(threads)).unwrap();
        for (name, pattern, kept) in PATTERNS {
            for tokens in [1, 128] {
                let mut graph = Graph::new();
                (0..GROUPS).for_each(|i| pattern(&mut graph, i, tokens).unwrap());
                let len = kept.len();
                let mut rows = Fusion::all().iter();
                let fusion = rows.find(|row| row.name() == name && row.n_nodes() == len);
                let groups: Vec<Group> = (0..GROUPS)
                    .map(|i| Group {
                        fusion: fusion.unwrap(),
                        nodes: i * len..(i + 1) * len,
                        kept: kept.to_vec(),
                    })
                    .collect();
                let memory = bind(&backend, &graph);
                let programs = [&groups[..], &[]].map(|g| program(&backend, &graph, &memory, g));
                measure(
                    &backend,
                    &format!("{threads} threads/{name}/{tokens}"),
                    &programs,
                );
            }
        }
    }
}

fn measure(backend: &CpuBackend, name: &str, programs: &[Arc<dyn Program>; 2]) {
    let mut times = [const { Vec::<Duration>::new() }; 2];
    let begin = Instant::now();
    while begin.elapsed() < TIME {
        for (times, program) in times.iter_mut().zip(programs) {
            let start = Instant::now();
            backend.queue().launch(&**program, &[]).unwrap();
            times.push(start.elapsed() / GROUPS as u32);
        }
    }
    let ratios = times[1].iter().zip(&times[0]);
    let mut ratios: Vec<f64> = ratios
        .map(|(a, b)| a.as_secs_f64() / b.as_secs_f64())
        .collect();
    ratios.sort_by(f64::total_cmp);
    times.iter_mut().for_each(|times| times.sort());
    let [fused, apart] = times;
    let middle = ratios.len() / 2;
    let least = apart[0].as_secs_f64() / fused[0].as_secs_f64();
    println!(
        "{name}: fused {:?} (median {:?}), apart {:?} (median {:?}), {least:.2} and {:.2} times as fast",
        fused[0], fused[middle], apart[0], apart[middle], ratios[middle]
    );
}
