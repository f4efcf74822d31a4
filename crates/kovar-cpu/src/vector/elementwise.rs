//! Elementwise kernels on f32 rows. The result may be the same row as an operand.

use super::lanes::{Lanes, MAX_LANES};

/// A function of two vectors. It is a method because a closure cannot be `inline(always)`: if it is
/// not inlined, it calls every intrinsic as a function.
pub(super) trait Pointwise<V> {
    /// # Safety
    /// Needs a processor of the level of `V`.
    unsafe fn at(&self, a: V, b: V) -> V;
}

/// `y[i] = f(a[i], b[i])`
///
/// # Safety
/// `a` and `b` are readable and `y` is writable for `n` elements; `y` is the same as an operand
/// or apart from it.
#[inline(always)]
pub(super) unsafe fn map<V: Lanes>(
    a: *const f32,
    b: *const f32,
    y: *mut f32,
    n: usize,
    f: impl Pointwise<V>,
) {
    let mut i = 0;
    // SAFETY: by this function's contract; the padded copies have `MAX_LANES` elements.
    unsafe {
        while i + V::N <= n {
            f.at(V::load(a.add(i)), V::load(b.add(i))).store(y.add(i));
            i += V::N;
        }
        if i < n {
            let (mut last_a, mut last_b) = ([0f32; MAX_LANES], [0f32; MAX_LANES]);
            std::ptr::copy_nonoverlapping(a.add(i), last_a.as_mut_ptr(), n - i);
            std::ptr::copy_nonoverlapping(b.add(i), last_b.as_mut_ptr(), n - i);
            f.at(V::load(last_a.as_ptr()), V::load(last_b.as_ptr()))
                .store(last_a.as_mut_ptr());
            std::ptr::copy_nonoverlapping(last_a.as_ptr(), y.add(i), n - i);
        }
    }
}

/// Defines a type for an operation of two vectors, and its row kernel.
macro_rules! arithmetic {
    ($operation:ident, $name:ident) => {
        struct $operation;

        impl<V: Lanes> Pointwise<V> for $operation {
            #[inline(always)]
            unsafe fn at(&self, a: V, b: V) -> V {
                // SAFETY: by the trait's contract.
                unsafe { a.$name(b) }
            }
        }

        /// # Safety
        /// As [`map`].
        #[inline(always)]
        pub(super) unsafe fn $name<V: Lanes>(a: *const f32, b: *const f32, y: *mut f32, n: usize) {
            // SAFETY: by this function's contract, on a processor of the level.
            unsafe { map::<V>(a, b, y, n, $operation) }
        }
    };
}

arithmetic!(Add, add);
arithmetic!(Sub, sub);
arithmetic!(Mul, mul);
arithmetic!(Div, div);

/// Times a factor, and times `b` if `WEIGHTED`.
struct Scale<V, const WEIGHTED: bool>(V);

impl<V: Lanes, const WEIGHTED: bool> Pointwise<V> for Scale<V, WEIGHTED> {
    #[inline(always)]
    unsafe fn at(&self, a: V, b: V) -> V {
        // SAFETY: by the trait's contract.
        unsafe {
            let scaled = a.mul(self.0);
            if WEIGHTED { scaled.mul(b) } else { scaled }
        }
    }
}

/// # Safety
/// As [`map`].
#[inline(always)]
pub(super) unsafe fn scale<V: Lanes>(x: *const f32, y: *mut f32, n: usize, factor: f32) {
    // SAFETY: by this function's contract, on a processor of the level.
    unsafe { map::<V>(x, x, y, n, Scale::<V, false>(V::splat(factor))) }
}

/// # Safety
/// As [`map`].
#[inline(always)]
pub(super) unsafe fn scale_mul<V: Lanes>(
    x: *const f32,
    w: *const f32,
    y: *mut f32,
    n: usize,
    factor: f32,
) {
    // SAFETY: by this function's contract, on a processor of the level.
    unsafe { map::<V>(x, w, y, n, Scale::<V, true>(V::splat(factor))) }
}

/// The term that an element adds to a sum; a method for the same reason as [`Pointwise`].
trait Term<V> {
    /// # Safety
    /// Needs a processor of the level of `V`.
    unsafe fn add(&self, sum: V, x: V) -> V;
}

struct Itself;
struct Square;

impl<V: Lanes> Term<V> for Itself {
    #[inline(always)]
    unsafe fn add(&self, sum: V, x: V) -> V {
        // SAFETY: by the trait's contract.
        unsafe { sum.add(x) }
    }
}

impl<V: Lanes> Term<V> for Square {
    #[inline(always)]
    unsafe fn add(&self, sum: V, x: V) -> V {
        // SAFETY: by the trait's contract.
        unsafe { x.mul_add(x, sum) }
    }
}

/// The sum of the terms of `x`. The term of 0 is 0.
///
/// # Safety
/// `x` is readable for `n` elements.
#[inline(always)]
unsafe fn total<V: Lanes>(x: *const f32, n: usize, term: impl Term<V>) -> f32 {
    // SAFETY: by this function's contract; the padded copy has `MAX_LANES` elements.
    unsafe {
        let (mut even, mut odd) = (V::splat(0.0), V::splat(0.0));
        let mut i = 0;
        while i + 2 * V::N <= n {
            even = term.add(even, V::load(x.add(i)));
            odd = term.add(odd, V::load(x.add(i + V::N)));
            i += 2 * V::N;
        }
        while i < n {
            let len = V::N.min(n - i);
            let mut last = [0f32; MAX_LANES];
            std::ptr::copy_nonoverlapping(x.add(i), last.as_mut_ptr(), len);
            even = term.add(even, V::load(last.as_ptr()));
            i += len;
        }
        even.add(odd).sum()
    }
}

/// # Safety
/// `x` is readable for `n` elements.
#[inline(always)]
pub(super) unsafe fn sum_squares<V: Lanes>(x: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract, on a processor of the level.
    unsafe { total::<V>(x, n, Square) }
}

/// # Safety
/// `x` is readable for `n` elements.
#[inline(always)]
pub(super) unsafe fn sum<V: Lanes>(x: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract, on a processor of the level.
    unsafe { total::<V>(x, n, Itself) }
}

/// # Safety
/// `x` is readable for `n` elements.
#[inline(always)]
pub(super) unsafe fn greatest<V: Lanes>(x: *const f32, n: usize) -> f32 {
    // SAFETY: by this function's contract; the padded copy has `MAX_LANES` elements.
    unsafe {
        let (mut greatest, mut nan) = (V::splat(f32::NEG_INFINITY), V::splat(0.0));
        let mut i = 0;
        while i < n {
            let len = V::N.min(n - i);
            let values = if len == V::N {
                V::load(x.add(i))
            } else {
                let mut last = [f32::NEG_INFINITY; MAX_LANES];
                std::ptr::copy_nonoverlapping(x.add(i), last.as_mut_ptr(), len);
                V::load(last.as_ptr())
            };
            greatest = values.max(greatest);
            nan = V::select_ge(values, values, nan, V::splat(1.0));
            i += len;
        }
        if nan.sum() > 0.0 {
            return f32::NAN;
        }
        greatest.max_lane()
    }
}
