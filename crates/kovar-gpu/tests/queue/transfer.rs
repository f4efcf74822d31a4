//! Writes, fills, copies, reads and imports.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use kovar_core::HostBytes;
use kovar_core::backend::{Backend, Import};
use kovar_core::error::DeviceError;

use super::{device, negate, negations, read, settle};

#[test]
fn bytes_may_change_as_soon_as_a_write_returns() {
    let backend = device(3);
    let buffer = backend.alloc(100_000).unwrap();
    let mut bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
    let expected = bytes.clone();
    backend.queue().write(&buffer, 0, &bytes).unwrap();
    bytes.fill(0);
    drop(bytes);
    assert_eq!(read(&backend, &buffer), expected);
}

#[test]
fn a_fill_of_a_part_touches_only_that_part() {
    let backend = device(3);
    for byte in [0, 0xa5] {
        for offset in 0..6 {
            for len in [0, 1, 2, 3, 4, 5, 9, 1000] {
                let buffer = backend.alloc(1024).unwrap();
                backend.queue().fill(&buffer, 0, 1024, 0x11).unwrap();
                backend.queue().fill(&buffer, offset, len, byte).unwrap();
                let mut expected = vec![0x11; 1024];
                expected[offset..offset + len].fill(byte);
                assert_eq!(read(&backend, &buffer), expected, "{offset} {len} {byte}");
            }
        }
    }
}

#[test]
fn copies_reach_any_offset_within_and_between_buffers() {
    let backend = device(3);
    let bytes: Vec<u8> = (0..600u32).map(|i| ((i * 31) >> 2) as u8).collect();
    for from in 0..5 {
        for to in 300..305 {
            for len in [0, 1, 2, 3, 6, 7, 8, 200] {
                let buffer = backend.alloc(601).unwrap();
                let other = backend.alloc_zeroed(601).unwrap();
                backend.queue().write(&buffer, 0, &bytes).unwrap();
                backend
                    .queue()
                    .copy(&buffer, from, &buffer, to, len)
                    .unwrap();
                backend
                    .queue()
                    .copy(&buffer, from, &other, to, len)
                    .unwrap();
                let mut expected = bytes.clone();
                expected.copy_within(from..from + len, to);
                assert_eq!(read(&backend, &buffer)[..600], expected);
                let mut expected = vec![0; 601];
                expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
                assert_eq!(read(&backend, &other), expected);
            }
        }
    }
}

#[test]
fn nothing_is_a_legal_length() {
    let backend = device(3);
    let queue = backend.queue();
    let empty = backend.alloc(0).unwrap();
    let buffer = backend.alloc_zeroed(8).unwrap();
    for buffer in [&empty, &buffer] {
        let end = buffer.len();
        queue.write(buffer, end, &[]).unwrap();
        queue.fill(buffer, end, 0, 1).unwrap();
        queue.copy(buffer, end, buffer, end, 0).unwrap();
        assert_eq!(queue.read(buffer, end, 0).unwrap().wait().unwrap(), []);
    }
    let nothing = HostBytes::new(Arc::new(Vec::new()));
    assert_eq!(backend.import_host(&nothing).unwrap().0.len(), 0);
    assert_eq!(read(&backend, &buffer), [0; 8]);
}

#[test]
fn ranges_are_checked() {
    let backend = device(3);
    let queue = backend.queue();
    let buffer = backend.alloc(9).unwrap();
    let larger = backend.alloc(64).unwrap();
    let refused = |result: Result<(), DeviceError>| {
        let expected = matches!(result, Err(DeviceError::OutOfRange { buffer_len: 9, .. }));
        assert!(expected, "{result:?}");
    };
    refused(queue.write(&buffer, 9, &[1]));
    refused(queue.write(&buffer, usize::MAX, &[1]));
    refused(queue.fill(&buffer, 3, 7, 0));
    refused(queue.copy(&buffer, 8, &larger, 0, 2));
    refused(queue.copy(&larger, 0, &buffer, 8, 2));
    refused(queue.read(&buffer, 0, 10).map(|_| ()));
}

#[test]
fn a_ticket_brings_what_was_there_when_it_was_made() {
    let backend = device(3);
    let queue = backend.queue();
    let buffer = backend.alloc(1000).unwrap();
    queue.fill(&buffer, 0, 1000, 0x11).unwrap();
    let program = negations(&backend, &buffer, 0, 250, 1);
    let mut model = vec![0x11; 1000];
    let mut tickets = Vec::new();
    for i in 1..21u8 {
        queue.write(&buffer, usize::from(i), &[i; 5]).unwrap();
        model[usize::from(i)..][..5].fill(i);
        queue.launch(program.as_ref(), &[]).unwrap();
        negate(&mut model);
        tickets.push((queue.read(&buffer, 0, 1000).unwrap(), model.clone()));
    }
    // In any order, some not at all, and the buffer gone.
    drop(buffer);
    tickets.truncate(15);
    while let Some((ticket, expected)) = tickets.pop() {
        assert_eq!(ticket.wait().unwrap(), expected);
    }
}

#[test]
fn buffers_may_be_dropped_in_flight() {
    let backend = device(3);
    let queue = backend.queue();
    let kept = backend.alloc(4096).unwrap();
    for i in 0..50u8 {
        let buffer = backend.alloc(4096).unwrap();
        queue.fill(&buffer, 0, 4096, i).unwrap();
        let program = negations(&backend, &buffer, 0, 1024, 1);
        queue.launch(program.as_ref(), &[]).unwrap();
        queue.copy(&buffer, 0, &kept, 0, 4096).unwrap();
    }
    let mut expected = vec![49; 4096];
    negate(&mut expected);
    assert_eq!(read(&backend, &kept), expected);
}

#[test]
fn imported_memory_is_the_files_bytes_whichever_way_it_came() {
    let backend = device(3);
    let bytes: Vec<u8> = (0..50_000u32).map(|i| ((i * 13) >> 3) as u8).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let mapped = HostBytes::new(Arc::new(Mapped::new(&file)));
    let aligned = mapped.slice(4096 + 32..20_000).unwrap();
    let odd = mapped.slice(4097..20_000).unwrap();
    let tail = mapped.slice(49_152..50_000).unwrap();
    let shares = backend.adapter_info().unwrap().transfers.from_host_ptr;
    for (part, range, may_share) in [
        (mapped, 0..50_000, true),
        (aligned, 4128..20_000, true),
        (odd, 4097..20_000, false),
        (tail, 49_152..50_000, true),
    ] {
        let (buffer, import) = backend.import_host(&part).unwrap();
        assert!(import == Import::Copied || (may_share && shares));
        assert_eq!(buffer.len(), range.len());
        assert_eq!(read(&backend, &buffer), &bytes[range.clone()]);
        // It is a source of copies, and nobody writes it.
        let copy = backend.alloc(buffer.len()).unwrap();
        backend
            .queue()
            .copy(&buffer, 0, &copy, 0, buffer.len())
            .unwrap();
        let written = backend.queue().write(&buffer, 0, &[1]);
        assert!(matches!(written, Err(DeviceError::Foreign { .. })));
        // In flight the device holds on to the host's pages.
        drop((buffer, part));
        assert_eq!(read(&backend, &copy), &bytes[range]);
    }
    settle(&backend);
}

/// A file's pages, which no longer are when this is dropped.
struct Mapped(memmap2::Mmap);

impl Mapped {
    fn new(file: &File) -> Self {
        // SAFETY: nobody else knows the temporary file.
        Self(unsafe { memmap2::Mmap::map(file) }.unwrap())
    }
}

impl kovar_core::HostMemory for Mapped {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}
