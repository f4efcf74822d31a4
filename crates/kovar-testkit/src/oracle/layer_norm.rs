//! `y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias` over the last dimension.

use kovar_core::ops::LayerNorm;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn layer_norm(
    attributes: &LayerNorm,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let n = x.from_end(0);
    let factors = |index, otherwise: f64| match inputs.optional(inputs.has(index))? {
        Some(factors) => Ok::<_, OracleError>(factors.values()?.to_vec()),
        None => Ok(vec![otherwise; n]),
    };
    let (weight, bias) = (factors(1, 1.0)?, factors(2, 0.0)?);
    let mut out = Vec::new();
    for row in x.values()?.chunks_exact(n.max(1)) {
        let (mean, divisor) = mean_and_divisor(row, attributes.eps);
        let factors = weight.iter().zip(&bias);
        out.extend(
            row.iter()
                .zip(factors)
                .map(|(x, (w, b))| (x - mean) / divisor * w + b),
        );
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}

/// The mean, and the root of the variance plus `eps`.
pub(super) fn mean_and_divisor(x: &[f64], eps: f32) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, (variance + f64::from(eps)).sqrt())
}
