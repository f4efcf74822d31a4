//! Products of quantised weights against plain f64 sums, on every level of this machine.

mod common;

use common::{Random, nmse};
use kovar_core::DType;
use kovar_core::quant::activation::{block_count, quantize_activations};
use kovar_core::quant::{self, ScaleField, scale_fields};
use kovar_cpu::buffer::AlignedBytes;
use kovar_cpu::pack::{PackedLayout, PackedMatrix};
use kovar_cpu::pool::ThreadPool;
use kovar_cpu::product::{Kernels, ProductError, QuantizedProduct, QuantizedRows, Rows, RowsMut};
use kovar_cpu::simd::SimdLevel;

/// Limit against the f64 product of the same quantised activations.
const LIMIT: f64 = 1e-7;

struct Weight {
    dtype: DType,
    n: usize,
    k: usize,
    decoded: Vec<f32>,
    layout: PackedLayout,
    packed: AlignedBytes,
}

impl Weight {
    fn random(dtype: DType, n: usize, k: usize, random: &mut Random) -> Self {
        let mut file = vec![0; dtype.bytes_for(n * k).unwrap()];
        quant::encode(dtype, &random.normals(n * k), &mut file).unwrap();
        Self::from_file(dtype, n, k, &file)
    }

    fn from_file(dtype: DType, n: usize, k: usize, file: &[u8]) -> Self {
        let mut decoded = vec![0.0; n * k];
        quant::decode(dtype, file, &mut decoded).unwrap();
        let layout = PackedLayout::new(dtype, n, k).unwrap();
        let mut packed = AlignedBytes::zeroed(layout.bytes()).unwrap();
        let pool = ThreadPool::new(1).unwrap();
        layout.pack(file, packed.as_mut_slice(), &pool).unwrap();
        Self {
            dtype,
            n,
            k,
            decoded,
            layout,
            packed,
        }
    }

    fn matrix(&self) -> PackedMatrix<'_> {
        PackedMatrix::new(self.layout, self.packed.as_slice()).unwrap()
    }

    /// The f64 product with the reference's quantised activations, `[m, n]`.
    fn reference(&self, x: &[f32], m: usize, stride: usize) -> Vec<f64> {
        let (n, k) = (self.n, self.k);
        let mut out = Vec::with_capacity(m * n);
        for t in 0..m {
            let (mut codes, blocks) = (vec![0; k], block_count(k));
            let (mut scales, mut sums) = (vec![0.0; blocks], vec![0; blocks]);
            let row = &x[t * stride..][..k];
            quantize_activations(row, &mut codes, &mut scales, &mut sums).unwrap();
            for r in 0..n {
                let w = &self.decoded[r * k..][..k];
                let dot = (0..k)
                    .map(|i| f64::from(scales[i / 32]) * f64::from(codes[i]) * f64::from(w[i]))
                    .sum();
                out.push(dot);
            }
        }
        out
    }
}

/// `y`. The gaps between its rows are poisoned, and checked to be unchanged.
fn multiply(
    kernels: &'static Kernels,
    pool: &ThreadPool,
    weights: &[&Weight],
    x: &[f32],
    m: usize,
    x_stride: usize,
) -> Vec<Vec<f32>> {
    let k = weights[0].k;
    let mut codes = vec![0; QuantizedRows::bytes(m, k)];
    let x = Rows::new(x, m, k, x_stride).unwrap();
    let x = QuantizedRows::quantize(kernels, pool, x, &mut codes).unwrap();
    let poison = f32::from_bits(0x7fc0_1234);
    let mut outs: Vec<Vec<f32>> = weights
        .iter()
        .map(|w| vec![poison; m * (w.n + 3)])
        .collect();
    let products: Vec<_> = weights
        .iter()
        .zip(&mut outs)
        .map(|(w, out)| QuantizedProduct {
            w: w.matrix(),
            y: RowsMut::new(out, m, w.n, w.n + 3).unwrap(),
        })
        .collect();
    let bytes = QuantizedProduct::scratch_bytes(pool.n_threads(), k);
    let mut scratch = AlignedBytes::zeroed(bytes).unwrap();
    scratch.as_mut_slice().fill(0xff);
    QuantizedProduct::run(pool, &x, &products, scratch.as_mut_slice()).unwrap();
    drop(products);
    for (out, w) in outs.iter_mut().zip(weights) {
        for row in out.chunks_exact(w.n + 3) {
            assert!(row[w.n..].iter().all(|v| v.to_bits() == poison.to_bits()));
        }
        let rows: Vec<f32> = out
            .chunks_exact(w.n + 3)
            .flat_map(|row| row[..w.n].to_vec())
            .collect();
        *out = rows;
    }
    outs
}

fn quantized_dtypes() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|d| d.is_quantized())
}

#[test]
fn every_level_agrees_with_the_f64_product() {
    let mut random = Random(1);
    let pool = ThreadPool::new(2).unwrap();
    for dtype in quantized_dtypes() {
        for (n, blocks) in [(1, 1), (16, 2), (37, 3), (75, 1)] {
            let k = blocks * dtype.block_len();
            let weight = Weight::random(dtype, n, k, &mut random);
            for m in [1, 2, 3, 5, 8, 17, 33] {
                let stride = k + 7;
                let x = random.normals(m * stride);
                let expected = weight.reference(&x, m, stride);
                for level in SimdLevel::available() {
                    let kernels = Kernels::for_level(level).unwrap();
                    let y = multiply(kernels, &pool, &[&weight], &x, m, stride).remove(0);
                    let error = nmse(y, &expected);
                    assert!(
                        error <= LIMIT,
                        "{level} {dtype} m={m} n={n} k={k}: {error:e}"
                    );
                }
            }
        }
    }
}

/// Any bytes are a weight: extreme codes must not saturate or overflow a kernel's integers.
#[test]
fn extreme_codes_are_exact_on_every_level() {
    let pool = ThreadPool::new(1).unwrap();
    for dtype in quantized_dtypes() {
        let (n, k) = (17, dtype.block_len());
        let blocks = dtype.bytes_for(n * k).unwrap() / dtype.block_bytes();
        for fill in [0x00, 0x80, 0xff, 0x7f, 0x08] {
            let mut file = vec![fill; blocks * dtype.block_bytes()];
            for block in file.chunks_exact_mut(dtype.block_bytes()) {
                for &field in scale_fields(dtype) {
                    match field {
                        ScaleField::F16(at) => {
                            block[at..at + 2].copy_from_slice(&0x3c00u16.to_le_bytes());
                        }
                        ScaleField::E8M0(at) => block[at] = 127,
                    }
                }
            }
            let weight = Weight::from_file(dtype, n, k, &file);
            for sign in [1.0, -1.0] {
                for m in [1, 7] {
                    let x: Vec<f32> = vec![127.0 * sign; m * k];
                    let expected = weight.reference(&x, m, k);
                    for level in SimdLevel::available() {
                        let kernels = Kernels::for_level(level).unwrap();
                        let y = multiply(kernels, &pool, &[&weight], &x, m, k).remove(0);
                        for (y, e) in y.iter().zip(&expected) {
                            let tolerance = 1e-5 * e.abs().max(127.0);
                            let close = (f64::from(*y) - e).abs() <= tolerance;
                            assert!(close, "{level} {dtype} {fill:x} m={m}: {y} for {e}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut random = Random(2);
    let pools = [1, 2, 3].map(|n| ThreadPool::new(n).unwrap());
    for dtype in quantized_dtypes() {
        let (n, k) = (200, 2 * 256);
        let weight = Weight::random(dtype, n, k, &mut random);
        for m in [1, 4, 70] {
            let x = random.normals(m * k);
            for level in SimdLevel::available() {
                let kernels = Kernels::for_level(level).unwrap();
                let [one, two, three] = pools
                    .each_ref()
                    .map(|pool| multiply(kernels, pool, &[&weight], &x, m, k));
                assert_eq!(one, two, "{level} {dtype} m={m}");
                assert_eq!(one, three, "{level} {dtype} m={m}");
            }
        }
    }
}

#[test]
fn products_that_share_activations_equal_products_alone() {
    let mut random = Random(3);
    let pool = ThreadPool::new(2).unwrap();
    let k = 256;
    let weights = [(DType::Q4K, 64), (DType::Q6K, 19), (DType::Q8_0, 33)]
        .map(|(dtype, n)| Weight::random(dtype, n, k, &mut random));
    for m in [1, 9] {
        let x = random.normals(m * k);
        for level in SimdLevel::available() {
            let kernels = Kernels::for_level(level).unwrap();
            let together = multiply(kernels, &pool, &weights.each_ref(), &x, m, k);
            for (weight, together) in weights.iter().zip(together) {
                let alone = multiply(kernels, &pool, &[weight], &x, m, k).remove(0);
                assert_eq!(together, alone, "{level} {} m={m}", weight.dtype);
            }
        }
    }
}

#[test]
fn non_finite_activations_make_non_finite_products() {
    let mut random = Random(4);
    let pool = ThreadPool::new(1).unwrap();
    let (n, k) = (20, 64);
    let weight = Weight::random(DType::Q4_1, n, k, &mut random);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for m in [1, 6] {
            let mut x = random.normals(m * k);
            x[40] = bad;
            for level in SimdLevel::available() {
                let kernels = Kernels::for_level(level).unwrap();
                let y = multiply(kernels, &pool, &[&weight], &x, m, k).remove(0);
                assert!(y[..n].iter().all(|v| v.is_nan()), "{level} {bad}");
                assert!(y[n..].iter().all(|v| v.is_finite()), "{level} {bad}");
            }
        }
    }
}

#[test]
fn wrong_shapes_and_small_scratch_are_errors() {
    let mut random = Random(5);
    let pool = ThreadPool::new(2).unwrap();
    let kernels = Kernels::for_level(SimdLevel::Portable).unwrap();
    let weight = Weight::random(DType::Q4_0, 20, 64, &mut random);
    let x = random.normals(2 * 64);
    let mut codes = vec![0; QuantizedRows::bytes(2, 64)];
    let rows = Rows::new(&x, 2, 64, 64).unwrap();
    let few = codes.len() - 1;
    assert!(matches!(
        QuantizedRows::quantize(kernels, &pool, rows, &mut codes[..few]),
        Err(ProductError::Scratch { .. })
    ));
    let short = Rows::new(&x, 2, 63, 64).unwrap();
    assert!(matches!(
        QuantizedRows::quantize(kernels, &pool, short, &mut codes),
        Err(ProductError::PartialBlock { k: 63 })
    ));
    let rows = QuantizedRows::quantize(kernels, &pool, rows, &mut codes).unwrap();
    let mut y = vec![0.0; 2 * 20];
    for (m, n, message) in [(2, 19, "columns of y"), (1, 20, "rows of y")] {
        let y = RowsMut::new(&mut y, m, n, 20).unwrap();
        let product = QuantizedProduct {
            w: weight.matrix(),
            y,
        };
        let error = QuantizedProduct::run(&pool, &rows, &[product], &mut []).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let product = QuantizedProduct {
        w: weight.matrix(),
        y: RowsMut::new(&mut y, 2, 20, 20).unwrap(),
    };
    assert!(matches!(
        QuantizedProduct::run(&pool, &rows, &[product], &mut []),
        Err(ProductError::Scratch { .. })
    ));
}
