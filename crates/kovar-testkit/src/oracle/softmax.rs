//! `y = softmax(scale * x + slope(head) * mask)` over the last dimension; zeros for a row excluded
//! as a whole.

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
        let (heads, head_len) = (x.from_end(2), x.from_end(1) * x.from_end(0));
        let slopes = slopes(f64::from(attributes.max_bias), heads);
        for (i, (score, m)) in scores.iter_mut().zip(mask).enumerate() {
            *score += slopes[i / head_len % heads] * m;
        }
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

/// The slopes of ALiBi as its authors list them: for a power of two, a geometric sequence whose
/// start is its ratio; else those of the power below, and every other one of twice that.
fn slopes(max_bias: f64, heads: usize) -> Vec<f64> {
    if max_bias == 0.0 || heads == 0 {
        return vec![1.0; heads];
    }
    if heads.is_power_of_two() {
        let ratio = 2f64.powf(-max_bias / heads as f64);
        return (1..=heads).map(|i| ratio.powi(i as i32)).collect();
    }
    let below = heads.next_power_of_two() / 2;
    let mut all = slopes(max_bias, below);
    all.extend(slopes(max_bias, 2 * below).into_iter().step_by(2));
    all.truncate(heads);
    all
}
