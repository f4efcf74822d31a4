//! A token of the state recurrence of RWKV-7.

use super::lanes::Lanes;

/// State rows that go together, so that the vectors are loaded once for all of them.
const ROWS: usize = 4;

/// A token of one head: `S = S diag(w) + (S a) b^T + v k^T`, `y = S r`.
pub(crate) struct Step {
    /// Rows of the state, elements of `v` and `y`.
    pub(crate) rows: usize,
    /// Columns of the state, elements of the other vectors; whole vectors of every level.
    pub(crate) columns: usize,
    pub(crate) state: *mut f32,
    /// Elements from one row of the state to the next.
    pub(crate) pitch: usize,
    pub(crate) r: *const f32,
    pub(crate) w: *const f32,
    pub(crate) k: *const f32,
    pub(crate) v: *const f32,
    pub(crate) a: *const f32,
    pub(crate) b: *const f32,
    pub(crate) y: *mut f32,
}

/// # Safety
/// The state is writable, the vectors are readable and `y` is writable for the sizes stated, and
/// what is written is apart from all else.
#[inline(always)]
pub(super) unsafe fn wkv7_step<V: Lanes>(step: &Step) {
    let mut row = 0;
    // SAFETY: by this function's contract; the rows exist.
    unsafe {
        while row + ROWS <= step.rows {
            rows::<V, ROWS>(step, row);
            row += ROWS;
        }
        while row < step.rows {
            rows::<V, 1>(step, row);
            row += 1;
        }
    }
}

/// `N` rows from `first` on.
///
/// # Safety
/// As [`wkv7_step`]; the rows exist.
#[inline(always)]
unsafe fn rows<V: Lanes, const N: usize>(step: &Step, first: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        let state = step.state.add(first * step.pitch);
        let mut sums = [V::splat(0.0); N];
        let mut at = 0;
        while at < step.columns {
            let a = V::load(step.a.add(at));
            for (row, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(state.add(row * step.pitch + at)).mul_add(a, *sum);
            }
            at += V::N;
        }
        let (mut removed, mut value) = (sums, sums);
        for row in 0..N {
            removed[row] = V::splat(sums[row].sum());
            value[row] = V::splat(*step.v.add(first + row));
        }
        let mut results = [V::splat(0.0); N];
        let mut at = 0;
        while at < step.columns {
            let (w, k) = (V::load(step.w.add(at)), V::load(step.k.add(at)));
            let (b, r) = (V::load(step.b.add(at)), V::load(step.r.add(at)));
            for row in 0..N {
                let place = state.add(row * step.pitch + at);
                let added = removed[row].mul_add(b, value[row].mul(k));
                let new = V::load(place).mul_add(w, added);
                new.store(place);
                results[row] = new.mul_add(r, results[row]);
            }
            at += V::N;
        }
        for (row, result) in results.into_iter().enumerate() {
            *step.y.add(first + row) = result.sum();
        }
    }
}
