//! A token of the state recurrence of RWKV-7.

use super::lanes::Lanes;

/// Rows of the state that are updated together, so that the vectors are loaded once for all of
/// them.
const ROWS: usize = 4;

/// A token of one head: `S = S diag(w) + (S a) b^T + v k^T`, `y = S r`.
pub(crate) struct Wkv7Token {
    /// Rows of the state, elements of `v` and `y`.
    pub(crate) rows: usize,
    /// Columns of the state, elements of the other vectors; a multiple of every level's lanes.
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
/// The state is writable, the vectors are readable and `y` is writable for the sizes stated. The
/// state and `y` are apart from each other and from the vectors.
#[inline(always)]
pub(super) unsafe fn wkv7_token<V: Lanes>(token: &Wkv7Token) {
    let mut row = 0;
    // SAFETY: by this function's contract; the rows exist.
    unsafe {
        while row + ROWS <= token.rows {
            rows::<V, ROWS>(token, row);
            row += ROWS;
        }
        while row < token.rows {
            rows::<V, 1>(token, row);
            row += 1;
        }
    }
}

/// `N` rows from `first` on.
///
/// # Safety
/// As [`wkv7_token`]; the rows exist.
#[inline(always)]
unsafe fn rows<V: Lanes, const N: usize>(token: &Wkv7Token, first: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        let state = token.state.add(first * token.pitch);
        let mut sums = [V::splat(0.0); N];
        let mut at = 0;
        while at < token.columns {
            let a = V::load(token.a.add(at));
            for (row, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(state.add(row * token.pitch + at)).mul_add(a, *sum);
            }
            at += V::N;
        }
        let (mut removed, mut value) = (sums, sums);
        for row in 0..N {
            removed[row] = V::splat(sums[row].sum());
            value[row] = V::splat(*token.v.add(first + row));
        }
        let mut results = [V::splat(0.0); N];
        let mut at = 0;
        while at < token.columns {
            let (w, k) = (V::load(token.w.add(at)), V::load(token.k.add(at)));
            let (b, r) = (V::load(token.b.add(at)), V::load(token.r.add(at)));
            for row in 0..N {
                let place = state.add(row * token.pitch + at);
                let added = removed[row].mul_add(b, value[row].mul(k));
                let new = V::load(place).mul_add(w, added);
                new.store(place);
                results[row] = new.mul_add(r, results[row]);
            }
            at += V::N;
        }
        for (row, result) in results.into_iter().enumerate() {
            *token.y.add(first + row) = result.sum();
        }
    }
}
