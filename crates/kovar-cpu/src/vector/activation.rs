//! Functions of one f32 row, alone or as the gate of another row. The result may be the same row as
//! an operand.

use super::elementwise::{Pointwise, map};
use super::lanes::Lanes;

/// Defines a type for a function of one vector, its row kernel and, if named, the row kernel that
/// multiplies the function by a second row.
macro_rules! activation {
    ($function:ident, $row:ident, |$x:ident: $v:ident| $body:expr, $($gated_type:ident, $gated:ident)?) => {
        struct $function;

        impl $function {
            /// # Safety
            /// Needs a processor of the level of `V`.
            #[inline(always)]
            unsafe fn of<$v: Lanes>($x: $v) -> $v {
                // SAFETY: by this function's contract.
                unsafe { $body }
            }
        }

        impl<V: Lanes> Pointwise<V> for $function {
            #[inline(always)]
            unsafe fn at(&self, x: V, _: V) -> V {
                // SAFETY: by the trait's contract.
                unsafe { $function::of(x) }
            }
        }

        /// # Safety
        /// As [`map`].
        #[inline(always)]
        pub(super) unsafe fn $row<V: Lanes>(x: *const f32, y: *mut f32, n: usize) {
            // SAFETY: by this function's contract, on a processor of the level.
            unsafe { map::<V>(x, x, y, n, $function) }
        }

        $(
            struct $gated_type;

            impl<V: Lanes> Pointwise<V> for $gated_type {
                #[inline(always)]
                unsafe fn at(&self, gate: V, up: V) -> V {
                    // SAFETY: by the trait's contract.
                    unsafe { $function::of(gate).mul(up) }
                }
            }

            /// # Safety
            /// As [`map`].
            #[inline(always)]
            pub(super) unsafe fn $gated<V: Lanes>(
                gate: *const f32,
                up: *const f32,
                y: *mut f32,
                n: usize,
            ) {
                // SAFETY: by this function's contract, on a processor of the level.
                unsafe { map::<V>(gate, up, y, n, $gated_type) }
            }
        )?
    };
}

activation!(Exp, exp, |x: V| x.exp(),);
activation!(Tanh, tanh, |x: V| tanh_of(x),);
activation!(Sigmoid, sigmoid, |x: V| V::splat(1.0)
    .div(one_and_exp_of_minus(x)),);
activation!(
    Silu,
    silu,
    |x: V| x.div(one_and_exp_of_minus(x)),
    Swiglu,
    swiglu
);
activation!(Gelu, gelu, |x: V| gelu_of(x), Geglu, geglu);
activation!(GeluTanh, gelu_tanh, |x: V| gelu_tanh_of(x),);
activation!(GeluQuick, gelu_quick, |x: V| x
    .div(one_and_exp_of_minus(x.mul(V::splat(1.702)))),);
activation!(Relu, relu, |x: V| V::splat(0.0).max(x), Reglu, reglu);
activation!(ReluSqr, relu_sqr, |x: V| square(V::splat(0.0).max(x)),);
activation!(Neg, neg, |x: V| V::splat(-0.0).sub(x),);
activation!(Abs, abs, |x: V| magnitude(x),);
activation!(Sqr, sqr, |x: V| square(x),);

/// `x^2`
#[inline(always)]
unsafe fn square<V: Lanes>(x: V) -> V {
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe { x.mul(x) }
}

/// `1 + e^-x`
#[inline(always)]
unsafe fn one_and_exp_of_minus<V: Lanes>(x: V) -> V {
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe { V::splat(0.0).sub(x).exp().add(V::splat(1.0)) }
}

/// `|x|`
#[inline(always)]
unsafe fn magnitude<V: Lanes>(x: V) -> V {
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe { V::splat(0.0).sub(x).max(x) }
}

/// A polynomial in `x`, the coefficient of the highest power first.
#[inline(always)]
unsafe fn polynomial<V: Lanes, const N: usize>(x: V, coefficients: [f32; N]) -> V {
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe {
        let mut sum = V::splat(0.0);
        for coefficient in coefficients {
            sum = sum.mul_add(x, V::splat(coefficient));
        }
        sum
    }
}

/// `tanh(x)` to a few units in the last place, near 0 too. Near 0 it is computed from a Chebyshev
/// fit of `(tanh(x) / x - 1) / x^2` with an error of 2e-9, elsewhere from the exponential.
#[inline(always)]
unsafe fn tanh_of<V: Lanes>(x: V) -> V {
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe {
        let square = x.mul(x);
        let series = polynomial(
            square,
            [
                0.002_292_744_8,
                -0.008_343_945,
                0.021_768_918,
                -0.053_959_26,
                0.133_333_04,
                -0.333_333_34,
            ],
        );
        let near = series.mul(square).mul_add(x, x);
        V::select_ge(magnitude(x), V::splat(0.625), x.tanh(), near)
    }
}

/// `x * Phi(x)`.
///
/// `Phi(-|x|) = e^(-x^2 / 2) t P(t)` with `t = 1 / (1 + |x| / 4)`, where `P` is a Chebyshev fit
/// for `|x| <= 14`; above 14 the exponential is 0. The error of the fit is 3e-9, so the tail's
/// relative error is that of the exponential of a rounded argument.
#[inline(always)]
unsafe fn gelu_of<V: Lanes>(x: V) -> V {
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe {
        let one = V::splat(1.0);
        let t = one.div(magnitude(x).mul_add(V::splat(0.25), one));
        let fit = polynomial(
            t,
            [
                0.015_383_603,
                -0.056_345_463,
                0.036_615_256,
                0.048_318_084,
                -0.003_677_96,
                0.095_375_57,
                0.069_011_636,
                0.096_150_87,
                0.099_416_62,
                0.099_751_79,
            ],
        );
        let tail = x.mul(x).mul(V::splat(-0.5)).exp().mul(t).mul(fit);
        x.mul(V::select_ge(x, V::splat(0.0), one.sub(tail), tail))
    }
}

/// `x * sigmoid(2 u)`, which equals `x / 2 * (1 + tanh(u))` without cancellation.
#[inline(always)]
unsafe fn gelu_tanh_of<V: Lanes>(x: V) -> V {
    // 2 sqrt(2 / pi), and that times 0.044715.
    const LINEAR: f32 = 1.595_769_2;
    const CUBIC: f32 = 0.071_354_816;
    // SAFETY: on a processor of the level, by the callers' contracts.
    unsafe {
        let square = x.mul(x);
        let slope = square.mul_add(V::splat(CUBIC), V::splat(LINEAR));
        x.div(one_and_exp_of_minus(slope.mul(x)))
    }
}
