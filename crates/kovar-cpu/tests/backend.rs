//! The backend, its queue and its programs at their edges.

use std::sync::Arc;

use kovar_core::backend::{Backend, Binding, Import, MemoryMap, Program, Segment, WeightUse};
use kovar_core::error::DeviceError;
use kovar_core::ops::{Attention, Matmul, Op, Pairing, Precision};
use kovar_core::{DType, Graph, HostBytes, NodeId, StorageId, ValueId, quant};
use kovar_cpu::simd::SimdLevel;
use kovar_cpu::{CpuBackend, CpuError, CpuOptions};
use kovar_testkit::simulated::SimulatedDevice;

fn backend() -> CpuBackend {
    CpuBackend::new(CpuOptions::new().threads(2)).unwrap()
}

fn compile(
    backend: &CpuBackend,
    graph: &Graph,
    memory: &MemoryMap,
) -> Result<Arc<dyn Program>, DeviceError> {
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let segment = Segment::unfused(graph, &nodes);
    backend.compile(segment)?.bind(memory)
}

/// Binds every storage that has none to memory of its own.
fn bind_rest(backend: &CpuBackend, graph: &Graph, memory: &mut MemoryMap) {
    for id in graph.storage_ids() {
        if memory.get(id).is_none() {
            let buffer = backend.alloc(graph.storages()[id.index()].bytes).unwrap();
            memory.bind(id, Binding { buffer, offset: 0 });
        }
    }
}

fn storage(graph: &Graph, value: ValueId) -> StorageId {
    graph.value(value).unwrap().storage
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / 4];
    quant::decode(DType::F32, bytes, &mut values).unwrap();
    values
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn a_kernel_bound_twice_gives_two_programs() {
    let backend = backend();
    let (kernel, [w, x, y]) = {
        let mut graph = Graph::new();
        let w = graph.weight("w", DType::F32, &[2, 3]).unwrap();
        let x = graph.input("x", DType::F32, &[1, 3]).unwrap();
        let y = graph.matmul(w, x).unwrap();
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        let segment = Segment::unfused(&graph, &nodes);
        let storages = [w, x, y].map(|value| storage(&graph, value));
        (backend.compile(segment).unwrap(), storages)
    };
    let queue = backend.queue();
    let bound = |x_values: &[f32]| {
        let mut memory = MemoryMap::new();
        let buffers = [24, 12, 8].map(|bytes| backend.alloc(bytes).unwrap());
        let weights = bytes(&[1.0, 2.0, 3.0, -1.0, 0.5, 0.0]);
        queue.write(&buffers[0], 0, &weights).unwrap();
        queue.write(&buffers[1], 0, &bytes(x_values)).unwrap();
        for (id, buffer) in [w, x, y].into_iter().zip(buffers.clone()) {
            memory.bind(id, Binding { buffer, offset: 0 });
        }
        let [_, _, y] = buffers;
        (kernel.bind(&memory).unwrap(), y)
    };
    let (first, first_y) = bound(&[1.0, 1.0, 1.0]);
    let (second, second_y) = bound(&[2.0, 0.0, 1.0]);
    queue.launch(second.as_ref(), &[]).unwrap();
    queue.launch(first.as_ref(), &[]).unwrap();
    let result = |y| floats(&queue.read(y, 0, 8).unwrap().wait().unwrap());
    assert_eq!(result(&first_y), [6.0, -0.5]);
    assert_eq!(result(&second_y), [5.0, -2.0]);
}

#[test]
fn the_device_describes_itself() {
    let backend = backend();
    let info = backend.info();
    assert_eq!(info.id, "cpu");
    assert_eq!(info.threads, Some(2));
    assert_eq!(info.features, [SimdLevel::detect().name()]);
    assert!(info.alignment.is_power_of_two() && !info.name.is_empty());
}

#[test]
fn no_threads_and_missing_instructions_are_errors() {
    let none = CpuBackend::new(CpuOptions::new().threads(0));
    assert!(matches!(none, Err(CpuError::Pool(_))));
    for level in SimdLevel::ALL
        .into_iter()
        .filter(|level| !level.is_available())
    {
        let missing = CpuBackend::new(CpuOptions::new().simd(level));
        assert!(matches!(missing, Err(CpuError::Simd { level: l }) if l == level));
    }
}

#[test]
fn ranges_outside_a_buffer_are_errors() {
    let backend = backend();
    let queue = backend.queue();
    let buffer = backend.alloc(16).unwrap();
    let other = backend.alloc(8).unwrap();
    let outside = |result: Result<(), DeviceError>| {
        assert!(
            matches!(result, Err(DeviceError::OutOfRange { .. })),
            "{result:?}"
        );
    };
    outside(queue.write(&buffer, 9, &[0; 8]));
    outside(queue.write(&buffer, usize::MAX, &[0; 8]));
    outside(queue.read_into(&buffer, 17, &mut []));
    outside(queue.read(&buffer, 0, 17).map(drop));
    outside(queue.fill(&buffer, 16, 1, 0));
    outside(queue.copy(&buffer, 0, &other, 0, 9));
    outside(queue.copy(&other, 1, &buffer, 0, 8));
    queue.write(&buffer, 8, &[7; 8]).unwrap();
    queue.copy(&buffer, 8, &other, 0, 8).unwrap();
    assert_eq!(queue.read(&other, 0, 8).unwrap().wait().unwrap(), [7; 8]);
}

#[test]
fn an_allocation_beyond_all_memory_is_an_error_with_its_size() {
    let bytes = isize::MAX as usize - (8 << 20);
    let error = backend().alloc(bytes).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { requested, .. } if requested == bytes));
}

#[test]
fn imported_bytes_are_shared_and_read_only() {
    let backend = backend();
    let host = HostBytes::new(Arc::new(vec![1u8, 2, 3, 4]));
    let (buffer, import) = backend.import_host(&host).unwrap();
    assert_eq!(import, Import::Shared);
    assert_eq!(
        backend.queue().read(&buffer, 1, 2).unwrap().wait().unwrap(),
        [2, 3]
    );
    let written = backend.queue().write(&buffer, 0, &[0]);
    assert!(matches!(written, Err(DeviceError::Foreign { .. })));
}

#[test]
fn memory_and_programs_of_another_device_are_refused() {
    let (backend, other) = (backend(), backend());
    let foreign = SimulatedDevice::default().alloc(64).unwrap();
    let result = backend.queue().fill(&foreign, 0, 1, 0);
    assert!(matches!(result, Err(DeviceError::Foreign { .. })));
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[4]).unwrap();
    graph.scale(x, 2.0).unwrap();
    let mut memory = MemoryMap::new();
    bind_rest(&backend, &graph, &mut memory);
    let program = compile(&backend, &graph, &memory).unwrap();
    let own = other.alloc(16).unwrap();
    let mine = backend.alloc(16).unwrap();
    let host = HostBytes::new(Arc::new(vec![0u8; 16]));
    let (imported, _) = backend.import_host(&host).unwrap();
    for result in [
        other.queue().write(&mine, 0, &[1]),
        other.queue().fill(&mine, 0, 1, 1),
        other.queue().read_into(&imported, 0, &mut [0]),
        other.queue().copy(&mine, 0, &own, 0, 4),
        other.queue().copy(&own, 0, &mine, 0, 4),
        compile(&other, &graph, &memory).map(drop),
    ] {
        assert!(
            matches!(result, Err(DeviceError::Foreign { .. })),
            "{result:?}"
        );
    }
    let result = other.queue().launch(&*program, &[]);
    assert!(matches!(result, Err(DeviceError::Foreign { .. })));
}

#[test]
fn a_state_bound_to_bytes_of_an_operand_that_goes_into_it_is_refused() {
    let backend = backend();
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[2, 8]).unwrap();
    let state = graph.state("state", DType::F32, &[8]).unwrap();
    let y = graph.token_shift(x, state, None).unwrap();
    let buffer = backend.alloc(512).unwrap();
    let bound = |offset| {
        let mut memory = MemoryMap::new();
        for (value, offset) in [(x, 0), (state, offset), (y, 256)] {
            let buffer = buffer.clone();
            memory.bind(storage(&graph, value), Binding { buffer, offset });
        }
        compile(&backend, &graph, &memory).map(drop)
    };
    let result = bound(32);
    assert!(
        matches!(&result, Err(DeviceError::Aliased { result, .. }) if result == "state"),
        "{result:?}"
    );
    bound(64).unwrap();
}

#[test]
fn a_result_bound_to_bytes_of_an_operand_is_refused() {
    let backend = backend();
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[32]).unwrap();
    let y = graph.scale(x, 2.0).unwrap();
    let buffer = backend.alloc(256).unwrap();
    let bound = |offset| {
        let mut memory = MemoryMap::new();
        for (value, offset) in [(x, 0), (y, offset)] {
            let buffer = buffer.clone();
            memory.bind(storage(&graph, value), Binding { buffer, offset });
        }
        compile(&backend, &graph, &memory).map(drop)
    };
    for offset in [0, 64, 124] {
        let result = bound(offset);
        assert!(
            matches!(&result, Err(DeviceError::Aliased { operand, .. }) if operand == "x"),
            "{offset}: {result:?}"
        );
    }
    bound(128).unwrap();
}

#[test]
fn a_table_of_angles_at_an_odd_byte_turns_alike() {
    let backend = backend();
    let mut graph = Graph::new();
    let x = graph.state("x", DType::F32, &[1, 2, 1, 8]).unwrap();
    let table = graph.input("table", DType::F32, &[2, 4, 2]).unwrap();
    let y = graph.rope_in_place(x, table, Pairing::Normal).unwrap();
    let angles: Vec<f32> = (0..16).map(|i| i as f32 / 8.0 - 1.0).collect();
    let values: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let turned = [0, 1, 2, 3].map(|odd| {
        let mut host = vec![0; odd];
        host.extend(bytes(&angles));
        let (buffer, _) = backend
            .import_host(&HostBytes::new(Arc::new(host)))
            .unwrap();
        let mut memory = MemoryMap::new();
        memory.bind(
            storage(&graph, table),
            Binding {
                buffer,
                offset: odd,
            },
        );
        bind_rest(&backend, &graph, &mut memory);
        let program = compile(&backend, &graph, &memory).unwrap();
        let target = memory.get(storage(&graph, y)).unwrap().buffer.clone();
        let queue = backend.queue();
        queue.write(&target, 0, &bytes(&values)).unwrap();
        queue.launch(&*program, &[]).unwrap();
        floats(&queue.read(&target, 0, 64).unwrap().wait().unwrap())
    });
    assert_ne!(turned[0], values);
    assert!(turned.iter().all(|other| *other == turned[0]));
}

#[test]
fn storages_without_enough_memory_are_named() {
    let backend = backend();
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[4]).unwrap();
    let y = graph.scale(x, 2.0).unwrap();
    let mut memory = MemoryMap::new();
    let unbound = |memory: &MemoryMap| match compile(&backend, &graph, memory) {
        Err(DeviceError::Unbound { storage, .. }) => storage,
        other => panic!("{other:?}"),
    };
    assert_eq!(unbound(&memory), "x");
    let small = backend.alloc(16).unwrap();
    for offset in [4, usize::MAX] {
        let buffer = small.clone();
        memory.bind(storage(&graph, x), Binding { buffer, offset });
        assert_eq!(unbound(&memory), "x");
    }
    memory.bind(
        storage(&graph, x),
        Binding {
            buffer: small,
            offset: 0,
        },
    );
    let large = backend.alloc(64).unwrap();
    memory.bind(
        storage(&graph, y),
        Binding {
            buffer: large,
            offset: 3,
        },
    );
    assert!(unbound(&memory).starts_with("scale"));
}

#[test]
fn scalars_are_checked_before_anything_runs() {
    let backend = backend();
    let mut graph = Graph::new();
    let kv_len = graph.scalar("kv_len", 8).unwrap();
    let q = graph.input("q", DType::F32, &[1, 1, 1, 4]).unwrap();
    let k = graph.state("k", DType::F32, &[1, 8, 1, 4]).unwrap();
    let attributes = Attention {
        kv_len: Some(kv_len),
        ..Attention::new(1.0)
    };
    graph.attention(attributes, q, k, k, &[]).unwrap();
    let mut memory = MemoryMap::new();
    bind_rest(&backend, &graph, &mut memory);
    let program = compile(&backend, &graph, &memory).unwrap();
    for scalars in [&[][..], &[-1], &[9]] {
        let result = backend.queue().launch(&*program, scalars);
        assert!(matches!(
            result,
            Err(DeviceError::Scalar {
                index: 0,
                max: 8,
                ..
            })
        ));
    }
    backend.queue().launch(&*program, &[8]).unwrap();
}

#[test]
fn a_weight_of_the_wrong_size_is_an_error() {
    let backend = backend();
    let mut graph = Graph::new();
    let w = graph.weight("w", DType::Q4_0, &[4, 32]).unwrap();
    let host = HostBytes::new(Arc::new(vec![0u8; 71]));
    let error = backend
        .prepare(graph.storage_of(w).unwrap(), &host, &[])
        .unwrap_err();
    assert!(matches!(
        error,
        DeviceError::WeightSize {
            expected: 72,
            found: 71,
            ..
        }
    ));
}

/// Binds `w` to its prepared form.
fn prepare(
    backend: &CpuBackend,
    graph: &Graph,
    memory: &mut MemoryMap,
    w: ValueId,
    values: &[f32],
) {
    let weight = graph.storage_of(w).unwrap();
    let mut encoded = vec![0; weight.bytes];
    quant::encode(weight.dtype, values, &mut encoded).unwrap();
    let uses = WeightUse::all(graph).remove(&storage(graph, w)).unwrap();
    let host = HostBytes::new(Arc::new(encoded));
    let buffer = backend.prepare(weight, &host, &uses).unwrap();
    memory.bind(storage(graph, w), Binding { buffer, offset: 0 });
}

#[test]
fn products_of_the_same_activations_run_together_and_give_the_same() {
    let backend = backend();
    let (n, k, m) = (48, 64, 3);
    let values = |seed: usize, len: usize| -> Vec<f32> {
        (0..len)
            .map(|i| ((i * 31 + seed * 17) % 61) as f32 / 30.0 - 1.0)
            .collect()
    };
    let x_values = values(9, m * k);
    let run = |weights: &[usize]| -> (Vec<Vec<f32>>, Vec<&'static str>) {
        let mut graph = Graph::new();
        let x = graph.input("x", DType::F32, &[m, k]).unwrap();
        let mut memory = MemoryMap::new();
        let named: Vec<ValueId> = weights
            .iter()
            .map(|i| {
                graph
                    .weight(&format!("w{i}"), DType::Q8_0, &[n, k])
                    .unwrap()
            })
            .collect();
        let y: Vec<ValueId> = named.iter().map(|&w| graph.matmul(w, x).unwrap()).collect();
        for (&w, &seed) in named.iter().zip(weights) {
            prepare(&backend, &graph, &mut memory, w, &values(seed, n * k));
        }
        bind_rest(&backend, &graph, &mut memory);
        let queue = backend.queue();
        let input = &memory.get(storage(&graph, x)).unwrap().buffer;
        queue.write(input, 0, &bytes(&x_values)).unwrap();
        let program = compile(&backend, &graph, &memory).unwrap();
        queue.launch(&*program, &[]).unwrap();
        let read = |&value: &ValueId| {
            let buffer = &memory.get(storage(&graph, value)).unwrap().buffer;
            floats(&queue.read(buffer, 0, buffer.len()).unwrap().wait().unwrap())
        };
        (y.iter().map(read).collect(), program.kernels())
    };
    let (together, kernels) = run(&[0, 1, 2, 3, 4]);
    assert_eq!(kernels, ["matmul_quantized"; 5]);
    for (i, y) in together.iter().enumerate() {
        assert_eq!(*y, run(&[i]).0[0], "product {i}");
    }
}

#[test]
fn full_precision_never_quantises_activations() {
    let backend = backend();
    let mut graph = Graph::new();
    let w = graph.weight("w", DType::Q8_0, &[1, 32]).unwrap();
    let x = graph.input("x", DType::F32, &[1, 32]).unwrap();
    let precision = Precision::F32;
    let exact = graph
        .apply(Op::from(Matmul { precision }), &[w, x])
        .unwrap();
    let quick = graph.matmul(w, x).unwrap();
    let mut memory = MemoryMap::new();
    prepare(&backend, &graph, &mut memory, w, &[1.0; 32]);
    bind_rest(&backend, &graph, &mut memory);
    // One large activation makes the small ones vanish in 8 bits.
    let mut values = [0.001f32; 32];
    values[0] = 1000.0;
    let queue = backend.queue();
    let buffer = |value| &memory.get(storage(&graph, value)).unwrap().buffer;
    queue.write(buffer(x), 0, &bytes(&values)).unwrap();
    let program = compile(&backend, &graph, &memory).unwrap();
    assert_eq!(program.kernels(), ["matmul_decoded", "matmul_quantized"]);
    queue.launch(&*program, &[]).unwrap();
    let read = |value| floats(&queue.read(buffer(value), 0, 4).unwrap().wait().unwrap())[0];
    let one = f64::from(quant_one());
    let expected = (1000.0 + 31.0 * 0.001) * one;
    assert!((f64::from(read(exact)) - expected).abs() < 1e-3);
    assert!((f64::from(read(quick)) - expected).abs() > 1e-2);
}

/// What 1 is in Q8_0.
fn quant_one() -> f32 {
    let mut block = vec![0; 34];
    let mut values = [1.0f32; 32];
    quant::encode(DType::Q8_0, &values, &mut block).unwrap();
    quant::decode(DType::Q8_0, &block, &mut values).unwrap();
    values[0]
}
