//! `cpu/<op>/<dtype>/<shape>`: products at the shapes of SmolLM2-135M and Llama-3.2-1B on all
//! cores.
//!
//! Small matrices would stay in a cache when they are multiplied repeatedly, so a product of one
//! token runs over copies of its weight that fill 64 MiB. Such a product is bound by the read
//! bandwidth of memory, which is measured in the same run.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use kovar_core::DType;
use kovar_core::ops::dtypes::QUANTIZED;
use kovar_core::quant::{self, ScaleField, scale_fields};
use kovar_cpu::bandwidth::measure_read_bandwidth;
use kovar_cpu::buffer::AlignedBytes;
use kovar_cpu::pack::{PackedLayout, PackedMatrix};
use kovar_cpu::pool::ThreadPool;
use kovar_cpu::product::{
    FloatDType, FloatMatrix, Kernels, QuantizedProduct, QuantizedRows, Rows, RowsMut,
};

const WEIGHT_BYTES: usize = 64 << 20;

fn pool() -> ThreadPool {
    let n_threads = std::env::var("KOVAR_THREADS")
        .ok()
        .and_then(|n| n.parse().ok());
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    ThreadPool::new(n_threads.unwrap_or(cores)).unwrap()
}

fn kernels() -> &'static Kernels {
    match std::env::var("KOVAR_SIMD") {
        Ok(name) => Kernels::for_level(name.parse().unwrap()).unwrap(),
        Err(_) => Kernels::detect(),
    }
}

fn main() {
    let pool = pool();
    let rate = measure_read_bandwidth(&pool).unwrap();
    let (threads, level) = (pool.n_threads(), kernels().level());
    println!(
        "{threads} threads, {level}, memory reads {:.1} GB/s",
        rate / 1e9
    );
    drop(pool);
    divan::main();
}

#[derive(Clone, Copy, Debug)]
struct Case(DType, usize, usize);

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/n{}k{}", self.0, self.1, self.2)
    }
}

const SHAPES: [(usize, usize); 6] = [
    (576, 576),
    (1536, 576),
    (576, 1536),
    (2048, 2048),
    (8192, 2048),
    (2048, 8192),
];

fn cases(dtypes: &'static [DType]) -> impl Iterator<Item = Case> {
    dtypes.iter().flat_map(|&dtype| {
        let whole = move |k: usize| k.is_multiple_of(dtype.block_len());
        let shapes = SHAPES.iter().filter(move |shape| whole(shape.1));
        shapes.map(move |&(n, k)| Case(dtype, n, k))
    })
}

fn quantized() -> impl Iterator<Item = Case> {
    cases(QUANTIZED)
}

fn floats() -> impl Iterator<Item = Case> {
    cases(&[DType::F32, DType::F16, DType::BF16])
}

fn random_bytes(len: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Blocks of random bits. Scales that could be subnormal or infinite are replaced by one normal
/// number: arithmetic on such numbers is slow, and models have none.
fn random_blocks(dtype: DType, elements: usize) -> Vec<u8> {
    let mut file = random_bytes(dtype.bytes_for(elements).unwrap());
    for &field in scale_fields(dtype) {
        let ScaleField::E8M0(at) = field else {
            continue;
        };
        for block in file.chunks_exact_mut(dtype.block_bytes()) {
            block[at] = 120;
        }
    }
    file
}

fn random_rows(len: usize) -> Vec<f32> {
    random_bytes(len)
        .into_iter()
        .map(|b| f32::from(b) / 128.0 - 1.0)
        .collect()
}

fn bench_quantized(bencher: Bencher<'_, '_>, case: Case, m: usize) {
    let Case(dtype, n, k) = case;
    let (pool, kernels) = (pool(), kernels());
    let layout = PackedLayout::new(dtype, n, k).unwrap();
    let file = random_blocks(dtype, n * k);
    let copies = if m == 1 {
        WEIGHT_BYTES.div_ceil(layout.bytes())
    } else {
        1
    };
    let mut packed = AlignedBytes::zeroed(copies * layout.bytes()).unwrap();
    for copy in packed.as_mut_slice().chunks_exact_mut(layout.bytes()) {
        layout.pack(&file, copy, &pool).unwrap();
    }
    let x = random_rows(m * k);
    let mut y = vec![0.0; m * n];
    let mut codes = vec![0; QuantizedRows::bytes(m, k)];
    let bytes = QuantizedProduct::scratch_bytes(pool.n_threads(), k);
    let mut scratch = AlignedBytes::zeroed(bytes).unwrap();
    let mut run = || {
        for copy in packed.as_slice().chunks_exact(layout.bytes()) {
            let rows = Rows::new(&x, m, k, k).unwrap();
            let x = QuantizedRows::quantize(kernels, &pool, rows, &mut codes).unwrap();
            let product = QuantizedProduct {
                w: PackedMatrix::new(layout, copy).unwrap(),
                y: RowsMut::new(&mut y, m, n, n).unwrap(),
            };
            QuantizedProduct::run(&pool, &x, &[product], scratch.as_mut_slice()).unwrap();
        }
    };
    if m == 1 {
        bencher
            .counter(BytesCount::new(packed.len()))
            .bench_local(&mut run);
    } else {
        bencher
            .counter(ItemsCount::new(2 * m * n * k))
            .bench_local(&mut run);
    }
}

fn bench_float(bencher: Bencher<'_, '_>, case: Case, m: usize) {
    let Case(dtype, n, k) = case;
    let (pool, kernels) = (pool(), kernels());
    let size = dtype.bytes_for(n * k).unwrap();
    let copies = if m == 1 {
        WEIGHT_BYTES.div_ceil(size)
    } else {
        1
    };
    let mut file = AlignedBytes::zeroed(copies * size).unwrap();
    for copy in file.as_mut_slice().chunks_exact_mut(size) {
        quant::encode(dtype, &random_rows(n * k), copy).unwrap();
    }
    let x = random_rows(m * k);
    let mut y = vec![0.0; m * n];
    let bytes = FloatMatrix::scratch_bytes(pool.n_threads(), m);
    let mut scratch = AlignedBytes::zeroed(bytes).unwrap();
    let dtype = FloatDType::try_from(dtype).unwrap();
    let mut run = || {
        for copy in file.as_slice().chunks_exact(size) {
            let w = FloatMatrix::new(copy, dtype, n, k, k).unwrap();
            let x = Rows::new(&x, m, k, k).unwrap();
            let y = RowsMut::new(&mut y, m, n, n).unwrap();
            w.multiply(kernels, &pool, x, y, scratch.as_mut_slice())
                .unwrap();
        }
    };
    if m == 1 {
        bencher
            .counter(BytesCount::new(file.len()))
            .bench_local(&mut run);
    } else {
        bencher
            .counter(ItemsCount::new(2 * m * n * k))
            .bench_local(&mut run);
    }
}

#[divan::bench_group(name = "cpu", sample_count = 20, sample_size = 1)]
mod cpu {
    use super::*;

    #[divan::bench(args = quantized(), name = "matvec")]
    fn matvec(bencher: Bencher<'_, '_>, case: Case) {
        bench_quantized(bencher, case, 1);
    }

    #[divan::bench(args = quantized(), name = "matmul_m512")]
    fn matmul_m512(bencher: Bencher<'_, '_>, case: Case) {
        bench_quantized(bencher, case, 512);
    }

    #[divan::bench(args = floats(), name = "matvec_float")]
    fn matvec_float(bencher: Bencher<'_, '_>, case: Case) {
        bench_float(bencher, case, 1);
    }

    #[divan::bench(args = floats(), name = "matmul_float_m512")]
    fn matmul_float_m512(bencher: Bencher<'_, '_>, case: Case) {
        bench_float(bencher, case, 512);
    }

    /// An empty job: the cost of distributing work by the pool.
    #[divan::bench(name = "pool_dispatch")]
    fn pool_dispatch(bencher: Bencher<'_, '_>) {
        let pool = pool();
        bencher.counter(ItemsCount::new(1000usize)).bench_local(|| {
            for _ in 0..1000 {
                pool.run(2, &|chunk, _| {
                    divan::black_box(chunk);
                });
            }
        });
    }

    /// Preparing a weight, in bytes of the file.
    #[divan::bench(args = quantized().filter(|c| c.1 == 8192), name = "pack")]
    fn pack(bencher: Bencher<'_, '_>, case: Case) {
        let Case(dtype, n, k) = case;
        let pool = pool();
        let layout = PackedLayout::new(dtype, n, k).unwrap();
        let file = random_blocks(dtype, n * k);
        let mut packed = AlignedBytes::zeroed(layout.bytes()).unwrap();
        bencher
            .counter(BytesCount::new(file.len()))
            .bench_local(|| layout.pack(&file, packed.as_mut_slice(), &pool).unwrap());
    }
}
