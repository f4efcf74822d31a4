//! `y = f(x)`.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use kovar_core::ops::{Unary, UnaryKind};

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn unary(attributes: &Unary, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let kind = attributes.kind;
    let x = inputs.get(0)?.values()?.iter();
    let out: Option<Vec<f64>> = x.map(|&x| at(kind, x)).collect();
    let out = out.ok_or(OracleError::UnknownOp { op: inputs.op })?;
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}

fn at(kind: UnaryKind, x: f64) -> Option<f64> {
    Some(match kind {
        UnaryKind::Neg => -x,
        UnaryKind::Abs => x.abs(),
        UnaryKind::Sqr => x * x,
        UnaryKind::Sqrt => x.sqrt(),
        UnaryKind::Exp => x.exp(),
        UnaryKind::Log => x.ln(),
        UnaryKind::Sin => x.sin(),
        UnaryKind::Cos => x.cos(),
        UnaryKind::Tanh => x.tanh(),
        UnaryKind::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryKind::Silu => silu(x),
        UnaryKind::Gelu => gelu(x),
        UnaryKind::GeluTanh => {
            let u = (2.0 / PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + u.tanh())
        }
        UnaryKind::GeluQuick => x / (1.0 + (-1.702 * x).exp()),
        UnaryKind::Relu => relu(x),
        UnaryKind::ReluSqr => relu(x).powi(2),
        UnaryKind::LeakyRelu { slope } => {
            if x < 0.0 {
                f64::from(slope) * x
            } else {
                x
            }
        }
        // The greater part is kept outside of the exponential, which would overflow.
        UnaryKind::Softplus => relu(x) + (-x.abs()).exp().ln_1p(),
        UnaryKind::Clamp { min, max } => x.clamp(min.into(), max.into()),
        _ => return None,
    })
}

pub(super) fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// The exact form, with the error function.
pub(super) fn gelu(x: f64) -> f64 {
    x * 0.5 * erfc(-x * FRAC_1_SQRT_2)
}

/// NaN of NaN, unlike `f64::max`.
pub(super) fn relu(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// The complementary error function: near 0 from the power series of `erf` without
/// cancellation (Abramowitz and Stegun 7.1.6), beyond from the continued fraction (7.1.14).
fn erfc(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let scale = (-x * x).exp() / PI.sqrt();
    if scale == 0.0 {
        return 0.0;
    }
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        return 1.0 - 2.0 * scale * sum;
    }
    let fraction = (1..200)
        .rev()
        .fold(x, |tail, n| x + f64::from(n) / 2.0 / tail);
    scale / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_complementary_error_function_has_its_tabulated_values() {
        for (x, expected) in [
            (0.0, 1.0),
            (0.5, 0.479500122186953),
            (1.0, 0.157299207050285),
            (2.4, 6.885138966450786e-4),
            (2.6, 2.36034416529349e-4),
            (4.0, 1.541725790028002e-8),
            (-1.0, 1.842700792949715),
            (-9.0, 2.0),
        ] {
            let error = (erfc(x) / expected - 1.0).abs();
            assert!(error < 1e-11, "erfc({x}) is {}, not {expected}", erfc(x));
        }
        assert_eq!(erfc(1e12), 0.0);
    }

    #[test]
    fn clamping_and_rectifying_keep_nan() {
        let clamp = UnaryKind::Clamp {
            min: -1.0,
            max: 2.0,
        };
        assert_eq!(at(clamp, 3.0), Some(2.0));
        assert_eq!(at(clamp, -3.0), Some(-1.0));
        assert!(at(clamp, f64::NAN).unwrap().is_nan());
        assert!(at(UnaryKind::Relu, f64::NAN).unwrap().is_nan());
    }
}
