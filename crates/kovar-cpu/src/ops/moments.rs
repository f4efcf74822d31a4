//! Means and variances, accumulated in f64.

/// The mean of some elements and the sum of the squares of their distances from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) count: f64,
    pub(super) mean: f64,
    pub(super) deviations: f64,
}

impl Moments {
    /// The moments of `count` elements whose sum is about `sum`. `deviations` gives the sum of
    /// their distances from a center and the sum of the squares of the distances. The sum need not
    /// be exact: the distances from an inexact mean give the error of the mean.
    pub(super) fn of(count: usize, sum: f64, deviations: impl FnOnce(f32) -> (f64, f64)) -> Self {
        let count = count as f64;
        let center = (sum / count) as f32;
        let (distances, squares) = deviations(center);
        let off = distances / count;
        let deviations = squares - distances * off;
        Self {
            count,
            mean: f64::from(center) + off,
            // Not `max`, which would hide a NaN.
            deviations: if deviations < 0.0 { 0.0 } else { deviations },
        }
    }

    /// The moments of all elements of several parts (Chan et al. 1983).
    pub(super) fn joined(parts: &[Moments]) -> Self {
        let count: f64 = parts.iter().map(|part| part.count).sum();
        let sum: f64 = parts.iter().map(|part| part.count * part.mean).sum();
        let mean = sum / count;
        let squares = parts.iter().map(|part| {
            let off = part.mean - mean;
            part.deviations + part.count * off * off
        });
        Self {
            count,
            mean,
            deviations: squares.sum(),
        }
    }

    /// `1 / sqrt(var + eps)`
    pub(super) fn factor(&self, eps: f32) -> f64 {
        1.0 / (self.deviations / self.count + f64::from(eps)).sqrt()
    }

    /// The arguments of the vector kernel `center_scale` for `(x - mean) * factor + shift`.
    pub(super) fn center_scale(&self, factor: f64, shift: f64) -> (f32, f32, f32) {
        let center = self.mean as f32;
        let off = self.mean - f64::from(center);
        (center, factor as f32, (shift - off * factor) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_parts_have_the_moments_of_the_whole() {
        let x: Vec<f64> = (0..100).map(|i| f64::from(i * i % 17) + 1e6).collect();
        let moments = |x: &[f64]| {
            Moments::of(x.len(), x.iter().sum(), |center| {
                let distances = || x.iter().map(|x| x - f64::from(center));
                (distances().sum(), distances().map(|d| d * d).sum())
            })
        };
        let whole = moments(&x);
        let joined = Moments::joined(&[moments(&x[..13]), moments(&x[13..50]), moments(&x[50..])]);
        assert!((whole.mean - joined.mean).abs() < 1e-8);
        assert!((whole.deviations / joined.deviations - 1.0).abs() < 1e-9);
    }
}
