//! Bringing a mapped file of 1 GiB to the first GPU: `gpu0/load/<way>/<file>`.
//!
//! `upload` copies it through the queue's ring, `import` lets the device read the file's own
//! pages, `import_and_copy` has the device copy them into its own memory. The file is in the page
//! cache. `KOVAR_LOAD_MIB` changes the size.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::BytesCount;
use kovar_core::backend::{Backend, Import};
use kovar_core::{HostBytes, HostMemory};
use kovar_gpu::{GpuBackend, GpuOptions, Gpus};

struct Mapped(memmap2::Mmap);

impl HostMemory for Mapped {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn map(file: &File) -> HostBytes {
    // SAFETY: nobody else knows the temporary file.
    let map = unsafe { memmap2::Mmap::map(file) }.unwrap();
    HostBytes::new(Arc::new(Mapped(map)))
}

fn file() -> File {
    let mib = std::env::var("KOVAR_LOAD_MIB").ok();
    let mib: usize = mib.map_or(1024, |mib| mib.parse().unwrap());
    let mut file = tempfile::tempfile().unwrap();
    let chunk: Vec<u8> = (0..1u32 << 20).map(|i| (i * 7) as u8).collect();
    for _ in 0..mib {
        file.write_all(&chunk).unwrap();
    }
    file
}

fn main() {
    divan::main();
}

fn bench(bencher: Bencher<'_, '_>, load: impl Fn(&GpuBackend, &HostBytes)) {
    let backend = Gpus::new().open(GpuOptions::new()).unwrap();
    let file = file();
    let len = file.metadata().unwrap().len();
    let settle = || {
        let queue = backend.queue();
        queue.wait(queue.fence().unwrap()).unwrap();
    };
    // The ring, the kernels and the page cache are warm.
    load(&backend, &map(&file));
    settle();
    bencher.counter(BytesCount::new(len)).bench_local(|| {
        load(&backend, &map(&file));
        settle();
    });
}

#[divan::bench(name = "gpu0/load/upload/1GiB", sample_count = 5, sample_size = 1)]
fn upload(bencher: Bencher<'_, '_>) {
    bench(bencher, |backend, bytes| {
        let buffer = backend.alloc(bytes.len()).unwrap();
        backend.queue().write(&buffer, 0, bytes.as_slice()).unwrap();
    });
}

#[divan::bench(name = "gpu0/load/import/1GiB", sample_count = 5, sample_size = 1)]
fn import(bencher: Bencher<'_, '_>) {
    bench(bencher, |backend, bytes| {
        let (_, import) = backend.import_host(bytes).unwrap();
        if import == Import::Copied {
            println!("not shared: copied");
        }
    });
}

#[divan::bench(
    name = "gpu0/load/import_and_copy/1GiB",
    sample_count = 5,
    sample_size = 1
)]
fn import_and_copy(bencher: Bencher<'_, '_>) {
    bench(bencher, |backend, bytes| {
        let (source, _) = backend.import_host(bytes).unwrap();
        let buffer = backend.alloc(bytes.len()).unwrap();
        let queue = backend.queue();
        queue.copy(&source, 0, &buffer, 0, bytes.len()).unwrap();
    });
}
