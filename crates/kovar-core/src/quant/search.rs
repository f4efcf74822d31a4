//! Scale searches of the K and IQ4 encoders: for one sub-block, the scale (and minimum) of least
//! weighted squared error.
//!
//! Rounding to a grid and fitting a line to the result is done for a ladder of grid steps near
//! `range / max_code`; the best fit of all is kept. The first rung is the plain grid over the
//! range itself, so the result is never worse than that. Sums are f64: products of three tiny
//! values would vanish in f32.

/// `x = scale * q - min` with `q` in `0..=max_code`; neither is negative.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AffineFit {
    pub scale: f64,
    pub min: f64,
}

/// The most rounds of coding with the best fit and fitting again, while that lowers the error.
const REFINEMENTS: usize = 4;

/// How far the ladder goes: the grid takes `max_code + offset` steps for the offsets
/// `-reach, -reach + 0.1, ..., reach`.
fn ladder(reach: f64) -> impl Iterator<Item = f64> {
    let rungs = (reach * 10.0) as i32;
    (-rungs..=rungs).map(|rung| f64::from(rung) * 0.1)
}

/// Weights of the squared errors: `rms(x) + |x|`. Large weights of a model matter more, and the
/// error of every weight stays bounded.
pub(super) fn magnitude_weights<const N: usize>(values: &[f32; N]) -> [f64; N] {
    let square_sum: f64 = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let rms = (square_sum / N as f64).sqrt();
    values.map(|x| rms + f64::from(x).abs())
}

/// Fits `scale * q - min` to finite values.
pub(super) fn fit_affine<const N: usize>(
    values: &[f32; N],
    weights: &[f64; N],
    max_code: u8,
    reach: f64,
) -> AffineFit {
    let low = values.iter().fold(0.0, |low, &x| f64::from(x).min(low));
    let high = values.iter().fold(low, |high, &x| f64::from(x).max(high));
    let max_code = f64::from(max_code);
    let mut best = AffineFit {
        scale: (high - low) / max_code,
        min: -low,
    };
    if best.scale == 0.0 {
        return best;
    }
    // The nearest codes for a fit; every grid of the ladder is itself a fit.
    let codes_of = |fit: AffineFit| {
        values.map(|x| {
            ((f64::from(x) + fit.min) / fit.scale)
                .round_ties_even()
                .clamp(0.0, max_code)
        })
    };
    let mut least = affine_error(values, weights, &codes_of(best), best);
    for offset in ladder(reach) {
        let codes = codes_of(AffineFit {
            scale: (high - low) / (max_code + offset),
            min: -low,
        });
        let Some(fit) = solve_affine(values, weights, &codes) else {
            continue;
        };
        let error = affine_error(values, weights, &codes, fit);
        if error < least {
            (least, best) = (error, fit);
        }
    }
    for _ in 0..REFINEMENTS {
        let codes = codes_of(best);
        let Some(fit) = solve_affine(values, weights, &codes) else {
            break;
        };
        let error = affine_error(values, weights, &codes, fit);
        if error >= least {
            break;
        }
        (least, best) = (error, fit);
    }
    best
}

/// The weighted least-squares line through `(q, x)`, with `min` held at zero if it would be
/// negative; `None` if all codes are equal.
fn solve_affine<const N: usize>(
    values: &[f32; N],
    weights: &[f64; N],
    codes: &[f64; N],
) -> Option<AffineFit> {
    let (mut w_sum, mut q_sum, mut x_sum, mut qq_sum, mut qx_sum) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for ((&x, &w), &q) in values.iter().zip(weights).zip(codes) {
        let x = f64::from(x);
        w_sum += w;
        q_sum += w * q;
        x_sum += w * x;
        qq_sum += w * q * q;
        qx_sum += w * q * x;
    }
    let determinant = w_sum * qq_sum - q_sum * q_sum;
    if determinant <= 0.0 {
        return None;
    }
    let scale = (w_sum * qx_sum - q_sum * x_sum) / determinant;
    let min = (q_sum * qx_sum - qq_sum * x_sum) / determinant;
    let fit = if min >= 0.0 {
        AffineFit { scale, min }
    } else {
        AffineFit {
            scale: qx_sum / qq_sum,
            min: 0.0,
        }
    };
    (fit.scale > 0.0).then_some(fit)
}

fn affine_error<const N: usize>(
    values: &[f32; N],
    weights: &[f64; N],
    codes: &[f64; N],
    fit: AffineFit,
) -> f64 {
    let terms = values.iter().zip(weights).zip(codes);
    terms
        .map(|((&x, w), q)| w * (fit.scale * q - fit.min - f64::from(x)).powi(2))
        .sum()
}

/// Fits `scale * q` with `q` in `-half..half` to finite values. The scale may be negative: the
/// value of largest magnitude takes the side with one more code.
pub(super) fn fit_symmetric<const N: usize>(
    values: &[f32; N],
    weights: &[f64; N],
    half: f64,
    reach: f64,
) -> f64 {
    let anchors = ladder(reach).map(|offset| -(half + offset));
    fit_levels(values, weights, anchors, |q| {
        q.round_ties_even().clamp(-half, half - 1.0)
    })
}

/// Fits `scale * level` to finite values; `nearest` gives the level next to a number.
///
/// An anchor is where the value of largest magnitude is put: on or near a level far from zero. The
/// result is never worse than that of any anchor.
pub(super) fn fit_levels<const N: usize>(
    values: &[f32; N],
    weights: &[f64; N],
    anchors: impl Iterator<Item = f64>,
    nearest: impl Fn(f64) -> f64,
) -> f64 {
    let largest = f64::from(super::largest_magnitude(values));
    if largest == 0.0 {
        return 0.0;
    }
    // The squared error of the best scale `qx / qq` is `xx - qx^2 / qq`.
    let (mut best, mut most) = (0.0, -1.0);
    for anchor in anchors {
        let inverse = anchor / largest;
        let (mut qx_sum, mut qq_sum) = (0.0, 0.0);
        for (&x, &w) in values.iter().zip(weights) {
            let x = f64::from(x);
            let q = nearest(x * inverse);
            qx_sum += w * q * x;
            qq_sum += w * q * q;
        }
        // The largest value never has level 0, so the divisor is positive.
        let scale = qx_sum / qq_sum;
        if qx_sum * scale > most {
            (best, most) = (scale, qx_sum * scale);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_on_a_grid_are_found_exactly() {
        let values: [f32; 32] = std::array::from_fn(|i| (i % 16) as f32 * 0.25 - 1.5);
        let fit = fit_affine(&values, &magnitude_weights(&values), 15, 1.0);
        assert!((fit.scale - 0.25).abs() < 1e-12 && (fit.min - 1.5).abs() < 1e-12);

        let values: [f32; 16] = std::array::from_fn(|i| (i as f32 * 4.0 - 32.0) * -0.125);
        let scale = fit_symmetric(&values, &magnitude_weights(&values), 32.0, 0.9);
        assert!((scale + 0.125).abs() < 1e-12);
    }

    #[test]
    fn minima_are_never_negative() {
        let values: [f32; 32] = std::array::from_fn(|i| 5.0 + i as f32 * 0.01);
        let fit = fit_affine(&values, &magnitude_weights(&values), 15, 1.0);
        assert_eq!(fit.min, 0.0);
        assert!(fit.scale > 0.0);
    }

    #[test]
    fn constant_sub_blocks_need_no_scale() {
        let fit = fit_affine(&[-2.0; 32], &magnitude_weights(&[-2.0; 32]), 15, 1.0);
        assert_eq!((fit.scale, fit.min), (0.0, 2.0));
        assert_eq!(fit_symmetric(&[0.0; 16], &[0.0; 16], 32.0, 0.9), 0.0);
    }
}
