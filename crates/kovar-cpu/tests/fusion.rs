//! Fused kernels give the results of the nodes' own kernels, bit for bit.

use std::collections::BTreeMap;
use std::sync::Arc;

use kovar_core::ops::{
    Binary, BinaryKind, Copy, Glu, GluKind, GroupNorm, LayerNorm, Op, Pairing, RmsNorm, Rope,
    Scale, Unary, UnaryKind,
};
use kovar_core::{DType, Graph, HostBytes, Storage, StorageKind, ValueId, quant};
use kovar_cpu::simd::SimdLevel;
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_runtime::{HostSlice, Plan, Policy, Session, compile};
use kovar_testkit::synthetic::Random;

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

fn level(level: SimdLevel, threads: usize) -> Arc<CpuBackend> {
    let options = CpuOptions::new().simd(level).threads(threads);
    Arc::new(CpuBackend::new(options).unwrap())
}

/// The content of a storage before a run.
fn data(storage: &Storage) -> Vec<u8> {
    let mut random = Random::of_name(&storage.name);
    let elements: usize = storage.dims.iter().product();
    if storage.dtype == DType::I32 {
        // Rows in any order, some of them outside.
        let ids = (0..elements as i32).rev().map(|i| match i % 5 {
            3 => -1,
            4 => i + 1000,
            _ => i,
        });
        return ids.flat_map(i32::to_le_bytes).collect();
    }
    let values: Vec<f32> = (0..elements).map(|_| random.gaussian() as f32).collect();
    let mut bytes = vec![0; storage.bytes];
    quant::encode(storage.dtype, &values, &mut bytes).unwrap();
    bytes
}

/// Compiles and runs a graph; returns the plan, and all outputs and states by name.
fn run(graph: &Graph, backend: &Arc<CpuBackend>, fuse: bool) -> (Plan, BTreeMap<String, Vec<u8>>) {
    let session = Session::new(vec![backend.clone()]).unwrap();
    for storage in graph.storages() {
        if storage.kind == StorageKind::Weight {
            let host = HostBytes::new(Arc::new(data(storage)));
            let (name, dims) = (&storage.name, &storage.dims);
            session.add_weight(name, storage.dtype, dims, host).unwrap();
        }
    }
    let mut policy = Policy::default();
    policy.check_plan = true;
    policy.fuse = fuse;
    let plan = compile(graph, &session, &policy).unwrap();
    let inputs: Vec<(ValueId, Vec<u8>)> = graph
        .storages()
        .iter()
        .filter(|storage| storage.kind == StorageKind::Input)
        .map(|storage| (plan.input(&storage.name).unwrap(), data(storage)))
        .collect();
    let inputs: Vec<_> = inputs
        .iter()
        .map(|(value, bytes)| (*value, HostSlice::raw(bytes)))
        .collect();
    let mut results = BTreeMap::new();
    let outputs = plan.run(&inputs, &[]).unwrap();
    for storage in graph.storages() {
        if storage.kind == StorageKind::Output {
            let mut bytes = vec![0; storage.bytes];
            outputs
                .read(plan.output(&storage.name).unwrap(), &mut bytes)
                .unwrap();
            results.insert(storage.name.clone(), bytes);
        }
    }
    outputs.wait().unwrap();
    drop(outputs);
    for state in session.states() {
        let mut bytes = vec![0; state.bytes];
        session.read_state(&state.name, 0, &mut bytes).unwrap();
        results.insert(state.name, bytes);
    }
    (plan, results)
}

/// The names of the groups that were fused, and which of their results are kept.
fn fused(plan: &Plan) -> Vec<(&'static str, Vec<bool>)> {
    let segments = plan.schedule().segments.iter();
    let groups = segments.flat_map(|segment| &segment.groups);
    groups
        .map(|group| (group.fusion.name(), group.kept.clone()))
        .collect()
}

/// Runs a graph with and without fusion, compares the results and returns the groups.
fn agrees(graph: &Graph, backend: &Arc<CpuBackend>, what: &str) -> Vec<(&'static str, Vec<bool>)> {
    let (plan, found) = run(graph, backend, true);
    let (unfused, expected) = run(graph, backend, false);
    assert_eq!(fused(&unfused), []);
    for (name, bytes) in &expected {
        let differs = found[name].iter().zip(bytes).position(|(a, b)| a != b);
        let level = backend.simd_level();
        assert_eq!(
            differs,
            None,
            "{level}, {what}, `{name}`:\n{}",
            plan.describe()
        );
    }
    fused(&plan)
}

fn binary(kind: BinaryKind) -> Op {
    Op::from(Binary { kind })
}

fn unary(kind: UnaryKind) -> Op {
    Op::from(Unary { kind })
}

const KINDS: [UnaryKind; 8] = [
    UnaryKind::Sigmoid,
    UnaryKind::Silu,
    UnaryKind::GeluTanh,
    UnaryKind::Relu,
    UnaryKind::Exp,
    UnaryKind::Tanh,
    UnaryKind::LeakyRelu { slope: 0.25 },
    UnaryKind::Softplus,
];

/// Builds a graph of random operations.
struct Builder {
    graph: Graph,
    random: Random,
    dims: Vec<usize>,
    n_names: usize,
}

impl Builder {
    fn name(&mut self) -> String {
        self.n_names += 1;
        format!("t{}", self.n_names)
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.random.below(one_in) == 0
    }

    fn dtype(&mut self) -> DType {
        match self.random.below(4) {
            i @ 0..3 => FLOATS[i],
            _ => DType::F32,
        }
    }

    /// An operand that broadcasts to the dims: of the same dims, with dims dropped or of size 1, or
    /// a window.
    fn operand(&mut self, whole: bool) -> ValueId {
        let (name, dtype) = (self.name(), self.dtype());
        let mut dims = self.dims.clone();
        if !whole {
            match self.random.below(4) {
                0 => drop(dims.drain(..dims.len() - 1)),
                1 => *dims.last_mut().unwrap() = 1,
                2 => dims[0] = 1,
                _ => {}
            }
        }
        if self.chance(3) && dims.len() >= 2 {
            // Every element of a longer row, the two first dims swapped in memory.
            let mut stored = dims.clone();
            stored.swap(0, 1);
            *stored.last_mut().unwrap() += 3;
            let wide = self.graph.input(&name, dtype, &stored).unwrap();
            let mut order: Vec<usize> = (0..dims.len()).collect();
            order.swap(0, 1);
            let turned = self.graph.permute(wide, &order).unwrap();
            return self.window(turned, &dims);
        }
        if self.chance(2) {
            self.graph.weight(&name, dtype, &dims).unwrap()
        } else {
            self.graph.input(&name, dtype, &dims).unwrap()
        }
    }

    /// The last elements of a value along each dimension.
    fn window(&mut self, value: ValueId, dims: &[usize]) -> ValueId {
        let mut window = value;
        for (dim, &size) in dims.iter().enumerate() {
            let of = self.graph.value(window).unwrap().dims()[dim];
            window = self.graph.slice(window, dim, of - size..of).unwrap();
        }
        window
    }

    /// Appends an operation on `x`: in place, to a new storage, or into a window.
    fn apply(&mut self, op: Op, operands: &[ValueId], x: ValueId) -> ValueId {
        let first = self.graph.value(operands[0]).unwrap().dtype;
        let same = self.graph.value(x).unwrap().dtype == first;
        match self.random.below(5) {
            0 | 1 if same => self.graph.apply_into(op, operands, x).unwrap(),
            2 => {
                let (name, mut dims) = (self.name(), self.dims.clone());
                dims.iter_mut().for_each(|size| *size += 2);
                let wide = self.graph.temp(&name, first, &dims).unwrap();
                let target = self.window(wide, &self.dims.clone());
                self.graph.apply_into(op, operands, target).unwrap()
            }
            _ => self.graph.apply(op, operands).unwrap(),
        }
    }

    fn append(&mut self, x: ValueId) -> ValueId {
        let last = *self.dims.last().unwrap();
        match self.random.below(10) {
            0..=3 => {
                let op = binary(BinaryKind::ALL[self.random.below(BinaryKind::ALL.len())]);
                let swapped = self.chance(3);
                let other = self.operand(swapped);
                let operands = if swapped { [other, x] } else { [x, other] };
                self.apply(op, &operands, x)
            }
            4 | 5 => {
                let op = unary(KINDS[self.random.below(KINDS.len())]);
                self.apply(op, &[x], x)
            }
            6 if self.chance(2) => self.apply(Op::from(Scale { scale: -0.75 }), &[x], x),
            6 => {
                let kind = GluKind::ALL[self.random.below(GluKind::ALL.len())];
                let other = self.operand(true);
                self.apply(Op::from(Glu { kind }), &[x, other], x)
            }
            7 => {
                let mut operands = vec![x];
                let (name, dtype) = (self.name(), self.dtype());
                if self.chance(2) {
                    operands.push(self.graph.weight(&name, dtype, &[last]).unwrap());
                }
                self.apply(Op::from(RmsNorm { eps: 1e-5 }), &operands, x)
            }
            8 => {
                let mut operands = vec![x];
                for _ in 0..self.random.below(3) {
                    let (name, dtype) = (self.name(), self.dtype());
                    operands.push(self.graph.weight(&name, dtype, &[last]).unwrap());
                }
                self.apply(Op::from(LayerNorm { eps: 1e-5 }), &operands, x)
            }
            _ if self.dims.len() >= 2 => {
                let channels = self.dims[1];
                let groups = if channels > 0 && channels.is_multiple_of(3) {
                    3
                } else {
                    1
                };
                let mut operands = vec![x];
                for _ in 0..self.random.below(3) {
                    let (name, dtype) = (self.name(), self.dtype());
                    operands.push(self.graph.weight(&name, dtype, &[channels]).unwrap());
                }
                let normed = self.apply(Op::from(GroupNorm { groups, eps: 1e-5 }), &operands, x);
                let op = unary(UnaryKind::Silu);
                self.apply(op, &[normed], normed)
            }
            _ => x,
        }
    }
}

/// A graph of a chain of operations. Some of their results are read again later.
fn arbitrary(seed: u64) -> Graph {
    const SIZES: [&[usize]; 12] = [
        &[1],
        &[7],
        &[3, 5],
        &[1, 288],
        &[2, 3, 33],
        &[2, 1, 1025],
        &[1, 3, 2050],
        &[2, 6, 5, 7],
        &[1, 3, 64, 33],
        &[0, 5],
        &[4, 0],
        &[70, 300],
    ];
    let mut random = Random::new(seed);
    let dims = SIZES[random.below(SIZES.len())].to_vec();
    let mut b = Builder {
        graph: Graph::new(),
        random,
        dims: dims.clone(),
        n_names: 0,
    };
    let input = b.graph.input("x", DType::F32, &dims).unwrap();
    let dtype = b.dtype();
    // A copy is never fused, and with it the chain begins on a writable storage.
    let mut x = b.graph.apply(Op::from(Copy { dtype }), &[input]).unwrap();
    let mut passed = Vec::new();
    for _ in 0..2 + b.random.below(6) {
        passed.push(x);
        x = b.append(x);
    }
    let mut outputs = vec![x];
    for value in passed {
        if b.chance(4) {
            // A result of the chain is read again.
            let dtype = DType::F32;
            outputs.push(b.graph.apply(Op::from(Copy { dtype }), &[value]).unwrap());
        }
    }
    for (i, value) in outputs.into_iter().enumerate() {
        let graph = &mut b.graph;
        let value = graph
            .apply(Op::from(Copy { dtype: DType::F32 }), &[value])
            .unwrap();
        graph.set_output(value, &format!("y{i}")).unwrap();
    }
    b.graph
}

#[test]
fn arbitrary_chains_agree_on_every_level() {
    for simd in SimdLevel::available() {
        let backends = [level(simd, 1), level(simd, 3)];
        let mut seen: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for seed in 0..1500 {
            let graph = arbitrary(seed);
            let groups = agrees(
                &graph,
                &backends[seed as usize % 2],
                &format!("seed {seed}"),
            );
            for (name, kept) in groups {
                let all = kept.iter().all(|&kept| kept);
                seen.entry(name).or_default()[usize::from(all)] += 1;
            }
        }
        for name in [
            "elementwise",
            "residual+norm",
            "norm+scale",
            "bias+activation",
            "gate*up",
        ] {
            let [within, kept] = seen.get(name).copied().unwrap_or_default();
            assert!(within > 10 && kept > 0, "{simd}: {name} of {seen:?}");
        }
        assert!(seen.contains_key("norm+activation"), "{simd}: {seen:?}");
    }
}

/// A block's residual, norm and modulation, `x + gate y` in all forms that models have.
#[test]
fn a_modulated_residual_is_one_kernel() {
    for simd in SimdLevel::available() {
        for (dtype, width) in [(DType::F32, 1031), (DType::F16, 64), (DType::BF16, 33)] {
            let mut g = Graph::new();
            let dims = [2, 5, width];
            let x = g.input("x", dtype, &dims).unwrap();
            let y = g.input("y", dtype, &dims).unwrap();
            let [gate, scale, shift] = ["gate", "scale", "shift"]
                .map(|name| g.input(name, DType::F32, &[2, 1, width]).unwrap());
            let gated = g.mul(y, gate).unwrap();
            let sum = g.add(gated, x).unwrap();
            let normed = g.apply(Op::from(LayerNorm { eps: 1e-6 }), &[sum]).unwrap();
            let scaled = g
                .apply_in_place(binary(BinaryKind::Mul), &[normed, scale])
                .unwrap();
            let shifted = g
                .apply_in_place(binary(BinaryKind::Add), &[scaled, shift])
                .unwrap();
            g.set_output(sum, "sum").unwrap();
            g.set_output(shifted, "shifted").unwrap();
            let groups = agrees(&g, &level(simd, 2), dtype.name());
            let kept = vec![false, true, false, false, true];
            assert_eq!(groups, [("gate+residual+norm+scale+shift", kept)]);
        }
    }
}

#[test]
fn keys_are_turned_on_their_way_into_the_cache() {
    let caches = [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::Q8_0,
        DType::F8E4M3,
    ];
    for simd in SimdLevel::available() {
        for (i, cache) in caches.into_iter().enumerate() {
            for (dtype, tokens, heads, dim) in [
                (FLOATS[i % 3], 1, 2, 64),
                (FLOATS[(i + 1) % 3], 9, 1, 32),
                (DType::F32, 130, 3, 96),
                (DType::F32, 0, 3, 32),
            ] {
                for pairing in [Pairing::Normal, Pairing::Neox] {
                    let mut g = Graph::new();
                    let x = g.input("x", DType::F32, &[tokens, heads, dim]).unwrap();
                    let x = g.apply(Op::from(Copy { dtype }), &[x]).unwrap();
                    let table = g.input("table", DType::F32, &[tokens, dim / 4, 2]).unwrap();
                    let ids = g.input("ids", DType::I32, &[tokens]).unwrap();
                    let state = g.state("cache", cache, &[120, heads, dim]).unwrap();
                    let turned = match i % 2 {
                        0 => g.rope_in_place(x, table, pairing).unwrap(),
                        _ => g.apply(Op::from(Rope { pairing }), &[x, table]).unwrap(),
                    };
                    g.set_rows(state, turned, ids).unwrap();
                    let what = format!("{dtype} to {cache}, {tokens} tokens");
                    let groups = agrees(&g, &level(simd, 1 + i % 3), &what);
                    // Without tokens, no node is needed.
                    let expected = [("rope+cache write", vec![false, true])];
                    assert_eq!(groups, expected[..tokens.min(1)], "{what}");
                }
            }
        }
    }
}

#[test]
fn turned_keys_that_are_read_again_are_written_first() {
    let mut g = Graph::new();
    let x = g.input("x", DType::F32, &[3, 2, 8]).unwrap();
    let table = g.input("table", DType::F32, &[3, 4, 2]).unwrap();
    let ids = g.input("ids", DType::I32, &[3]).unwrap();
    let state = g.state("cache", DType::F16, &[5, 2, 8]).unwrap();
    let pairing = Pairing::Neox;
    let turned = g.apply(Op::from(Rope { pairing }), &[x, table]).unwrap();
    g.set_rows(state, turned, ids).unwrap();
    g.set_output(turned, "turned").unwrap();
    assert_eq!(agrees(&g, &level(SimdLevel::detect(), 2), "kept"), []);
}
