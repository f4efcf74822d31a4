//! Rotations of pairs, and their products with matrices, for rotary position embedding.

use super::lanes::Lanes;

/// Pairs turned together; enough for a vector of any level.
const PAIRS: usize = 16;

/// `(a cos - b sin, a sin + b cos)` of `PAIRS` pairs.
#[inline(always)]
fn turn(
    a: &[f32; PAIRS],
    b: &[f32; PAIRS],
    table: &[f32; 2 * PAIRS],
) -> ([f32; PAIRS], [f32; PAIRS]) {
    let (mut first, mut second) = ([0.0; PAIRS], [0.0; PAIRS]);
    for i in 0..PAIRS {
        let (cos, sin) = (table[2 * i], table[2 * i + 1]);
        first[i] = a[i] * cos - b[i] * sin;
        second[i] = a[i] * sin + b[i] * cos;
    }
    (first, second)
}

/// Pairs `(2 i, 2 i + 1)` of `x` by the cos and sin at `2 i` of `table`.
///
/// # Safety
/// `x` and `table` are readable and `y` is writable for `2 * pairs` elements; `y` is `x` or apart
/// from it.
#[inline(always)]
pub(super) unsafe fn rotate_normal<V: Lanes>(
    x: *const f32,
    table: *const f32,
    y: *mut f32,
    pairs: usize,
) {
    let mut at = 0;
    while at + PAIRS <= pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let pair = x.add(2 * at).cast::<[f32; 2 * PAIRS]>().read_unaligned();
            let angles = table
                .add(2 * at)
                .cast::<[f32; 2 * PAIRS]>()
                .read_unaligned();
            let (mut a, mut b) = ([0.0; PAIRS], [0.0; PAIRS]);
            for i in 0..PAIRS {
                (a[i], b[i]) = (pair[2 * i], pair[2 * i + 1]);
            }
            let (first, second) = turn(&a, &b, &angles);
            let mut out = [0.0; 2 * PAIRS];
            for i in 0..PAIRS {
                (out[2 * i], out[2 * i + 1]) = (first[i], second[i]);
            }
            y.add(2 * at)
                .cast::<[f32; 2 * PAIRS]>()
                .write_unaligned(out);
        }
        at += PAIRS;
    }
    for i in at..pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let (a, b) = (*x.add(2 * i), *x.add(2 * i + 1));
            let (cos, sin) = (*table.add(2 * i), *table.add(2 * i + 1));
            *y.add(2 * i) = a * cos - b * sin;
            *y.add(2 * i + 1) = a * sin + b * cos;
        }
    }
}

/// Pairs `(i, i + pairs)` of `x` by the cos and sin at `2 i` of `table`.
///
/// # Safety
/// As [`rotate_normal`].
#[inline(always)]
pub(super) unsafe fn rotate_neox<V: Lanes>(
    x: *const f32,
    table: *const f32,
    y: *mut f32,
    pairs: usize,
) {
    let mut at = 0;
    while at + PAIRS <= pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let a = x.add(at).cast::<[f32; PAIRS]>().read_unaligned();
            let b = x.add(pairs + at).cast::<[f32; PAIRS]>().read_unaligned();
            let angles = table
                .add(2 * at)
                .cast::<[f32; 2 * PAIRS]>()
                .read_unaligned();
            let (first, second) = turn(&a, &b, &angles);
            y.add(at).cast::<[f32; PAIRS]>().write_unaligned(first);
            y.add(pairs + at)
                .cast::<[f32; PAIRS]>()
                .write_unaligned(second);
        }
        at += PAIRS;
    }
    for i in at..pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let (a, b) = (*x.add(i), *x.add(pairs + i));
            let (cos, sin) = (*table.add(2 * i), *table.add(2 * i + 1));
            *y.add(i) = a * cos - b * sin;
            *y.add(pairs + i) = a * sin + b * cos;
        }
    }
}

/// The products of `PAIRS` pairs `(a, b)` with their matrices, row-major.
#[inline(always)]
fn multiply(
    a: &[f32; PAIRS],
    b: &[f32; PAIRS],
    table: &[f32; 4 * PAIRS],
) -> ([f32; PAIRS], [f32; PAIRS]) {
    let (mut first, mut second) = ([0.0; PAIRS], [0.0; PAIRS]);
    for i in 0..PAIRS {
        first[i] = a[i] * table[4 * i] + b[i] * table[4 * i + 1];
        second[i] = a[i] * table[4 * i + 2] + b[i] * table[4 * i + 3];
    }
    (first, second)
}

/// One pair by its matrix.
///
/// # Safety
/// The matrix is readable.
#[inline(always)]
unsafe fn multiply_one(a: f32, b: f32, matrix: *const f32) -> (f32, f32) {
    // SAFETY: by this function's contract.
    let m = unsafe { matrix.cast::<[f32; 4]>().read_unaligned() };
    (a * m[0] + b * m[1], a * m[2] + b * m[3])
}

/// Pairs `(2 i, 2 i + 1)` of `x` by the matrices at `4 i` of `table`.
///
/// # Safety
/// `x` is readable and `y` is writable for `2 * pairs` elements, `table` is readable for twice as
/// many; `y` is `x` or apart from it.
#[inline(always)]
pub(super) unsafe fn apply_normal<V: Lanes>(
    x: *const f32,
    table: *const f32,
    y: *mut f32,
    pairs: usize,
) {
    let mut at = 0;
    while at + PAIRS <= pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let pair = x.add(2 * at).cast::<[f32; 2 * PAIRS]>().read_unaligned();
            let matrices = table.add(4 * at).cast::<[f32; 4 * PAIRS]>();
            let (mut a, mut b) = ([0.0; PAIRS], [0.0; PAIRS]);
            for i in 0..PAIRS {
                (a[i], b[i]) = (pair[2 * i], pair[2 * i + 1]);
            }
            let (first, second) = multiply(&a, &b, &matrices.read_unaligned());
            let mut out = [0.0; 2 * PAIRS];
            for i in 0..PAIRS {
                (out[2 * i], out[2 * i + 1]) = (first[i], second[i]);
            }
            y.add(2 * at)
                .cast::<[f32; 2 * PAIRS]>()
                .write_unaligned(out);
        }
        at += PAIRS;
    }
    for i in at..pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let (a, b) = (*x.add(2 * i), *x.add(2 * i + 1));
            (*y.add(2 * i), *y.add(2 * i + 1)) = multiply_one(a, b, table.add(4 * i));
        }
    }
}

/// Pairs `(i, i + pairs)` of `x` by the matrices at `4 i` of `table`.
///
/// # Safety
/// As [`apply_normal`].
#[inline(always)]
pub(super) unsafe fn apply_neox<V: Lanes>(
    x: *const f32,
    table: *const f32,
    y: *mut f32,
    pairs: usize,
) {
    let mut at = 0;
    while at + PAIRS <= pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let a = x.add(at).cast::<[f32; PAIRS]>().read_unaligned();
            let b = x.add(pairs + at).cast::<[f32; PAIRS]>().read_unaligned();
            let matrices = table.add(4 * at).cast::<[f32; 4 * PAIRS]>();
            let (first, second) = multiply(&a, &b, &matrices.read_unaligned());
            y.add(at).cast::<[f32; PAIRS]>().write_unaligned(first);
            y.add(pairs + at)
                .cast::<[f32; PAIRS]>()
                .write_unaligned(second);
        }
        at += PAIRS;
    }
    for i in at..pairs {
        // SAFETY: by this function's contract.
        unsafe {
            let (a, b) = (*x.add(i), *x.add(pairs + i));
            (*y.add(i), *y.add(pairs + i)) = multiply_one(a, b, table.add(4 * i));
        }
    }
}
