//! Buffers above the limits of bindings.

use kovar_core::backend::Backend;

use kovar_gpu::{GpuOptions, Gpus};

use super::device;

/// Checks single bytes of a buffer.
fn check(backend: &dyn Backend, buffer: &kovar_core::backend::Buffer, bytes: &[(usize, u8)]) {
    for &(at, expected) in bytes {
        let mut found = [0];
        backend.queue().read_into(buffer, at, &mut found).unwrap();
        assert_eq!(found[0], expected, "byte {at}");
    }
}

#[test]
fn fills_and_copies_cover_more_than_a_binding() {
    let backend = device(4);
    let limit = backend.adapter_info().unwrap().limits.max_binding_bytes as usize;
    // llvmpipe binds 128 MiB at once; a GPU that binds as much as a buffer holds has no more.
    let len = limit.min(160 << 20) + (33 << 20) + 3;
    let queue = backend.queue();
    let buffer = backend.alloc(len).unwrap();
    queue.fill(&buffer, 0, len, 0xab).unwrap();
    let edges = [0, 1, (128 << 20) - 257, (128 << 20) - 1, 128 << 20, len - 1];
    check(&backend, &buffer, &edges.map(|at| (at, 0xab)));
    queue.fill(&buffer, 1, len - 2, 0).unwrap();
    check(&backend, &buffer, &[(0, 0xab), (len - 1, 0xab)]);
    check(&backend, &buffer, &[(1, 0), (128 << 20, 0), (len - 2, 0)]);
    // At another position within words, so that kernels copy.
    let other = backend.alloc(len).unwrap();
    queue.fill(&other, 0, len, 0x5c).unwrap();
    queue.copy(&other, 2, &buffer, 1, len - 3).unwrap();
    check(&backend, &buffer, &[(0, 0xab), (1, 0x5c), (len - 3, 0x5c)]);
    check(
        &backend,
        &buffer,
        &[(len - 2, 0), (len - 1, 0xab), (128 << 20, 0x5c)],
    );
}

#[test]
fn reads_and_writes_cover_more_than_the_rings() {
    // With the usual rings of 64 MiB, and readback buffers of as much at most.
    let backend = Gpus::new().open(GpuOptions::new().virtual_id(15)).unwrap();
    let len = (70 << 20) + 5;
    let buffer = backend.alloc_zeroed(len + 8).unwrap();
    let bytes: Vec<u8> = (0..len).map(|i| (i ^ (i >> 9)) as u8).collect();
    let queue = backend.queue();
    queue.write(&buffer, 3, &bytes).unwrap();
    let ticket = queue.read(&buffer, 3, len).unwrap();
    queue.fill(&buffer, 0, len, 0xff).unwrap();
    assert!(ticket.wait().unwrap() == bytes);
    check(
        &backend,
        &buffer,
        &[(len - 1, 0xff), (len + 2, bytes[len - 1]), (len + 3, 0)],
    );
}

#[test]
fn clears_cover_the_largest_buffers() {
    // More than 2 GiB, where the device has such.
    let backend = device(4);
    let len = ((2 << 30) + 4097).min(backend.info().max_buffer_bytes - 4098);
    let buffer = backend.alloc_zeroed(len).unwrap();
    let queue = backend.queue();
    queue.write(&buffer, len - 5, &[1, 2, 3, 4, 5]).unwrap();
    check(
        &backend,
        &buffer,
        &[
            (0, 0),
            (len / 2, 0),
            (len - 4100, 0),
            (len - 6, 0),
            (len - 1, 5),
        ],
    );
    queue.fill(&buffer, len - 4097, 4000, 0).unwrap();
    queue.fill(&buffer, len - 3, 3, 0).unwrap();
    check(
        &backend,
        &buffer,
        &[(len - 4, 2), (len - 3, 0), (len - 1, 0)],
    );
}
