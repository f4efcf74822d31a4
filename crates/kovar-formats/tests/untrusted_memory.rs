//! Damaged files never panic and never take memory out of proportion to their size.
//!
//! One test in this binary, so that the counting allocator counts nothing else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kovar_core::{DType, HostBytes};
use kovar_formats::gguf::{Array, Gguf, GgufWriter, StringArray};
use kovar_formats::safetensors::SafeTensors;

/// The system's allocator, counting the bytes in use and their peak.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peak bytes that `parse` takes beyond those in use before, and whether the file was valid.
fn peak_of(file: &HostBytes, parse: fn(HostBytes) -> bool, what: &str) -> (usize, bool) {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let file = file.clone();
    let valid = catch_unwind(AssertUnwindSafe(|| parse(file)));
    let peak = PEAK.load(Ordering::Relaxed) - before;
    (peak, valid.unwrap_or_else(|_| panic!("{what} panics")))
}

/// Reads the file and every byte and value that it names; false if it is damaged.
fn parse_gguf(file: HostBytes) -> bool {
    match Gguf::from_bytes(file) {
        Ok(file) => {
            for tensor in file.tensors() {
                let bytes = file.bytes(tensor);
                assert_eq!(
                    tensor.dtype().bytes_for(tensor.elements()),
                    Some(bytes.len())
                );
                assert_eq!(bytes.as_slice().len(), bytes.len());
            }
            for (key, value) in file.metadata().iter() {
                assert_eq!(
                    file.metadata().get(key).map(|v| v.kind()),
                    Some(value.kind())
                );
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

fn parse_safetensors(file: HostBytes) -> bool {
    match SafeTensors::from_bytes(file) {
        Ok(file) => {
            for tensor in file.tensors() {
                let bytes = file.bytes(tensor);
                assert_eq!(tensor.dtype().bytes() * tensor.elements(), bytes.len());
                assert_eq!(bytes.as_slice().len(), bytes.len());
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

fn small_gguf() -> Vec<u8> {
    let mut writer = GgufWriter::with_alignment(64).unwrap();
    let tokens: StringArray = (0..40).map(|i| format!("token {i} é")).collect();
    let nested = Array::Array(vec![vec![1u8, 2].into(), vec![true, false].into()]);
    writer
        .metadata("general.architecture", "llama")
        .unwrap()
        .metadata("u8", 1u8)
        .unwrap()
        .metadata("i64", -5i64)
        .unwrap()
        .metadata("f64", 0.5f64)
        .unwrap()
        .metadata("flag", true)
        .unwrap()
        .metadata("tokenizer.ggml.tokens", tokens)
        .unwrap()
        .metadata("tokenizer.ggml.scores", vec![0.25f32; 40])
        .unwrap()
        .metadata("nested", nested)
        .unwrap()
        .tensor("norm", DType::F32, &[32], vec![1; 128])
        .unwrap()
        .tensor("quantised", DType::Q8_0, &[3, 64], vec![2; 3 * 68])
        .unwrap()
        .tensor("half", DType::F16, &[2, 2, 5], vec![3; 40])
        .unwrap();
    writer.to_bytes().unwrap()
}

fn small_safetensors() -> Vec<u8> {
    let header = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"ids":{"dtype":"I64","shape":[2],"data_offsets":[24,40]},"none":{"dtype":"F16","shape":[0,4],"data_offsets":[40,40]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([5; 40]);
    bytes
}

fn check_every_damage(whole: &[u8], header_len: usize, parse: fn(HostBytes) -> bool) {
    let limit = 4 * whole.len() + 64 * 1024;
    let check = |bytes: Vec<u8>, what: &str| {
        let file = HostBytes::new(Arc::new(bytes));
        let (peak, valid) = peak_of(&file, parse, what);
        assert!(
            peak <= limit,
            "{what} takes {peak} bytes, the limit is {limit}"
        );
        valid
    };
    assert!(check(whole.to_vec(), "the whole file"));
    for len in (0..header_len).chain((header_len..whole.len()).step_by(64)) {
        let what = format!("the file cut to {len} bytes");
        assert!(!check(whole[..len].to_vec(), &what), "{what} reads");
    }
    let mut valid = 0;
    for at in 0..header_len {
        for flip in [0x01, 0x02, 0x10, 0x40, 0x80, 0x7f, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[at] ^= flip;
            valid += usize::from(check(bytes, &format!("byte {at} flipped by {flip:#x}")));
        }
    }
    // Flips inside names, texts and numbers leave valid files; the rest do not.
    assert!(valid > 0 && valid < header_len * 7);
}

/// Files whose parsed form is as large as it can be for their size.
fn swollen_files() -> Vec<(&'static str, Vec<u8>)> {
    const SIZE: usize = 1 << 20;
    let header = |tensors: u64, entries: u64| {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(tensors.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes
    };
    let array_of = |kind: u32, min_bytes: usize| {
        let mut bytes = header(0, 1);
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(b"k");
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        let count = (SIZE - bytes.len() - 8) / min_bytes;
        bytes.extend((count as u64).to_le_bytes());
        bytes.resize(SIZE, 0);
        bytes
    };
    let mut many_entries = header(0, 0);
    let mut count = 0u64;
    while many_entries.len() < SIZE {
        let key = format!("{count:x}");
        many_entries.extend((key.len() as u64).to_le_bytes());
        many_entries.extend(key.as_bytes());
        many_entries.extend(0u32.to_le_bytes());
        many_entries.push(1);
        count += 1;
    }
    many_entries[16..24].copy_from_slice(&count.to_le_bytes());
    let mut most_entries_then_nothing = header(0, ((SIZE - 24) / 13) as u64);
    most_entries_then_nothing.resize(SIZE, 0);
    let mut most_tensors = header(((SIZE - 24) / 24) as u64, 0);
    most_tensors.resize(SIZE, 0);
    vec![
        ("bytes", array_of(0, 1)),
        ("booleans", array_of(7, 1)),
        ("strings", array_of(8, 8)),
        ("arrays", array_of(9, 12)),
        ("many entries", many_entries),
        ("a count of entries that lies", most_entries_then_nothing),
        ("many tensors", most_tensors),
    ]
}

#[test]
fn damaged_files_give_errors_within_the_size_class_of_the_file() {
    let gguf = small_gguf();
    let header_len = Gguf::from_bytes(HostBytes::new(Arc::new(gguf.clone())))
        .unwrap()
        .tensor("norm")
        .unwrap()
        .range()
        .start;
    check_every_damage(&gguf, header_len, parse_gguf);

    let safetensors = small_safetensors();
    check_every_damage(&safetensors, safetensors.len() - 40, parse_safetensors);

    for (what, bytes) in swollen_files() {
        let limit = 12 * bytes.len() + 64 * 1024;
        let file = HostBytes::new(Arc::new(bytes));
        let (peak, _) = peak_of(&file, parse_gguf, what);
        assert!(peak <= limit, "{what}: {peak} bytes, the limit is {limit}");
    }
}
