//! Rotations of pairs, and their products with matrices, for rotary position embedding.

use super::lanes::Lanes;

/// Pairs turned together; enough for a vector of any level.
const PAIRS: usize = 16;

/// Defines the kernel of a pairing and a kind of table.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $load:ident, $store:ident, $turn:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// `x` is readable and `y` is writable for `2 * pairs` elements, and `table` is readable
        /// for `pairs` rows; `y` is `x` or apart from it.
        #[inline(always)]
        pub(super) unsafe fn $name<V: Lanes>(
            x: *const f32,
            table: *const f32,
            y: *mut f32,
            pairs: usize,
        ) {
            let mut at = 0;
            // SAFETY: by this function's contract.
            unsafe {
                while at + PAIRS <= pairs {
                    let (a, b) = $load::<PAIRS>(x, pairs, at);
                    $store(y, pairs, at, $turn(a, b, table, at));
                    at += PAIRS;
                }
                while at < pairs {
                    let (a, b) = $load::<1>(x, pairs, at);
                    $store(y, pairs, at, $turn(a, b, table, at));
                    at += 1;
                }
            }
        }
    };
}

kernel!(
    /// Pairs `(2 i, 2 i + 1)` of `x` by the cos and sin at `2 i` of `table`.
    rotate_normal, load_normal, store_normal, rotate
);
kernel!(
    /// Pairs `(i, i + pairs)` of `x` by the cos and sin at `2 i` of `table`.
    rotate_neox, load_neox, store_neox, rotate
);
kernel!(
    /// Pairs `(2 i, 2 i + 1)` of `x` by the row-major 2 x 2 matrices at `4 i` of `table`.
    apply_normal, load_normal, store_normal, multiply
);
kernel!(
    /// Pairs `(i, i + pairs)` of `x` by the row-major 2 x 2 matrices at `4 i` of `table`.
    apply_neox, load_neox, store_neox, multiply
);

/// The first and the second elements of `N` pairs.
type Pairs<const N: usize> = ([f32; N], [f32; N]);

/// # Safety
/// The pairs from pair `at` on are readable.
#[inline(always)]
unsafe fn load_normal<const N: usize>(x: *const f32, _pairs: usize, at: usize) -> Pairs<N> {
    // SAFETY: by this function's contract.
    let pairs = unsafe { x.add(2 * at).cast::<[[f32; 2]; N]>().read_unaligned() };
    let (mut a, mut b) = ([0.0; N], [0.0; N]);
    for (i, pair) in pairs.iter().enumerate() {
        [a[i], b[i]] = *pair;
    }
    (a, b)
}

/// # Safety
/// The pairs from pair `at` on are writable.
#[inline(always)]
unsafe fn store_normal<const N: usize>(y: *mut f32, _pairs: usize, at: usize, (a, b): Pairs<N>) {
    let mut pairs = [[0.0; 2]; N];
    for i in 0..N {
        pairs[i] = [a[i], b[i]];
    }
    // SAFETY: by this function's contract.
    unsafe { y.add(2 * at).cast::<[[f32; 2]; N]>().write_unaligned(pairs) };
}

/// # Safety
/// As [`load_normal`].
#[inline(always)]
unsafe fn load_neox<const N: usize>(x: *const f32, pairs: usize, at: usize) -> Pairs<N> {
    // SAFETY: by this function's contract.
    let half = |at: usize| unsafe { x.add(at).cast::<[f32; N]>().read_unaligned() };
    (half(at), half(pairs + at))
}

/// # Safety
/// As [`store_normal`].
#[inline(always)]
unsafe fn store_neox<const N: usize>(y: *mut f32, pairs: usize, at: usize, (a, b): Pairs<N>) {
    // SAFETY: by this function's contract.
    unsafe {
        y.add(at).cast::<[f32; N]>().write_unaligned(a);
        y.add(pairs + at).cast::<[f32; N]>().write_unaligned(b);
    }
}

/// `(a cos - b sin, a sin + b cos)` of each pair.
///
/// # Safety
/// The table is readable for `N` pairs from pair `at` on.
#[inline(always)]
unsafe fn rotate<const N: usize>(
    a: [f32; N],
    b: [f32; N],
    table: *const f32,
    at: usize,
) -> Pairs<N> {
    // SAFETY: by this function's contract.
    let angles = unsafe { table.add(2 * at).cast::<[[f32; 2]; N]>().read_unaligned() };
    let (mut first, mut second) = ([0.0; N], [0.0; N]);
    for (i, [cos, sin]) in angles.into_iter().enumerate() {
        first[i] = a[i] * cos - b[i] * sin;
        second[i] = a[i] * sin + b[i] * cos;
    }
    (first, second)
}

/// The products of the pairs `(a, b)` with their matrices.
///
/// # Safety
/// As [`rotate`].
#[inline(always)]
unsafe fn multiply<const N: usize>(
    a: [f32; N],
    b: [f32; N],
    table: *const f32,
    at: usize,
) -> Pairs<N> {
    // SAFETY: by this function's contract.
    let matrices = unsafe { table.add(4 * at).cast::<[[f32; 4]; N]>().read_unaligned() };
    let (mut first, mut second) = ([0.0; N], [0.0; N]);
    for (i, m) in matrices.into_iter().enumerate() {
        first[i] = a[i] * m[0] + b[i] * m[1];
        second[i] = a[i] * m[2] + b[i] * m[3];
    }
    (first, second)
}
