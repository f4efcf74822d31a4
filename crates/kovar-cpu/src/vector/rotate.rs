//! Rotations of pairs, for rotary position embedding.

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
