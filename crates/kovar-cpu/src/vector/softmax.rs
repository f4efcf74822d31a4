//! The kernels of a softmax: along a row, and along the columns of a block of scores.

use super::lanes::{Lanes, MAX_LANES};

/// `cap(scale * x)`; no cap if it is 0.
#[inline(always)]
unsafe fn cap_scaled<V: Lanes>(x: V, scale: V, cap: f32) -> V {
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe {
        let scaled = x.mul(scale);
        if cap == 0.0 {
            return scaled;
        }
        scaled.mul(V::splat(1.0 / cap)).tanh().mul(V::splat(cap))
    }
}

/// # Safety
/// `x` and `mask`, unless it is null, are readable and `y` is writable for `n` elements; `y` is
/// `x` or apart from it.
#[inline(always)]
pub(super) unsafe fn scores<V: Lanes>(
    x: *const f32,
    mask: *const f32,
    y: *mut f32,
    n: usize,
    scale: f32,
    cap: f32,
) -> f32 {
    // SAFETY: by this function's contract; the padded copies have `MAX_LANES` elements.
    unsafe {
        let factor = V::splat(scale);
        let mut greatest = V::splat(f32::NEG_INFINITY);
        let mut i = 0;
        while i + V::N <= n {
            let mut score = cap_scaled(V::load(x.add(i)), factor, cap);
            if !mask.is_null() {
                score = score.add(V::load(mask.add(i)));
            }
            score.store(y.add(i));
            greatest = score.max(greatest);
            i += V::N;
        }
        let mut greatest = greatest.max_lane();
        if i < n {
            let (mut last, mut last_mask) = ([0f32; MAX_LANES], [0f32; MAX_LANES]);
            std::ptr::copy_nonoverlapping(x.add(i), last.as_mut_ptr(), n - i);
            if !mask.is_null() {
                std::ptr::copy_nonoverlapping(mask.add(i), last_mask.as_mut_ptr(), n - i);
            }
            let score = cap_scaled(V::load(last.as_ptr()), factor, cap);
            score
                .add(V::load(last_mask.as_ptr()))
                .store(last.as_mut_ptr());
            std::ptr::copy_nonoverlapping(last.as_ptr(), y.add(i), n - i);
            for &score in last.iter().take(n - i) {
                if score > greatest {
                    greatest = score;
                }
            }
        }
        greatest
    }
}

/// # Safety
/// `x` is readable and writable for `n` elements.
#[inline(always)]
pub(super) unsafe fn exp_sum<V: Lanes>(x: *mut f32, n: usize, max: f32) -> f32 {
    // SAFETY: by this function's contract; the padded copy has `MAX_LANES` elements.
    unsafe {
        let max = V::splat(max);
        let mut sum = V::splat(0.0);
        let mut i = 0;
        while i + V::N <= n {
            let e = V::load(x.add(i)).sub(max).exp();
            e.store(x.add(i));
            sum = sum.add(e);
            i += V::N;
        }
        if i < n {
            let mut last = [f32::NEG_INFINITY; MAX_LANES];
            std::ptr::copy_nonoverlapping(x.add(i), last.as_mut_ptr(), n - i);
            let e = V::load(last.as_ptr()).sub(max).exp();
            e.store(last.as_mut_ptr());
            std::ptr::copy_nonoverlapping(last.as_ptr(), x.add(i), n - i);
            sum = sum.add(e);
        }
        sum.sum()
    }
}

/// A block of scores `[keys, columns]`, a column for each query, and the state of an online softmax
/// (Milakov and Gimelshein 2018): the greatest score so far and the sum of the exponentials, for
/// each column.
pub(crate) struct OnlineSoftmax {
    /// `[keys, columns]`: products on entry, `exp(score - max)` on return.
    pub(crate) scores: *mut f32,
    /// Rows of the block.
    pub(crate) keys: usize,
    /// Columns, a multiple of the lanes.
    pub(crate) columns: usize,
    /// The factor on the products.
    pub(crate) scale: f32,
    /// The soft cap; 0 for none.
    pub(crate) cap: f32,
    /// The first row that each column sees, and the one after the last; null if columns see all.
    pub(crate) first: *const f32,
    pub(crate) end: *const f32,
    /// `[keys, columns]`, added to the scores; null for none.
    pub(crate) mask: *const f32,
    /// The greatest score of each column, updated.
    pub(crate) max: *mut f32,
    /// The sum of the exponentials of each column, updated.
    pub(crate) sum: *mut f32,
    /// The factor on earlier results of each column, written.
    pub(crate) correction: *mut f32,
}

/// # Safety
/// The pointers of `call` that aren't null are valid for the sizes it states and apart.
#[inline(always)]
pub(super) unsafe fn online_softmax<V: Lanes>(call: &OnlineSoftmax) {
    let mut column = 0;
    while column < call.columns {
        // SAFETY: by this function's contract; the columns are whole vectors.
        unsafe { one_vector::<V>(call, column) }
        column += V::N;
    }
}

/// # Safety
/// As [`online_softmax`].
#[inline(always)]
unsafe fn one_vector<V: Lanes>(call: &OnlineSoftmax, column: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        let minus_infinity = V::splat(f32::NEG_INFINITY);
        let scores = call.scores.add(column);
        let scale = V::splat(call.scale);
        let old = V::load(call.max.add(column));
        let mut max = old;
        for key in 0..call.keys {
            let at = scores.add(key * call.columns);
            let mut score = cap_scaled(V::load(at), scale, call.cap);
            if !call.mask.is_null() {
                score = score.add(V::load(call.mask.add(key * call.columns + column)));
            }
            if !call.first.is_null() {
                let row = V::splat(key as f32);
                let (first, end) = (call.first.add(column), call.end.add(column));
                score = V::select_ge(row, V::load(first), score, minus_infinity);
                score = V::select_ge(row, V::load(end), minus_infinity, score);
            }
            score.store(at);
            max = score.max(max);
        }
        // Where no key was visible the maximum is -inf; a finite base avoids `-inf - -inf`.
        let base = V::select_ge(V::splat(f32::MIN), max, V::splat(0.0), max);
        let correction = old.sub(base).exp();
        let mut sum = V::splat(0.0);
        for key in 0..call.keys {
            let at = scores.add(key * call.columns);
            let e = V::load(at).sub(base).exp();
            e.store(at);
            sum = sum.add(e);
        }
        let old_sum = V::load(call.sum.add(column));
        old_sum.mul_add(correction, sum).store(call.sum.add(column));
        correction.store(call.correction.add(column));
        max.store(call.max.add(column));
    }
}
