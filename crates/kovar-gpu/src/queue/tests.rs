//! The queue's bookkeeping on a device without a GPU.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kovar_core::backend::{Backend, Binding, Buffer, MemoryMap, Program, Segment, Support};
use kovar_core::error::DeviceError;
use kovar_core::ops::UnaryKind;
use kovar_core::{DType, Graph, HostBytes, Storage, StorageKind};

use super::QueueOptions;
use crate::backend::GpuBackend;
use crate::seam::Device;
use crate::seam::null::Null;

/// Small rings and bounds, so that a test meets them.
fn options() -> QueueOptions {
    QueueOptions {
        long_chunk: 256,
        short_chunk: 128,
        short_chunks: 2,
        readback: 8 << 10,
        timeout: Duration::from_secs(5),
        submission_dispatches: 8,
        parallel_dispatches: 400,
        ..QueueOptions::default()
    }
}

fn device_with(options: QueueOptions) -> (Arc<Null>, GpuBackend) {
    let null = Null::new();
    let backend = GpuBackend::with_device("null", null.clone(), options).unwrap();
    (null, backend)
}

fn device() -> (Arc<Null>, GpuBackend) {
    device_with(options())
}

fn read(backend: &GpuBackend, buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    backend.queue().read_into(buffer, 0, &mut bytes).unwrap();
    bytes
}

/// A program of `n` kernels on one small tensor.
fn chain(backend: &GpuBackend, n: usize) -> Arc<dyn Program> {
    let mut graph = Graph::new();
    let x = graph.temp("x", DType::F32, &[4]).unwrap();
    for _ in 0..n {
        let op = kovar_core::ops::Op::Unary(kovar_core::ops::Unary {
            kind: UnaryKind::Relu,
        });
        graph.apply_in_place(op, &[x]).unwrap();
    }
    let mut memory = MemoryMap::new();
    for id in graph.storage_ids() {
        let buffer = backend.alloc(16).unwrap();
        memory.bind(id, Binding { buffer, offset: 0 });
    }
    let nodes: Vec<_> = graph.node_ids().collect();
    for &id in &nodes {
        assert_eq!(backend.supports(graph.node(id).unwrap()), Support::Yes);
    }
    let segment = Segment::unfused(&graph, &nodes);
    backend.compile(segment).unwrap().bind(&memory).unwrap()
}

#[test]
fn binding_a_kernel_makes_no_pipelines() {
    let (null, backend) = device();
    let mut graph = Graph::new();
    let w = graph.weight("w", DType::F32, &[4]).unwrap();
    let x = graph.input("x", DType::F32, &[4]).unwrap();
    let y = graph.add(x, w).unwrap();
    graph.unary(y, UnaryKind::Relu).unwrap();
    let nodes: Vec<_> = graph.node_ids().collect();
    let kernel = backend.compile(Segment::unfused(&graph, &nodes)).unwrap();
    let made = null.pipelines();
    assert!(made >= 2);
    // In buffers of their own, in one arena, and with the weight among the rest.
    let bind = |place: &dyn Fn(usize) -> Binding| {
        let mut memory = MemoryMap::new();
        for id in graph.storage_ids() {
            memory.bind(id, place(id.index()));
        }
        kernel.bind(&memory).unwrap();
    };
    let own = |_| Binding {
        buffer: backend.alloc(16).unwrap(),
        offset: 0,
    };
    let arena = backend.alloc(4 * 256).unwrap();
    let among = |at: usize| Binding {
        buffer: arena.clone(),
        offset: at * 256,
    };
    bind(&own);
    bind(&|at| if at == 0 { own(at) } else { among(at) });
    assert_eq!(null.pipelines(), made);
    // A weight that may not be bound read-only needs another pipeline, once.
    bind(&among);
    let more = null.pipelines();
    assert_eq!(more, made + 1);
    bind(&among);
    assert_eq!(null.pipelines(), more);
}

#[test]
fn bytes_move_between_any_offsets() {
    let (_, backend) = device();
    let queue = backend.queue();
    let buffer = backend.alloc_zeroed(1001).unwrap();
    let other = backend.alloc_zeroed(1003).unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(1001).collect();
    let mut expected = vec![0; 1001];
    let mut copied = vec![0; 1003];
    for (offset, len) in [
        (0, 1001),
        (1, 3),
        (2, 2),
        (3, 700),
        (998, 3),
        (5, 0),
        (7, 1),
    ] {
        queue.write(&buffer, offset, &bytes[..len]).unwrap();
        expected[offset..offset + len].copy_from_slice(&bytes[..len]);
        for to in 0..3 {
            let len = len.min(990);
            queue.copy(&buffer, offset, &other, to, len).unwrap();
            copied[to..to + len].copy_from_slice(&expected[offset..offset + len]);
        }
        queue.fill(&buffer, offset / 2, len / 3, 7).unwrap();
        expected[offset / 2..offset / 2 + len / 3].fill(7);
    }
    assert_eq!(read(&backend, &buffer), expected);
    assert_eq!(read(&backend, &other), copied);
}

#[test]
fn ranges_of_one_buffer_may_even_overlap() {
    let (_, backend) = device();
    let bytes: Vec<u8> = (0..200).collect();
    for (from, to, len) in [
        (0, 100, 90),
        (3, 101, 50),
        (10, 17, 80),
        (17, 10, 80),
        (5, 5, 9),
    ] {
        let buffer = backend.alloc(200).unwrap();
        backend.queue().write(&buffer, 0, &bytes).unwrap();
        backend
            .queue()
            .copy(&buffer, from, &buffer, to, len)
            .unwrap();
        let mut expected = bytes.clone();
        expected.copy_within(from..from + len, to);
        assert_eq!(read(&backend, &buffer), expected);
    }
}

#[test]
fn a_full_ring_waits_for_the_device_and_nothing_else_does() {
    let (null, backend) = device();
    let buffer = backend.alloc(4096).unwrap();
    backend
        .queue()
        .wait(backend.queue().fence().unwrap())
        .unwrap();
    null.hold(true);
    let bytes: Vec<u8> = (0..=255).cycle().take(4096).collect();
    // One chunk is filled, the rest of the queue is free.
    backend.queue().write(&buffer, 0, &bytes[..256]).unwrap();
    let ticket = backend.queue().read(&buffer, 0, 256).unwrap();
    let fence = backend.queue().fence().unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| backend.queue().write(&buffer, 0, &bytes));
        thread::sleep(Duration::from_millis(50));
        assert!(!writer.is_finished());
        null.hold(false);
        writer.join().unwrap().unwrap();
    });
    backend.queue().wait(fence).unwrap();
    assert_eq!(ticket.wait().unwrap(), &bytes[..256]);
    assert_eq!(read(&backend, &buffer), bytes);
}

#[test]
fn work_that_ends_without_its_mark_is_an_error_once() {
    let (null, backend) = device();
    let buffer = backend.alloc(16).unwrap();
    let queue = backend.queue();
    queue.wait(queue.fence().unwrap()).unwrap();
    null.forget_next();
    queue.write(&buffer, 0, &[1; 16]).unwrap();
    let error = queue.wait(queue.fence().unwrap()).unwrap_err();
    assert!(matches!(error, DeviceError::Unfinished { .. }), "{error}");
    queue.write(&buffer, 0, &[2; 16]).unwrap();
    queue.wait(queue.fence().unwrap()).unwrap();
    assert_eq!(read(&backend, &buffer), [2; 16]);
}

#[test]
fn a_ticket_of_work_without_its_mark_is_an_error_even_after_a_wait() {
    let (null, backend) = device();
    let buffer = backend.alloc_zeroed(16).unwrap();
    let queue = backend.queue();
    queue.wait(queue.fence().unwrap()).unwrap();
    null.forget_next();
    let ticket = queue.read(&buffer, 0, 16).unwrap();
    let waited = queue.wait(queue.fence().unwrap());
    assert!(matches!(waited, Err(DeviceError::Unfinished { .. })));
    assert!(matches!(ticket.wait(), Err(DeviceError::Unfinished { .. })));
}

#[test]
fn work_that_takes_too_long_is_an_error_and_may_still_end() {
    let timeout = Duration::from_millis(60);
    let (null, backend) = device_with(QueueOptions {
        timeout,
        ..options()
    });
    let buffer = backend.alloc(16).unwrap();
    let queue = backend.queue();
    null.hold(true);
    queue.write(&buffer, 0, &[1; 16]).unwrap();
    let fence = queue.fence().unwrap();
    let error = queue.wait(fence).unwrap_err();
    assert!(matches!(error, DeviceError::TimedOut { .. }), "{error}");
    let ticket = queue.read(&buffer, 0, 16).unwrap();
    null.hold(false);
    queue.wait(fence).unwrap();
    assert_eq!(ticket.wait().unwrap(), [1; 16]);
}

#[test]
fn a_lost_device_stays_lost_and_others_do_not() {
    let (null, backend) = device();
    let (_, other) = device();
    let buffer = backend.alloc(16).unwrap();
    let queue = backend.queue();
    null.hold(true);
    queue.write(&buffer, 0, &[1; 16]).unwrap();
    let ticket = queue.read(&buffer, 0, 16).unwrap();
    let fence = queue.fence().unwrap();
    null.lose("unplugged");
    let is_lost = |error: DeviceError| {
        let expected = DeviceError::Lost {
            device: "null".to_owned(),
            reason: "unplugged".to_owned(),
        };
        assert_eq!(error, expected);
    };
    is_lost(queue.wait(fence).unwrap_err());
    is_lost(ticket.wait().unwrap_err());
    is_lost(queue.write(&buffer, 0, &[1]).unwrap_err());
    is_lost(queue.fence().unwrap_err());
    is_lost(queue.wait(fence).unwrap_err());
    is_lost(backend.alloc(16).unwrap_err());
    let buffer = other.alloc_zeroed(16).unwrap();
    assert_eq!(read(&other, &buffer), [0; 16]);
}

#[test]
fn out_of_memory_in_the_middle_of_a_load_leaks_nothing_and_the_next_load_works() {
    let (null, backend) = device();
    let mut graph = Graph::new();
    let weight = graph.weight("w", DType::F32, &[100_000]).unwrap();
    let storage: &Storage = graph.storage_of(weight).unwrap();
    assert_eq!(storage.kind, StorageKind::Weight);
    let bytes = HostBytes::new(Arc::new(vec![1u8; 400_000]));
    let load = |n: usize| {
        let load = (0..n).map(|_| backend.prepare(storage, &bytes, &[]));
        load.collect::<Result<Vec<Buffer>, _>>()
    };
    // The first one brings the rings and the marks.
    drop(load(1).unwrap());
    let queue = backend.queue();
    queue.wait(queue.fence().unwrap()).unwrap();
    let before = null.live();
    let error = load(20).unwrap_err();
    let expected = DeviceError::OutOfMemory {
        device: "null".to_owned(),
        what: "weight `w`".to_owned(),
        requested: 400_000,
    };
    assert_eq!(error, expected);
    queue.wait(queue.fence().unwrap()).unwrap();
    assert_eq!(null.live(), before);
    let loaded = load(8).unwrap();
    assert_eq!(read(&backend, &loaded[7]), vec![1; 400_000]);
}

#[test]
fn long_programs_are_cut_and_their_order_is_kept() {
    for n in [3, 8, 300, 500] {
        let (null, backend) = device();
        let program = chain(&backend, n);
        let queue = backend.queue();
        queue.wait(queue.fence().unwrap()).unwrap();
        let before = null.log().len();
        queue.launch(program.as_ref(), &[]).unwrap();
        queue.wait(queue.fence().unwrap()).unwrap();
        let log = &null.log()[before..];
        let count: usize = log.iter().map(Vec::len).sum();
        assert_eq!((count, log.len()), (n, n.div_ceil(8)));
        assert!(log.iter().flatten().all(|kernel| kernel == "unary"));
    }
}

#[test]
fn a_run_that_is_broken_off_leaves_the_device_usable() {
    let (null, backend) = device();
    let program = chain(&backend, 40);
    let queue = backend.queue();
    queue.wait(queue.fence().unwrap()).unwrap();
    let before = null.log().len();
    let mut asked = 0;
    let all = queue.launch_while(program.as_ref(), &[], &mut || {
        asked += 1;
        asked <= 2
    });
    assert_eq!((all, asked), (Ok(false), 3));
    queue.wait(queue.fence().unwrap()).unwrap();
    assert_eq!(null.log().len(), before + 2);
    assert_eq!(
        queue.launch_while(program.as_ref(), &[], &mut || true),
        Ok(true)
    );
    queue.wait(queue.fence().unwrap()).unwrap();
    assert_eq!(null.log().len(), before + 7);
}

#[test]
fn a_run_that_may_be_broken_off_is_not_far_ahead_of_the_device() {
    let (null, backend) = device();
    let program = chain(&backend, 80);
    let queue = backend.queue();
    queue.wait(queue.fence().unwrap()).unwrap();
    let before = null.log().len();
    null.hold(true);
    thread::scope(|scope| {
        let run = scope.spawn(|| queue.launch_while(program.as_ref(), &[], &mut || true));
        thread::sleep(Duration::from_millis(100));
        let submitted = null.log().len() - before;
        assert!((1..=3).contains(&submitted), "{submitted}");
        null.hold(false);
        assert_eq!(run.join().unwrap(), Ok(true));
    });
    queue.wait(queue.fence().unwrap()).unwrap();
    assert_eq!(null.log().len() - before, 10);
}

#[test]
fn memory_that_is_dropped_in_flight_goes_when_its_work_has_ended() {
    let (null, backend) = device();
    let queue = backend.queue();
    let buffer = backend.alloc_zeroed(4096).unwrap();
    queue.wait(queue.fence().unwrap()).unwrap();
    let before = null.live();
    null.hold(true);
    let target = backend.alloc(4096).unwrap();
    queue.copy(&buffer, 0, &target, 0, 4096).unwrap();
    let fence = queue.fence().unwrap();
    drop(target);
    assert!(null.live() > before);
    null.hold(false);
    queue.wait(fence).unwrap();
    assert!(null.live() <= before + 4);
}

#[test]
fn forecasts_name_the_queues_own_memory() {
    let (_, backend) = device();
    assert_eq!(backend.upload_ring_bytes(), 2 * 256 + 2 * 128);
    assert_eq!(backend.readback_bytes(), 8 << 10);
}

/// A device with room for `capacity` bytes.
fn device_of(capacity: u64) -> GpuBackend {
    let caps = Null::new().caps().clone();
    GpuBackend::with_device("null", Null::with_caps(caps, capacity), options()).unwrap()
}

#[test]
fn a_write_is_done_even_if_another_call_finds_no_memory() {
    let backend = device_of(10_000);
    let queue = backend.queue();
    let hog = backend.alloc(9_400).unwrap();
    let buffer = backend.alloc(16).unwrap();
    queue.write(&buffer, 0, &[7; 16]).unwrap();
    assert!(matches!(
        queue.fence(),
        Err(DeviceError::OutOfMemory { .. })
    ));
    drop(hog);
    queue.wait(queue.fence().unwrap()).unwrap();
    assert_eq!(read(&backend, &buffer), [7; 16]);
}

#[test]
fn end_marks_are_right_after_one_could_not_be_made() {
    // Enough for the numbers, not for a mark beside the large buffer.
    for spare in (2000..2400).step_by(4) {
        let backend = device_of(12_000);
        let queue = backend.queue();
        let hog = backend.alloc(12_000 - spare).unwrap();
        let buffer = backend.alloc(16).unwrap();
        queue.write(&buffer, 0, &[7; 16]).unwrap();
        let first = queue.fence().and_then(|fence| queue.wait(fence));
        let out_of_memory = matches!(first, Err(DeviceError::OutOfMemory { .. }));
        assert!(first.is_ok() || out_of_memory, "{first:?}");
        drop(hog);
        queue.write(&buffer, 0, &[8; 16]).unwrap();
        queue.wait(queue.fence().unwrap()).unwrap();
        assert_eq!(read(&backend, &buffer), [8; 16]);
    }
}

#[test]
fn a_read_after_failed_work_gets_its_error() {
    let (null, backend) = device();
    let buffer = backend.alloc_zeroed(16).unwrap();
    let queue = backend.queue();
    queue.wait(queue.fence().unwrap()).unwrap();
    let other = backend.again();
    null.forget_next();
    queue.write(&buffer, 0, &[7; 16]).unwrap();
    let fence = queue.fence().unwrap();
    // Another user of the device waits first.
    let waited = other.queue().wait(fence);
    assert!(matches!(waited, Err(DeviceError::Unfinished { .. })));
    other.queue().wait(fence).unwrap();
    let found = queue.read(&buffer, 0, 16).unwrap().wait();
    assert!(matches!(found, Err(DeviceError::Unfinished { .. })));
    // Once is enough.
    queue.wait(fence).unwrap();
}
