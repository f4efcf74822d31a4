//! `y = x / sqrt(mean(x^2) + eps) * weight` over the last dimension.

use kovar_core::ops::RmsNorm;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn rms_norm(
    attributes: &RmsNorm,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let n = x.from_end(0);
    let weight = match inputs.optional(inputs.has(1))? {
        Some(weight) => weight.values()?.to_vec(),
        None => vec![1.0; n],
    };
    let mut out = Vec::new();
    for row in x.values()?.chunks_exact(n.max(1)) {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / n as f64;
        let norm = (mean + f64::from(attributes.eps)).sqrt();
        out.extend(row.iter().zip(&weight).map(|(x, w)| x / norm * w));
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
