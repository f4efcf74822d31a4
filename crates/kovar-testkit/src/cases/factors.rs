//! Weights and biases of norms.

use kovar_core::error::GraphError;
use kovar_core::{DType, ValueId};

use super::sweep::{Labels, Point};
use super::{FLOATS, Form, Place, Setup, lower};
use crate::synthetic::Fill;

/// A weight's or bias' dtype, place and form.
pub(super) type Factor = (DType, Place, Form);

pub(super) const WEIGHT: Factor = (DType::F32, Place::Weight, Form::Contiguous);

const NAMES: [&str; 2] = ["weight", "bias"];

/// Every pair of dtypes, each place of a factor, and these forms of it.
pub(super) fn sweep(forms: [Form; 3]) -> Vec<(Point, Factor)> {
    let mut points = Vec::new();
    for dtype in FLOATS {
        for factor in FLOATS {
            for place in [Place::Weight, Place::Temp] {
                for form in forms {
                    points.push((Point::dense(dtype, &[3, 2, 67]), (factor, place, form)));
                }
            }
        }
    }
    points
}

/// Adds the factors to a case's labels.
pub(super) fn add_labels(labels: &mut Labels, factors: &[Factor]) {
    for (name, (dtype, place, form)) in NAMES.iter().zip(factors) {
        labels.0 += &format!("x{}", lower(*dtype));
        labels.2 += &format!("-{name}_{}_{}", place.name(), form.name());
    }
}

/// The factors as operands of `n` elements each.
pub(super) fn operands(
    setup: &mut Setup,
    factors: &[Factor],
    n: usize,
) -> Result<Vec<ValueId>, GraphError> {
    let factors = NAMES.iter().zip(factors);
    factors
        .map(|(name, &(dtype, place, form))| {
            setup.operand(name, place, dtype, &[n], form, Fill::Gaussian(1.0))
        })
        .collect()
}
