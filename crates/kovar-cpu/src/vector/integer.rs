//! Kernels on 8-bit codes. The bodies are plain loops, which the compiler vectorises for each
//! level.

use super::lanes::Lanes;

/// The most elements of a dot product of two codes; its sum fits 32 bits.
pub(crate) const MAX_DOT: usize = 1 << 16;

/// Independent sums of a dot product in f32.
const SUMS: usize = 32;

/// # Safety
/// `x` is readable for `n` elements.
#[inline(always)]
pub(super) unsafe fn largest<V: Lanes>(x: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract.
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    // Magnitudes compare as integers; a NaN is larger than any number, so it wins.
    let magnitude = |x: &f32| x.to_bits() & 0x7fff_ffff;
    f32::from_bits(x.iter().map(magnitude).max().unwrap_or(0))
}

/// # Safety
/// `x` is readable and `y` writable for `n` elements.
#[inline(always)]
pub(super) unsafe fn quantize_i8<V: Lanes>(x: *const f32, n: usize, scale: f32, y: *mut i8) {
    // SAFETY: by this function's contract.
    let (x, y) = unsafe {
        let x = std::slice::from_raw_parts(x, n);
        (x, std::slice::from_raw_parts_mut(y, n))
    };
    for (code, x) in y.iter_mut().zip(x) {
        // A NaN becomes 0.
        *code = (x / scale).round_ties_even().clamp(-127.0, 127.0) as i8;
    }
}

/// # Safety
/// `src` is readable and `dst` writable for `n` elements.
#[inline(always)]
pub(super) unsafe fn load_i8<V: Lanes>(src: *const i8, n: usize, dst: *mut f32) {
    // SAFETY: by this function's contract.
    let (src, dst) = unsafe {
        let src = std::slice::from_raw_parts(src, n);
        (src, std::slice::from_raw_parts_mut(dst, n))
    };
    for (y, &x) in dst.iter_mut().zip(src) {
        *y = f32::from(x);
    }
}

/// # Safety
/// `a` and `b` are readable for `n` elements, at most [`MAX_DOT`].
#[inline(always)]
pub(super) unsafe fn dot_i8<V: Lanes>(a: *const i8, b: *const i8, n: usize) -> i32 {
    // SAFETY: by this function's contract.
    let (a, b) = unsafe {
        let a = std::slice::from_raw_parts(a, n);
        (a, std::slice::from_raw_parts(b, n))
    };
    let products = a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b));
    products.sum()
}

/// # Safety
/// `a` and `x` are readable for `n` elements.
#[inline(always)]
pub(super) unsafe fn dot_i8_f32<V: Lanes>(a: *const i8, x: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract.
    let (a, x) = unsafe {
        let a = std::slice::from_raw_parts(a, n);
        (a, std::slice::from_raw_parts(x, n))
    };
    let mut sums = [0.0; SUMS];
    let (a_blocks, a_rest) = a.as_chunks::<SUMS>();
    let (x_blocks, x_rest) = x.as_chunks::<SUMS>();
    for (a, x) in a_blocks.iter().zip(x_blocks) {
        for ((sum, &a), x) in sums.iter_mut().zip(a).zip(x) {
            *sum += f32::from(a) * x;
        }
    }
    let rest: f32 = a_rest
        .iter()
        .zip(x_rest)
        .map(|(&a, x)| f32::from(a) * x)
        .sum();
    // Pairwise summation: the rounding error grows with the logarithm of the number of sums.
    let mut width = SUMS / 2;
    while width > 0 {
        let (near, far) = sums.split_at_mut(width);
        for (near, far) in near.iter_mut().zip(far) {
            *near += *far;
        }
        width /= 2;
    }
    sums[0] + rest
}
