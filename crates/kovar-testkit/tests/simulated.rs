//! Simulated devices refuse what real ones would fault on.

use std::sync::Arc;

use kovar_core::backend::{Backend, Binding, Buffer, MemoryMap, Segment};
use kovar_core::error::DeviceError;
use kovar_core::{DType, Graph, HostBytes, NodeId, StorageId};
use kovar_testkit::simulated::{Call, Executor, FaultKind, SimulatedDevice, SimulatedOptions};

fn foreign<T: std::fmt::Debug>(result: Result<T, DeviceError>) -> bool {
    matches!(result, Err(DeviceError::Foreign { .. }))
}

/// `y = 2 x` of four elements, and the ids of its storages.
fn graph() -> (Graph, Vec<StorageId>, Vec<NodeId>) {
    let mut graph = Graph::new();
    let x = graph.input("x", DType::F32, &[4]).unwrap();
    graph.scale(x, 2.0).unwrap();
    let (storages, nodes) = (graph.storage_ids().collect(), graph.node_ids().collect());
    (graph, storages, nodes)
}

fn bind(storages: &[StorageId], x: &Buffer, y: &Buffer) -> MemoryMap {
    let mut memory = MemoryMap::new();
    for (&storage, buffer) in storages.iter().zip([x, y]) {
        let buffer = buffer.clone();
        memory.bind(storage, Binding { buffer, offset: 0 });
    }
    memory
}

#[test]
fn memory_and_programs_of_another_device_are_refused() {
    // The same id does not make it the same device.
    let (own, other) = (SimulatedDevice::default(), SimulatedDevice::default());
    let (x, y) = (own.alloc(16).unwrap(), other.alloc(16).unwrap());
    assert!(foreign(own.queue().write(&y, 0, &[0; 4])));
    assert!(foreign(own.queue().fill(&y, 0, 4, 0)));
    assert!(foreign(own.queue().copy(&x, 0, &y, 0, 4)));
    assert!(foreign(own.queue().copy(&y, 0, &x, 0, 4)));
    assert!(own.queue().read(&y, 0, 4).is_err());

    let (graph, storages, nodes) = graph();
    let segment = Segment::unfused(&graph, &nodes);
    let kernel = own.compile(segment).unwrap();
    assert!(foreign(kernel.bind(&bind(&storages, &x, &y))));
    let own_y = own.alloc(16).unwrap();
    let program = kernel.bind(&bind(&storages, &x, &own_y)).unwrap();
    assert!(foreign(other.queue().launch(program.as_ref(), &[])));
}

#[test]
fn a_prepared_weight_is_no_plain_memory() {
    let device = SimulatedDevice::default();
    let (graph, storages, nodes) = graph();
    let bytes = HostBytes::new(Arc::new(vec![0u8; 16]));
    let weight = device.prepare(&graph.storages()[0], &bytes, &[]).unwrap();
    assert!(device.queue().read(&weight, 0, 4).is_err());
    assert!(foreign(device.queue().write(&weight, 0, &[0; 4])));
    let y = device.alloc(16).unwrap();
    let segment = Segment::unfused(&graph, &nodes);
    // `x` is an input, not a weight.
    let kernel = device.compile(segment).unwrap();
    assert!(foreign(kernel.bind(&bind(&storages, &weight, &y))));
    let short = bytes.slice(0..12).unwrap();
    let error = device
        .prepare(&graph.storages()[0], &short, &[])
        .unwrap_err();
    assert!(matches!(
        error,
        DeviceError::WeightSize {
            expected: 16,
            found: 12,
            ..
        }
    ));
}

#[test]
fn a_program_runs_with_the_memory_it_is_bound_to() {
    let device = SimulatedDevice::default();
    let (graph, storages, nodes) = graph();
    let (x, y) = (device.alloc(16).unwrap(), device.alloc(16).unwrap());
    let segment = Segment::unfused(&graph, &nodes);
    let kernel = device.compile(segment).unwrap();
    let program = kernel.bind(&bind(&storages, &x, &y)).unwrap();
    let values = [1f32, 2.0, -3.0, 0.5];
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let queue = device.queue();
    queue.write(&x, 0, &bytes).unwrap();
    queue.launch(program.as_ref(), &[]).unwrap();
    let doubled = queue.read(&y, 0, 16).unwrap().wait().unwrap();
    let expected: Vec<u8> = values
        .iter()
        .flat_map(|v| (2.0 * v).to_le_bytes())
        .collect();
    assert_eq!(doubled, expected);
    let small = device.alloc(12).unwrap();
    let error = kernel.bind(&bind(&storages, &x, &small)).unwrap_err();
    assert!(matches!(error, DeviceError::Unbound { .. }), "{error}");
}

#[test]
fn a_scalar_that_is_missing_or_out_of_range_is_refused() {
    let device = SimulatedDevice::default();
    let mut graph = Graph::new();
    graph.scalar("kv_len", 5).unwrap();
    let segment = Segment::unfused(&graph, &[]);
    let program = device
        .compile(segment)
        .unwrap()
        .bind(&MemoryMap::new())
        .unwrap();
    for scalars in [&[][..], &[6], &[-1]] {
        let error = device
            .queue()
            .launch(program.as_ref(), scalars)
            .unwrap_err();
        assert!(
            matches!(
                error,
                DeviceError::Scalar {
                    index: 0,
                    max: 5,
                    ..
                }
            ),
            "{error}"
        );
    }
    device.queue().launch(program.as_ref(), &[5]).unwrap();
}

#[test]
fn memory_runs_out_at_the_budget_and_comes_back_when_freed() {
    let device = SimulatedDevice::new(SimulatedOptions {
        memory_bytes: Some(100),
        max_buffer_bytes: 90,
        ..SimulatedOptions::default()
    });
    let first = device.alloc(60).unwrap();
    let error = device.alloc(41).unwrap_err();
    assert!(matches!(
        error,
        DeviceError::OutOfMemory { requested: 41, .. }
    ));
    assert_eq!(device.allocated_bytes(), 60);
    let second = first.clone();
    drop(first);
    assert_eq!(device.allocated_bytes(), 60);
    drop(second);
    assert_eq!(device.allocated_bytes(), 0);
    assert!(device.alloc(91).is_err());
    assert!(device.alloc(90).is_ok());
}

#[test]
fn the_nth_call_fails_once_and_a_lost_device_for_good() {
    let options = SimulatedOptions::default()
        .failing(Call::Alloc, 1, FaultKind::OutOfMemory)
        .failing(Call::Write, 1, FaultKind::Refused)
        .failing(Call::Write, 1, FaultKind::Lost);
    let device = SimulatedDevice::new(options);
    let buffer = device.alloc(8).unwrap();
    assert!(matches!(
        device.alloc(8),
        Err(DeviceError::OutOfMemory { .. })
    ));
    assert!(device.alloc(8).is_ok());
    assert_eq!(device.calls(Call::Alloc), 3);
    let queue = device.queue();
    queue.write(&buffer, 0, &[1; 8]).unwrap();
    let fence = queue.fence().unwrap();
    queue.wait(fence).unwrap();
    // A refused write is not queued, and does not count as one that ran.
    let refused = queue.write(&buffer, 0, &[2; 8]);
    assert!(matches!(refused, Err(DeviceError::TimedOut { .. })));
    assert_eq!(device.calls(Call::Write), 1);
    // An error of work in flight comes back from the wait, and every call after it fails.
    queue.write(&buffer, 0, &[2; 8]).unwrap();
    assert!(matches!(queue.wait(fence), Err(DeviceError::Lost { .. })));
    assert!(matches!(device.alloc(8), Err(DeviceError::Lost { .. })));
}

#[test]
fn ranges_outside_of_a_buffer_are_refused() {
    let device = SimulatedDevice::default();
    let buffer = device.alloc(8).unwrap();
    let queue = device.queue();
    for (offset, len) in [(0, 9), (8, 1), (usize::MAX, 2)] {
        let error = queue.fill(&buffer, offset, len, 0).unwrap_err();
        assert!(
            matches!(error, DeviceError::OutOfRange { buffer_len: 8, .. }),
            "{error}"
        );
    }
    queue.fill(&buffer, 8, 0, 0).unwrap();
}

#[test]
fn an_idle_device_checks_and_counts_calls_and_runs_nothing() {
    let device = SimulatedDevice::new(SimulatedOptions {
        executor: Executor::Idle,
        memory_bytes: Some(32),
        ..SimulatedOptions::default()
    });
    let (graph, storages, nodes) = graph();
    let (x, y) = (device.alloc(16).unwrap(), device.alloc(16).unwrap());
    assert!(device.alloc(1).is_err());
    let segment = Segment::unfused(&graph, &nodes);
    let kernel = device.compile(segment).unwrap();
    let program = kernel.bind(&bind(&storages, &x, &y)).unwrap();
    let queue = device.queue();
    queue.write(&x, 0, &[1; 16]).unwrap();
    queue.launch(program.as_ref(), &[]).unwrap();
    assert_eq!(queue.read(&y, 0, 16).unwrap().wait().unwrap(), [0; 16]);
    assert!(queue.write(&x, 1, &[1; 16]).is_err());
    assert_eq!(
        (device.calls(Call::Write), device.calls(Call::Launch)),
        (1, 1)
    );
}
