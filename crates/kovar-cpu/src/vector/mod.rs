//! Vector kernels on f32 rows, one table of function pointers for each SIMD level.
//!
//! A body is written once over [`Lanes`](lanes::Lanes). The table's macro instantiates it for each
//! level, compiled with the level's target features.

mod activation;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod codec;
mod elementwise;
mod integer;
pub(crate) mod lanes;
mod moments;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod rotate;
mod softmax;
mod tile;
mod wkv7;

pub(crate) use codec::Rows;
pub(crate) use integer::MAX_DOT;
pub(crate) use softmax::OnlineSoftmax;
pub(crate) use tile::{Beta, Tile};
pub(crate) use wkv7::Wkv7Token;

use crate::simd::SimdLevel;

macro_rules! level {
    ($module:ident, $lanes:ty, $attribute:meta,
     $($body:ident::$name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        mod $module {
            $(
                /// # Safety
                /// As the body of the same name, on a processor of this level.
                #[$attribute]
                pub(super) unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: by this function's contract.
                    unsafe { super::$body::$name::<$lanes>($($arg),*) }
                }
            )*

            pub(super) static TABLE: super::Kernels = super::Kernels { $($name),* };
        }
    };
}

macro_rules! kernels {
    ($($(#[$doc:meta])* fn $body:ident::$name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        /// The kernels of one level. The safety contract of each is that of its body. The machine
        /// has the level: [`kernels`] returns no other table.
        #[derive(Debug)]
        pub(crate) struct Kernels {
            $($(#[$doc])* pub(crate) $name: unsafe fn($($ty),*) $(-> $ret)?,)*
        }

        level!(portable_table, crate::vector::portable::Plain, inline(never),
            $($body::$name($($arg: $ty),*) $(-> $ret)?;)*);
        #[cfg(target_arch = "x86_64")]
        level!(avx2_table, crate::vector::avx2::Avx2,
            target_feature(enable = "avx2,fma,f16c"),
            $($body::$name($($arg: $ty),*) $(-> $ret)?;)*);
        #[cfg(target_arch = "x86_64")]
        level!(avx512_table, crate::vector::avx512::Avx512,
            target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"),
            $($body::$name($($arg: $ty),*) $(-> $ret)?;)*);
        #[cfg(target_arch = "aarch64")]
        level!(neon_table, crate::vector::neon::Neon, target_feature(enable = "neon"),
            $($body::$name($($arg: $ty),*) $(-> $ret)?;)*);
    };
}

kernels! {
    /// `y = |x|`
    fn activation::abs(x: *const f32, y: *mut f32, n: usize);
    /// `y = e^x`
    fn activation::exp(x: *const f32, y: *mut f32, n: usize);
    /// `y = x * Phi(x)`
    fn activation::gelu(x: *const f32, y: *mut f32, n: usize);
    /// `y = x * sigmoid(1.702 x)`
    fn activation::gelu_quick(x: *const f32, y: *mut f32, n: usize);
    /// `y = gelu(x)`, approximated with `tanh`
    fn activation::gelu_tanh(x: *const f32, y: *mut f32, n: usize);
    /// `y = -x`
    fn activation::neg(x: *const f32, y: *mut f32, n: usize);
    /// `y = max(x, 0)`
    fn activation::relu(x: *const f32, y: *mut f32, n: usize);
    /// `y = max(x, 0)^2`
    fn activation::relu_sqr(x: *const f32, y: *mut f32, n: usize);
    /// `y = sigmoid(x)`
    fn activation::sigmoid(x: *const f32, y: *mut f32, n: usize);
    /// `y = x * sigmoid(x)`
    fn activation::silu(x: *const f32, y: *mut f32, n: usize);
    /// `y = x^2`
    fn activation::sqr(x: *const f32, y: *mut f32, n: usize);
    /// `y = tanh(x)`
    fn activation::tanh(x: *const f32, y: *mut f32, n: usize);
    /// `y = gelu(gate) * up`
    fn activation::geglu(gate: *const f32, up: *const f32, y: *mut f32, n: usize);
    /// `y = relu(gate) * up`
    fn activation::reglu(gate: *const f32, up: *const f32, y: *mut f32, n: usize);
    /// `y = silu(gate) * up`
    fn activation::swiglu(gate: *const f32, up: *const f32, y: *mut f32, n: usize);
    /// Rows of F16 to f32.
    fn codec::load_f16(rows: &crate::vector::Rows);
    /// Rows of BF16 to f32.
    fn codec::load_bf16(rows: &crate::vector::Rows);
    /// Rows of F8_E4M3 to f32.
    fn codec::load_f8_e4m3(rows: &crate::vector::Rows);
    /// Rows of F8_E5M2 to f32.
    fn codec::load_f8_e5m2(rows: &crate::vector::Rows);
    /// Rows of whole Q8_0 blocks to f32.
    fn codec::load_q8_0(rows: &crate::vector::Rows);
    /// `dst[i] = src[i]` to F16, to nearest with ties to even.
    fn codec::store_f16(src: *const f32, n: usize, dst: *mut u8);
    /// `dst[i] = src[i]` to BF16, to nearest with ties to even.
    fn codec::store_bf16(src: *const f32, n: usize, dst: *mut u8);
    /// `dst[j * pitch + i] = src[i * stride + j]` for `i < rows`, `j < n`.
    fn codec::transpose(src: *const f32, stride: usize, rows: usize, n: usize, dst: *mut f32, pitch: usize);
    /// `y = a + b`
    fn elementwise::add(a: *const f32, b: *const f32, y: *mut f32, n: usize);
    /// `y = a - b`
    fn elementwise::sub(a: *const f32, b: *const f32, y: *mut f32, n: usize);
    /// `y = a / b`
    fn elementwise::div(a: *const f32, b: *const f32, y: *mut f32, n: usize);
    /// `y = a * b`
    fn elementwise::mul(a: *const f32, b: *const f32, y: *mut f32, n: usize);
    /// `y = factor * x`
    fn elementwise::scale(x: *const f32, y: *mut f32, n: usize, factor: f32);
    /// `y = factor * x * w`
    fn elementwise::scale_mul(x: *const f32, w: *const f32, y: *mut f32, n: usize, factor: f32);
    /// The greatest of `x`: NaN if one is NaN, minus infinity without elements.
    fn elementwise::greatest(x: *const f32, n: usize) -> f32;
    /// The sum of `x`.
    fn elementwise::sum(x: *const f32, n: usize) -> f32;
    /// The sum of `x^2`.
    fn elementwise::sum_squares(x: *const f32, n: usize) -> f32;
    /// The sums of `x - center` and of `(x - center)^2`.
    fn moments::row_deviations(x: *const f32, n: usize, center: f32) -> (f32, f32);
    /// `y = (x - center) * factor + shift`
    fn moments::center_scale(x: *const f32, y: *mut f32, n: usize, center: f32, factor: f32, shift: f32);
    /// The largest magnitude; NaN if one is NaN.
    fn integer::largest(x: *const f32, n: usize) -> f32;
    /// `y = round(x / scale)`, halves to even, clamped to -127..127; 0 for a NaN.
    fn integer::quantize_i8(x: *const f32, n: usize, scale: f32, y: *mut i8);
    /// I8 to f32.
    fn integer::load_i8(src: *const i8, n: usize, dst: *mut f32);
    /// The sum of `a * b` over at most [`MAX_DOT`] elements.
    fn integer::dot_i8(a: *const i8, b: *const i8, n: usize) -> i32;
    /// The sum of `a * x`.
    fn integer::dot_i8_f32(a: *const i8, x: *const f32, n: usize) -> f32;
    /// Rotates the pairs of neighbouring elements of a head.
    fn rotate::rotate_normal(x: *const f32, table: *const f32, y: *mut f32, pairs: usize);
    /// Rotates the pairs of a head whose elements are `pairs` apart.
    fn rotate::rotate_neox(x: *const f32, table: *const f32, y: *mut f32, pairs: usize);
    /// Multiplies the pairs of neighbouring elements of a head by 2 x 2 matrices.
    fn rotate::apply_normal(x: *const f32, table: *const f32, y: *mut f32, pairs: usize);
    /// Multiplies the pairs of a head whose elements are `pairs` apart by 2 x 2 matrices.
    fn rotate::apply_neox(x: *const f32, table: *const f32, y: *mut f32, pairs: usize);
    /// `y = cap(scale * x) + mask`; returns the greatest element that is not NaN.
    fn softmax::scores(x: *const f32, mask: *const f32, y: *mut f32, n: usize, scale: f32, cap: f32) -> f32;
    /// `x = exp(x - max)`; returns its sum.
    fn softmax::exp_sum(x: *mut f32, n: usize, max: f32) -> f32;
    /// The update of an online softmax by a block of scores, along its columns.
    fn softmax::online_softmax(call: &crate::vector::OnlineSoftmax);
    /// A block of a product of f32 matrices.
    fn tile::product(call: &crate::vector::Tile);
    /// `y[j] = sum_i a[i] * b[j * stride + i]` for `j < rows`.
    fn tile::dots(a: *const f32, b: *const f32, stride: usize, n: usize, rows: usize, y: *mut f32);
    /// A token of the state recurrence of RWKV-7.
    fn wkv7::wkv7_token(token: &crate::vector::Wkv7Token);
}

/// The table of a level; the portable one if the machine lacks the level.
pub(crate) fn kernels(level: SimdLevel) -> &'static Kernels {
    if !level.is_available() {
        return &portable_table::TABLE;
    }
    match level {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => &avx2_table::TABLE,
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512Vnni => &avx512_table::TABLE,
        #[cfg(target_arch = "aarch64")]
        SimdLevel::Neon => &neon_table::TABLE,
        _ => &portable_table::TABLE,
    }
}

/// Lanes of a level's vectors.
pub(crate) fn lanes(level: SimdLevel) -> usize {
    match level {
        SimdLevel::Avx512Vnni => 16,
        SimdLevel::Neon => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels() -> impl Iterator<Item = (SimdLevel, &'static Kernels)> {
        SimdLevel::available()
            .into_iter()
            .map(|level| (level, kernels(level)))
    }

    #[test]
    fn exponentials_are_accurate_and_saturate() {
        for (level, kernels) in levels() {
            let mut state = 1u64;
            let x: Vec<f32> = (0..20_000)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                    (state >> 40) as f32 / (1 << 24) as f32 * 175.0 - 87.0
                })
                .collect();
            let mut y = x.clone();
            // SAFETY: `y` has the length given.
            unsafe { (kernels.exp_sum)(y.as_mut_ptr(), y.len(), 0.0) };
            for (x, y) in x.iter().zip(&y) {
                let exact = f64::from(*x).exp();
                let error = (f64::from(*y) / exact - 1.0).abs();
                assert!(error < 2e-7, "{level}: exp({x}) is {y}, off by {error:e}");
            }
            let mut edges = [
                f32::NEG_INFINITY,
                -200.0,
                0.0,
                100.0,
                f32::INFINITY,
                f32::NAN,
            ];
            // SAFETY: `edges` has the length given.
            unsafe { (kernels.exp_sum)(edges.as_mut_ptr(), edges.len(), 0.0) };
            assert_eq!(edges[..5], [0.0, 0.0, 1.0, f32::INFINITY, f32::INFINITY]);
            assert!(edges[5].is_nan(), "{level}");
        }
    }

    #[test]
    fn products_of_every_shape_equal_the_definition() {
        for (level, kernels) in levels() {
            let lanes = lanes(level);
            for (m, vectors, k) in [
                (1, 1, 1),
                (2, 2, 3),
                (3, 3, 64),
                (7, 4, 5),
                (9, 6, 2),
                (17, 5, 33),
            ] {
                let n = vectors * lanes;
                let a: Vec<f32> = (0..m * k).map(|i| (i * 7 % 13) as f32 - 6.0).collect();
                let b: Vec<f32> = (0..k * n).map(|i| (i * 5 % 11) as f32 - 5.0).collect();
                let factors: Vec<f32> = (0..n).map(|j| (j % 3) as f32).collect();
                let betas = [Beta::Zero, Beta::One, Beta::Columns(factors.as_ptr())];
                for (which, beta) in betas.into_iter().enumerate() {
                    let mut c = vec![2.0f32; m * n];
                    // SAFETY: the matrices have the sizes stated.
                    unsafe {
                        (kernels.product)(&Tile {
                            m,
                            n,
                            k,
                            a: a.as_ptr(),
                            a_row: 1,
                            a_column: m,
                            b: b.as_ptr(),
                            b_row: n,
                            c: c.as_mut_ptr(),
                            c_row: n,
                            beta,
                        });
                    }
                    for i in 0..m {
                        for j in 0..n {
                            let sum: f32 = (0..k).map(|l| a[l * m + i] * b[l * n + j]).sum();
                            let before = [0.0, 2.0, 2.0 * factors[j]][which];
                            assert_eq!(c[i * n + j], before + sum, "{level} {m} {n} {k}");
                        }
                    }
                }
            }
        }
    }

    fn row(src: &[u8], n: usize, dst: &mut [f32]) -> Rows {
        Rows {
            rows: 1,
            n,
            src: src.as_ptr(),
            stride: 0,
            dst: dst.as_mut_ptr(),
            pitch: 0,
        }
    }

    #[test]
    fn the_greatest_is_found_at_every_length_and_nan_is_above_all() {
        for (level, kernels) in levels() {
            for n in 0..40 {
                let mut x: Vec<f32> = (0..n).map(|i| (i * 29 % 41) as f32 - 50.0).collect();
                let expected = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                // SAFETY: `x` has the length given.
                let greatest = unsafe { (kernels.greatest)(x.as_ptr(), n) };
                assert_eq!(greatest, expected, "{level} {n}");
                for at in 0..n {
                    let value = std::mem::replace(&mut x[at], f32::NAN);
                    // SAFETY: as above.
                    let greatest = unsafe { (kernels.greatest)(x.as_ptr(), n) };
                    assert!(greatest.is_nan(), "{level} {n} {at}");
                    x[at] = value;
                }
            }
        }
    }

    #[test]
    fn transposing_swaps_the_indices() {
        for (level, kernels) in levels() {
            for (rows, n) in [(1, 1), (4, 4), (7, 9), (8, 64), (3, 5), (12, 2)] {
                let (stride, pitch) = (n + 3, rows + 1);
                let src: Vec<f32> = (0..rows * stride).map(|i| i as f32).collect();
                let mut dst = vec![-1.0; n * pitch];
                // SAFETY: the matrices have the sizes stated.
                unsafe {
                    (kernels.transpose)(src.as_ptr(), stride, rows, n, dst.as_mut_ptr(), pitch);
                }
                for j in 0..n {
                    for i in 0..rows {
                        assert_eq!(dst[j * pitch + i], src[i * stride + j], "{level}");
                    }
                    assert_eq!(dst[j * pitch + rows], -1.0, "{level}");
                }
            }
        }
    }

    #[test]
    fn rows_of_every_length_convert_and_back() {
        for (level, kernels) in levels() {
            for n in 0..40 {
                let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.75 - 9.0).collect();
                let mut halves = vec![0xeeu8; 2 * n + 2];
                let mut y = vec![-1.0f32; n + 1];
                // SAFETY: the rows have the lengths given.
                unsafe {
                    (kernels.store_f16)(x.as_ptr(), n, halves.as_mut_ptr());
                    (kernels.load_f16)(&row(&halves, n, &mut y));
                }
                assert_eq!(y[..n], x, "{level}");
                assert_eq!((y[n], halves[2 * n]), (-1.0, 0xee), "{level}");
                // SAFETY: the rows have the lengths given.
                unsafe {
                    (kernels.store_bf16)(x.as_ptr(), n, halves.as_mut_ptr());
                    (kernels.load_bf16)(&row(&halves, n, &mut y));
                }
                assert_eq!(y[..n], x, "{level}");
                assert_eq!((y[n], halves[2 * n]), (-1.0, 0xee), "{level}");
            }
        }
    }

    #[test]
    fn bfloat16_rounds_as_the_reference_does() {
        let bits = (0..=u16::MAX).flat_map(|high| {
            [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff].map(|low| u32::from(high) << 16 | low)
        });
        for value in bits.map(f32::from_bits) {
            let expected = half::bf16::from_f32(value).to_bits();
            assert_eq!(lanes::bf16_bits(value), expected, "{:08x}", value.to_bits());
        }
    }
}
