//! Moments of f32 rows, and the normalisation of rows by them.

use super::elementwise::{Pointwise, map};
use super::lanes::{Lanes, MAX_LANES};

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

/// `(x - center) * factor + shift`
struct Normal<V> {
    center: V,
    factor: V,
    shift: V,
}

impl<V: Lanes> Pointwise<V> for Normal<V> {
    #[inline(always)]
    unsafe fn at(&self, x: V, _: V) -> V {
        // SAFETY: by the trait's contract.
        unsafe { x.sub(self.center).mul_add(self.factor, self.shift) }
    }
}

/// # Safety
/// As [`map`].
#[inline(always)]
pub(super) unsafe fn center_scale<V: Lanes>(
    x: *const f32,
    y: *mut f32,
    n: usize,
    center: f32,
    factor: f32,
    shift: f32,
) {
    // SAFETY: by this function's contract, on a processor of the level.
    unsafe {
        let normal = Normal {
            center: V::splat(center),
            factor: V::splat(factor),
            shift: V::splat(shift),
        };
        map::<V>(x, x, y, n, normal);
    }
}
