//! Operands beyond what a device binds at once.

use kovar_core::backend::{Backend, Binding, Buffer, MemoryMap, Segment};
use kovar_core::ops::{Copy, GetRows, Op, Scale};
use kovar_core::{DType, Graph, NodeId, StorageId, ValueId};
use kovar_gpu::{GpuBackend, GpuOptions, Gpus};
use kovar_testkit::suite::{Filter, run_tests};

/// Operations whose nodes are cut into parts that can be bound, and a part of the names of cases
/// that show it.
const CUT: &[(&str, &str)] = &[
    ("add", "f32"),
    ("arange", "i64"),
    ("argmax", "f16"),
    ("argsort", "bf16"),
    ("concat", "f16"),
    ("copy", "i16"),
    ("get_rows", "f16"),
    ("group_norm", "f32"),
    ("l2_norm", "bf16"),
    ("layer_norm", "f32"),
    ("pad", "i8"),
    ("pool2d", "f16"),
    ("quantize_rows", "f32"),
    ("repeat", "i8"),
    ("rms_norm", "f32"),
    ("rope", "f16"),
    ("rope_apply", "f32"),
    ("scale", "f16"),
    ("set_rows", "f32-f16"),
    ("softmax", "f16"),
    ("sum", "f32"),
    ("swiglu", "f32x"),
    ("timestep_embedding", "f32"),
    ("token_shift", "bf16"),
    ("top_k", "f32"),
    ("upscale", "f16"),
    ("wkv7", "f16"),
];

#[test]
fn operations_are_cut_where_operands_exceed_a_binding() {
    let backend = Gpus::new()
        .open(GpuOptions::new().largest_binding(1280))
        .unwrap();
    let one = std::env::var("KOVAR_OP").ok();
    let mut failures = Vec::new();
    for &(op, name) in CUT {
        // All cases of one operation, if it is named.
        let all = one.as_deref() == Some(op);
        if one.is_some() && !all {
            continue;
        }
        let filter = Filter {
            op: Some(op.to_owned()),
            name: (!all).then(|| name.to_owned()),
        };
        let report = run_tests(&backend, &filter, &mut |_| {});
        let passed: usize = report.ops.iter().map(|op| op.passed).sum();
        assert!(passed > 0, "{op} {name}");
        failures.extend(report.failures().map(|case| format!("{case:?}")));
    }
    let shown = failures[..failures.len().min(20)].join("\n");
    assert!(failures.is_empty(), "{} failed:\n{shown}", failures.len());
}

/// A graph's storages on a device, each in a buffer of its own, and its nodes run once.
struct Run {
    graph: Graph,
    backend: GpuBackend,
    buffers: Vec<Buffer>,
}

impl Run {
    fn new(graph: Graph) -> Self {
        let backend = Gpus::new().open(GpuOptions::new()).unwrap();
        let buffers = graph.storages().iter();
        let buffers = buffers.map(|s| backend.alloc(s.bytes).unwrap()).collect();
        Self {
            graph,
            backend,
            buffers,
        }
    }

    fn buffer(&self, value: ValueId) -> &Buffer {
        &self.buffers[self.graph.value(value).unwrap().storage.index()]
    }

    fn launch(&self) {
        let mut memory = MemoryMap::new();
        let ids: Vec<StorageId> = self.graph.storage_ids().collect();
        for (id, buffer) in ids.into_iter().zip(&self.buffers) {
            let buffer = buffer.clone();
            memory.bind(id, Binding { buffer, offset: 0 });
        }
        let nodes: Vec<NodeId> = self.graph.node_ids().collect();
        let segment = Segment {
            graph: &self.graph,
            nodes: &nodes,
            groups: &[],
        };
        let program = self
            .backend
            .compile(segment)
            .unwrap()
            .bind(&memory)
            .unwrap();
        self.backend.queue().launch(program.as_ref(), &[]).unwrap();
    }

    fn read(&self, value: ValueId, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let queue = self.backend.queue();
        queue
            .read_into(self.buffer(value), offset, &mut bytes)
            .unwrap();
        bytes
    }
}

#[test]
fn a_tensor_of_more_than_128_mib_is_scaled_cast_and_looked_up() {
    const ROWS: usize = 36_000;
    const N: usize = 1024;
    let mut graph = Graph::new();
    let x = graph.state("x", DType::F32, &[ROWS, N]).unwrap();
    let scale = Op::from(Scale { scale: 2.0 });
    let x = graph.apply_into(scale, &[x], x).unwrap();
    let halves = graph
        .apply(Op::from(Copy { dtype: DType::F16 }), &[x])
        .unwrap();
    let looked_up: Vec<i32> = vec![ROWS as i32 - 1, 0, ROWS as i32, 17_999, 18_000, -1];
    let ids = graph.input("ids", DType::I32, &[looked_up.len()]).unwrap();
    let rows = graph.apply(Op::from(GetRows), &[x, ids]).unwrap();
    let run = Run::new(graph);

    let queue = run.backend.queue();
    // 0x3f3f3f3f is a number, as it is in most places.
    let filling = f32::from_bits(0x3f3f_3f3f);
    queue.fill(run.buffer(x), 0, ROWS * N * 4, 0x3f).unwrap();
    let sample = |row: usize, column: usize| (row % 100) as f32 + column as f32 / 1024.0;
    let places = [0, 1, 17_999, 18_000, 32_767, 32_768, ROWS - 1]
        .into_iter()
        .flat_map(|row| [0, 511, N - 1].map(|column| (row, column)));
    for (row, column) in places.clone() {
        let bytes = sample(row, column).to_le_bytes();
        queue
            .write(run.buffer(x), (row * N + column) * 4, &bytes)
            .unwrap();
    }
    let bytes: Vec<u8> = looked_up.iter().flat_map(|id| id.to_le_bytes()).collect();
    queue.write(run.buffer(ids), 0, &bytes).unwrap();
    run.launch();

    let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    for (row, column) in places {
        let at = row * N + column;
        let expected = 2.0 * sample(row, column);
        assert_eq!(float(&run.read(x, at * 4, 4)), expected, "{row} {column}");
        let half = run.read(halves, at * 2, 2);
        let half = half::f16::from_le_bytes([half[0], half[1]]);
        assert_eq!(half, half::f16::from_f32(expected), "{row} {column}");
    }
    for row in (0..ROWS).step_by(997) {
        assert_eq!(float(&run.read(x, (row * N + 5) * 4, 4)), 2.0 * filling);
    }
    for (i, id) in looked_up.into_iter().enumerate() {
        for column in [0, 5, 511, N - 1] {
            let found = float(&run.read(rows, (i * N + column) * 4, 4));
            let expected = match usize::try_from(id) {
                Ok(row) if row < ROWS && column == 5 => 2.0 * filling,
                Ok(row) if row < ROWS => 2.0 * sample(row, column),
                _ => 0.0,
            };
            assert_eq!(found, expected, "{id} {column}");
        }
    }
}
