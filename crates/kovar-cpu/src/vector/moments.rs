//! Sums over f32 rows, and what a normalisation makes of a row with them.

use super::lanes::{Lanes, MAX_LANES};

/// # Safety
/// `x` is readable for `n` elements.
#[inline(always)]
pub(super) unsafe fn row_sum<V: Lanes>(x: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract; the padded copy has `MAX_LANES` elements.
    unsafe {
        let (mut even, mut odd) = (V::splat(0.0), V::splat(0.0));
        let mut i = 0;
        while i + 2 * V::N <= n {
            even = even.add(V::load(x.add(i)));
            odd = odd.add(V::load(x.add(i + V::N)));
            i += 2 * V::N;
        }
        while i < n {
            let step = V::N.min(n - i);
            let mut last = [0f32; MAX_LANES];
            std::ptr::copy_nonoverlapping(x.add(i), last.as_mut_ptr(), step);
            even = even.add(V::load(last.as_ptr()));
            i += step;
        }
        even.add(odd).sum()
    }
}

/// # Safety
/// `x` is readable for `n` elements.
#[inline(always)]
pub(super) unsafe fn row_deviations<V: Lanes>(x: *const f32, n: usize, center: f32) -> (f32, f32) {
    // SAFETY: by this function's contract; the padded copy has `MAX_LANES` elements.
    unsafe {
        let at = V::splat(center);
        let (mut sum, mut squares) = (V::splat(0.0), V::splat(0.0));
        let mut i = 0;
        while i + V::N <= n {
            let distance = V::load(x.add(i)).sub(at);
            sum = sum.add(distance);
            squares = distance.mul_add(distance, squares);
            i += V::N;
        }
        if i < n {
            // Elements at the center add nothing.
            let mut last = [center; MAX_LANES];
            std::ptr::copy_nonoverlapping(x.add(i), last.as_mut_ptr(), n - i);
            let distance = V::load(last.as_ptr()).sub(at);
            sum = sum.add(distance);
            squares = distance.mul_add(distance, squares);
        }
        (sum.sum(), squares.sum())
    }
}

/// # Safety
/// `x` is readable and `y` is writable for `n` elements; `y` is `x` or apart from it.
#[inline(always)]
pub(super) unsafe fn center_scale<V: Lanes>(
    x: *const f32,
    y: *mut f32,
    n: usize,
    center: f32,
    factor: f32,
    shift: f32,
) {
    // SAFETY: by this function's contract; the padded copy has `MAX_LANES` elements.
    unsafe {
        let (center, factor, shift) = (V::splat(center), V::splat(factor), V::splat(shift));
        let mut i = 0;
        while i + V::N <= n {
            let distance = V::load(x.add(i)).sub(center);
            distance.mul_add(factor, shift).store(y.add(i));
            i += V::N;
        }
        if i < n {
            let mut last = [0f32; MAX_LANES];
            std::ptr::copy_nonoverlapping(x.add(i), last.as_mut_ptr(), n - i);
            let distance = V::load(last.as_ptr()).sub(center);
            distance.mul_add(factor, shift).store(last.as_mut_ptr());
            std::ptr::copy_nonoverlapping(last.as_ptr(), y.add(i), n - i);
        }
    }
}
