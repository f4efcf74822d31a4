//! The distance of a result from the expected result.

use serde::Serialize;

/// The largest error of a result, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Worst {
    /// The size of the error.
    pub error: f64,
    /// The element's index along each dimension.
    pub index: Vec<usize>,
    /// The expected element.
    pub expected: f64,
    /// The element found.
    pub actual: f64,
}

/// The error of a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Normalised mean square error: `sum (actual - expected)^2 / sum expected^2`. Infinite if
    /// one side has a NaN or an infinity that the other doesn't, or if only zeros are expected and
    /// others are found.
    pub nmse: f64,
    /// The largest `|actual - expected|`; of elements that are not finite on one side only, the
    /// first one.
    pub worst_absolute: Worst,
    /// The largest `|actual - expected| / |expected|` among nonzero expected elements.
    pub worst_relative: Worst,
}

/// Compares the elements of a tensor of `dims`, only those marked in `mask` if there is one.
pub fn compare(
    dims: &[usize],
    expected: &[f64],
    actual: &[f64],
    mask: Option<&[bool]>,
) -> Comparison {
    let (mut errors, mut energy) = (0.0, 0.0);
    let (mut absolute, mut relative) = (Worst::default(), Worst::default());
    let keep = |worst: &mut Worst, error: f64, at: usize| {
        if error > worst.error {
            *worst = Worst {
                error,
                index: index_tuple(dims, at),
                expected: expected[at],
                actual: actual[at],
            };
        }
    };
    for (at, (&e, &a)) in expected.iter().zip(actual).enumerate() {
        let unmarked = mask.is_some_and(|mask| mask.get(at) != Some(&true));
        if unmarked || e == a || (e.is_nan() && a.is_nan()) {
            energy += if unmarked || !e.is_finite() {
                0.0
            } else {
                e * e
            };
            continue;
        }
        let finite = e.is_finite() && a.is_finite();
        let error = if finite { (a - e).abs() } else { f64::INFINITY };
        errors += error * error;
        energy += if e.is_finite() { e * e } else { 0.0 };
        keep(&mut absolute, error, at);
        if e != 0.0 {
            keep(
                &mut relative,
                if finite { error / e.abs() } else { error },
                at,
            );
        }
    }
    let nmse = if errors == 0.0 { 0.0 } else { errors / energy };
    Comparison {
        nmse,
        worst_absolute: absolute,
        worst_relative: relative,
    }
}

/// The normalised mean square error of all elements; see [`Comparison::nmse`].
pub fn nmse(expected: &[f64], actual: &[f64]) -> f64 {
    compare(&[expected.len()], expected, actual, None).nmse
}

/// The index along each dimension of element `at` in row-major order.
pub fn index_tuple(dims: &[usize], mut at: usize) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (place, &size) in index.iter_mut().zip(dims).rev() {
        *place = at % size.max(1);
        at /= size.max(1);
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_element_is_found_with_its_index() {
        let expected = [1.0, 2.0, 0.0, -4.0, 5.0, 6.0];
        let actual = [1.0, 2.5, 0.0, -4.0, 5.0, 5.0];
        let c = compare(&[2, 3], &expected, &actual, None);
        assert_eq!(c.nmse, 1.25 / 82.0);
        assert_eq!(c.worst_absolute.index, [1, 2]);
        assert_eq!(c.worst_relative.index, [0, 1]);
        assert_eq!(c.worst_relative.error, 0.25);
    }

    #[test]
    fn a_nan_on_one_side_is_an_infinite_error() {
        assert_eq!(nmse(&[1.0, 2.0], &[1.0, f64::NAN]), f64::INFINITY);
        assert_eq!(nmse(&[1.0, f64::INFINITY], &[1.0, 2.0]), f64::INFINITY);
        assert_eq!(
            nmse(&[f64::NAN, f64::INFINITY], &[f64::NAN, f64::INFINITY]),
            0.0
        );
    }

    #[test]
    fn zeros_are_matched_by_zeros_only() {
        assert_eq!(nmse(&[0.0, 0.0], &[0.0, -0.0]), 0.0);
        assert_eq!(nmse(&[0.0, 0.0], &[0.0, 1e-9]), f64::INFINITY);
        assert_eq!(nmse(&[], &[]), 0.0);
    }

    #[test]
    fn unmarked_elements_do_not_count() {
        let c = compare(&[2], &[1.0, 2.0], &[1.0, f64::NAN], Some(&[true, false]));
        assert_eq!(c.nmse, 0.0);
    }
}
