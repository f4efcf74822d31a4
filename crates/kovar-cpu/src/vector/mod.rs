//! Vector kernels on f32 rows, one table of function pointers for each SIMD level.
//!
//! A body is written once over [`Lanes`](lanes::Lanes); the table's macro makes a function of it
//! for each level, compiled with the level's target features.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod codec;
mod elementwise;
pub(crate) mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod rotate;
mod softmax;
mod tile;

pub(crate) use softmax::Columns;
pub(crate) use tile::{Beta, Tile};

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
        /// The kernels of one level. Each is unsafe to call with pointers that its body may not
        /// use; levels that the machine lacks have no table to be called through.
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
    /// `dst[i] = src[i]` from F16.
    fn codec::load_f16(src: *const u8, n: usize, dst: *mut f32);
    /// `dst[i] = src[i]` from BF16.
    fn codec::load_bf16(src: *const u8, n: usize, dst: *mut f32);
    /// `dst[i] = src[i]` from whole Q8_0 blocks.
    fn codec::load_q8_0(src: *const u8, n: usize, dst: *mut f32);
    /// `dst[i] = src[i]` to F16, to nearest with ties to even.
    fn codec::store_f16(src: *const f32, n: usize, dst: *mut u8);
    /// `dst[i] = src[i]` to BF16, to nearest with ties to even.
    fn codec::store_bf16(src: *const f32, n: usize, dst: *mut u8);
    /// `y = a + b`
    fn elementwise::add(a: *const f32, b: *const f32, y: *mut f32, n: usize);
    /// `y = a * b`
    fn elementwise::mul(a: *const f32, b: *const f32, y: *mut f32, n: usize);
    /// `y = silu(a) * b`
    fn elementwise::swiglu(a: *const f32, b: *const f32, y: *mut f32, n: usize);
    /// `y = factor * x`
    fn elementwise::scale(x: *const f32, y: *mut f32, n: usize, factor: f32);
    /// `y = factor * x * w`
    fn elementwise::scale_mul(x: *const f32, w: *const f32, y: *mut f32, n: usize, factor: f32);
    /// The sum of `x^2`.
    fn elementwise::sum_squares(x: *const f32, n: usize) -> f32;
    /// Turns the neighbouring pairs of a head.
    fn rotate::rotate_normal(x: *const f32, table: *const f32, y: *mut f32, pairs: usize);
    /// Turns the pairs of a head whose halves are `pairs` apart.
    fn rotate::rotate_neox(x: *const f32, table: *const f32, y: *mut f32, pairs: usize);
    /// `y = cap(scale * x) + mask`, and the greatest of it that isn't NaN.
    fn softmax::scores(x: *const f32, mask: *const f32, y: *mut f32, n: usize, scale: f32, cap: f32) -> f32;
    /// `x = exp(x - max)`, and the sum of it.
    fn softmax::exp_sum(x: *mut f32, n: usize, max: f32) -> f32;
    /// One step of an online softmax down the columns of a block of scores.
    fn softmax::columns(call: &crate::vector::Columns);
    /// A block of a product of f32 matrices.
    fn tile::product(call: &crate::vector::Tile);
    /// `y[j] = sum_i a[i] * b[j * stride + i]` for `j < rows`.
    fn tile::dots(a: *const f32, b: *const f32, stride: usize, n: usize, rows: usize, y: *mut f32);
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
