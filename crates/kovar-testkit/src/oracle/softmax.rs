//! `y = softmax(scale * x + mask)` over the last dimension; zeros for a row excluded as a whole.

use kovar_core::ops::Softmax;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn softmax(
    attributes: &Softmax,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let factor = f64::from(attributes.scale);
    let mut scores: Vec<f64> = x.values()?.iter().map(|x| factor * x).collect();
    if let Some(mask) = inputs.optional(inputs.has(1))? {
        let mask = mask.broadcast(x.dims())?;
        scores.iter_mut().zip(mask).for_each(|(s, m)| *s += m);
    }
    for row in scores.chunks_exact_mut(x.from_end(0).max(1)) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            row.fill(0.0);
            continue;
        }
        row.iter_mut().for_each(|s| *s = (*s - largest).exp());
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|s| *s /= total);
    }
    Ok(TensorData::floats(inputs.output_dims(), scores)?)
}
