//! Products of small f32 matrices whose operands are in a cache.

use super::lanes::Lanes;

/// The value that a product is added to.
#[derive(Clone, Copy)]
pub(crate) enum Beta {
    /// Nothing.
    Zero,
    /// The previous content.
    One,
    /// The previous content times a factor for each column.
    Columns(*const f32),
}

/// `c[i, j] = beta c[i, j] + sum_l a[i, l] * b[l, j]`
pub(crate) struct Tile {
    /// Rows of `a` and `c`.
    pub(crate) m: usize,
    /// Columns of `b` and `c`, a multiple of the lanes.
    pub(crate) n: usize,
    /// Columns of `a` and rows of `b`.
    pub(crate) k: usize,
    /// `a[i, l]` is at `i * a_row + l * a_column`.
    pub(crate) a: *const f32,
    pub(crate) a_row: usize,
    pub(crate) a_column: usize,
    /// `b[l, j]` is at `l * b_row + j`.
    pub(crate) b: *const f32,
    pub(crate) b_row: usize,
    /// `c[i, j]` is at `i * c_row + j`.
    pub(crate) c: *mut f32,
    pub(crate) c_row: usize,
    pub(crate) beta: Beta,
}

/// # Safety
/// The pointers of `call` are valid for the sizes it states, and `c` is apart from the others.
#[inline(always)]
pub(super) unsafe fn product<V: Lanes>(call: &Tile) {
    let mut j = 0;
    while j < call.n {
        let vectors = (call.n - j) / V::N;
        // SAFETY: by this function's contract; the vectors are inside the columns.
        unsafe {
            match vectors {
                1 => {
                    rows::<V, 1>(call, j);
                    j += V::N;
                }
                2 | 4 => {
                    rows::<V, 2>(call, j);
                    j += 2 * V::N;
                }
                _ => {
                    rows::<V, 3>(call, j);
                    j += 3 * V::N;
                }
            }
        }
    }
}

/// All rows of `C` vectors of columns. With the operands, 24 sums fit the 32 registers of AVX-512
/// and NEON, and 12 sums the 16 registers of AVX2.
///
/// # Safety
/// As [`product`], with `C` vectors from column `j` on.
#[inline(always)]
unsafe fn rows<V: Lanes, const C: usize>(call: &Tile, j: usize) {
    let mut i = 0;
    while i < call.m {
        // SAFETY: by this function's contract; the cell is inside the rows.
        unsafe {
            match call.m - i {
                1 => {
                    cell::<V, 1, C>(call, i, j);
                    i += 1;
                }
                2 => {
                    cell::<V, 2, C>(call, i, j);
                    i += 2;
                }
                3 => {
                    cell::<V, 3, C>(call, i, j);
                    i += 3;
                }
                left if left >= 8 && V::N != 8 => {
                    cell::<V, 8, C>(call, i, j);
                    i += 8;
                }
                _ => {
                    cell::<V, 4, C>(call, i, j);
                    i += 4;
                }
            }
        }
    }
}

/// # Safety
/// As [`product`], with `R` rows from row `i` and `C` vectors from column `j` on.
#[inline(always)]
unsafe fn cell<V: Lanes, const R: usize, const C: usize>(call: &Tile, i: usize, j: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [[V::splat(0.0); C]; R];
        let a = call.a.add(i * call.a_row);
        let b = call.b.add(j);
        let c = call.c.add(i * call.c_row + j);
        for l in 0..call.k {
            let mut columns = [V::splat(0.0); C];
            for (v, column) in columns.iter_mut().enumerate() {
                *column = V::load(b.add(l * call.b_row + v * V::N));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let value = a.add(r * call.a_row + l * call.a_column).read_unaligned();
                let value = V::splat(value);
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = value.mul_add(column, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                let at = c.add(r * call.c_row + v * V::N);
                match call.beta {
                    Beta::Zero => sum.store(at),
                    Beta::One => sum.add(V::load(at)).store(at),
                    Beta::Columns(factors) => {
                        let factor = V::load(factors.add(j + v * V::N));
                        V::load(at).mul_add(factor, *sum).store(at);
                    }
                }
            }
        }
    }
}

/// # Safety
/// `a` is readable for `n` elements, a multiple of the lanes, `b` for `rows` rows of `n` that are
/// `stride` apart, and `y` is writable for `rows` elements.
#[inline(always)]
pub(super) unsafe fn dots<V: Lanes>(
    a: *const f32,
    b: *const f32,
    stride: usize,
    n: usize,
    rows: usize,
    y: *mut f32,
) {
    const ROWS: usize = 4;
    let mut j = 0;
    // SAFETY: by this function's contract.
    unsafe {
        while j + ROWS <= rows {
            let mut sums = [V::splat(0.0); ROWS];
            let mut i = 0;
            while i < n {
                let x = V::load(a.add(i));
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = V::load(b.add((j + r) * stride + i)).mul_add(x, *sum);
                }
                i += V::N;
            }
            for (r, sum) in sums.iter().enumerate() {
                *y.add(j + r) = sum.sum();
            }
            j += ROWS;
        }
        while j < rows {
            let mut sum = V::splat(0.0);
            let mut i = 0;
            while i < n {
                sum = V::load(b.add(j * stride + i)).mul_add(V::load(a.add(i)), sum);
                i += V::N;
            }
            *y.add(j) = sum.sum();
            j += 1;
        }
    }
}
