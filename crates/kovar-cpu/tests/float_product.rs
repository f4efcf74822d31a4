//! Products of float weights against plain f64 sums, on every level of this machine.

mod common;

use common::{Random, nmse};
use kovar_core::DType;
use kovar_core::ops::dtypes::FACTORS;
use kovar_core::quant;
use kovar_cpu::buffer::AlignedBytes;
use kovar_cpu::pool::ThreadPool;
use kovar_cpu::product::{FloatDType, FloatMatrix, Kernels, ProductError, Rows, RowsMut};
use kovar_cpu::simd::SimdLevel;

#[test]
fn every_level_agrees_with_the_f64_product() {
    let mut random = Random(1);
    let pool = ThreadPool::new(2).unwrap();
    for dtype in FACTORS.iter().copied() {
        let float = FloatDType::try_from(dtype).unwrap();
        for (n, k) in [(1, 1), (5, 33), (37, 100), (130, 64)] {
            let w_stride = k + 3;
            // One byte before the rows, so that they are not aligned.
            let mut file = vec![0; 1 + float.bytes() * n * w_stride];
            quant::encode(dtype, &random.normals(n * w_stride), &mut file[1..]).unwrap();
            let mut decoded = vec![0.0; n * w_stride];
            quant::decode(dtype, &file[1..], &mut decoded).unwrap();
            let w = FloatMatrix::new(&file[1..], float, n, k, w_stride).unwrap();
            for m in [1, 2, 3, 5, 8, 17, 33] {
                let (x_stride, y_stride) = (k + 5, n + 2);
                let x = random.normals(m * x_stride);
                let expected: Vec<f64> = (0..m * n)
                    .map(|i| {
                        let (x, w) = (&x[i / n * x_stride..], &decoded[i % n * w_stride..]);
                        (0..k).map(|i| f64::from(x[i]) * f64::from(w[i])).sum()
                    })
                    .collect();
                for level in SimdLevel::available() {
                    let mut y = vec![f32::NAN; m * y_stride];
                    let bytes = FloatMatrix::scratch_bytes(pool.n_threads(), m);
                    let mut scratch = AlignedBytes::zeroed(bytes).unwrap();
                    w.multiply(
                        Kernels::for_level(level).unwrap(),
                        &pool,
                        Rows::new(&x, m, k, x_stride).unwrap(),
                        RowsMut::new(&mut y, m, n, y_stride).unwrap(),
                        scratch.as_mut_slice(),
                    )
                    .unwrap();
                    let rows = y.chunks_exact(y_stride);
                    assert!(rows.clone().all(|row| row[n..].iter().all(|v| v.is_nan())));
                    let error = nmse(rows.flat_map(|row| row[..n].to_vec()), &expected);
                    assert!(
                        error <= 1e-10,
                        "{level} {dtype} m={m} n={n} k={k}: {error:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_byte_of_an_8_bit_float_is_multiplied_as_its_number() {
    let pool = ThreadPool::new(1).unwrap();
    // Rows of one number among zeros, at every position of a vector and after the last whole
    // vector.
    let k = 37;
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        let mut file = vec![0; 256 * k];
        for (bits, row) in (0..=255).zip(file.chunks_exact_mut(k)) {
            row[usize::from(bits) % k] = bits;
        }
        let bytes: Vec<u8> = (0..=255).collect();
        let mut expected = vec![0.0; 256];
        quant::decode(dtype, &bytes, &mut expected).unwrap();
        let float = FloatDType::try_from(dtype).unwrap();
        let w = FloatMatrix::new(&file, float, 256, k, k).unwrap();
        for m in [1, 12] {
            let x = vec![1.0; m * k];
            for level in SimdLevel::available() {
                let mut y = vec![f32::NAN; m * 256];
                let bytes = FloatMatrix::scratch_bytes(pool.n_threads(), m);
                let mut scratch = AlignedBytes::zeroed(bytes).unwrap();
                w.multiply(
                    Kernels::for_level(level).unwrap(),
                    &pool,
                    Rows::new(&x, m, k, k).unwrap(),
                    RowsMut::new(&mut y, m, 256, 256).unwrap(),
                    scratch.as_mut_slice(),
                )
                .unwrap();
                for (i, actual) in y.iter().enumerate() {
                    let number = expected[i % 256];
                    let same = *actual == number || actual.is_nan() && number.is_nan();
                    assert!(same, "{level} {dtype} {:02x}: {actual}", i % 256);
                }
            }
        }
    }
}

#[test]
fn bad_views_and_dtypes_are_errors() {
    assert!(FloatMatrix::new(&[0; 39], FloatDType::F32, 2, 4, 6).is_err());
    assert!(FloatMatrix::new(&[0; 40], FloatDType::F32, 2, 4, 6).is_ok());
    assert_eq!(
        FloatDType::try_from(DType::Q4_0),
        Err(ProductError::NotFloat { dtype: DType::Q4_0 })
    );
}
