//! `y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c]`, mean and variance by group of
//! consecutive channels.

use kovar_core::ops::GroupNorm;

use super::layer_norm::mean_and_divisor;
use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn group_norm(
    attributes: &GroupNorm,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let channels = x.dims().get(1).copied().unwrap_or(1);
    let spatial: usize = x.dims().iter().skip(2).product();
    let factors = |index, otherwise: f64| match inputs.optional(inputs.has(index))? {
        Some(factors) => Ok::<_, OracleError>(factors.values()?.to_vec()),
        None => Ok(vec![otherwise; channels]),
    };
    let (weight, bias) = (factors(1, 1.0)?, factors(2, 0.0)?);
    let mut out = x.values()?.to_vec();
    let group_len = channels / attributes.groups * spatial;
    for (g, group) in out.chunks_exact_mut(group_len.max(1)).enumerate() {
        let (mean, divisor) = mean_and_divisor(group, attributes.eps);
        let first = g % attributes.groups * (channels / attributes.groups);
        for (i, x) in group.iter_mut().enumerate() {
            let channel = first + i / spatial;
            *x = (*x - mean) / divisor * weight[channel] + bias[channel];
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
