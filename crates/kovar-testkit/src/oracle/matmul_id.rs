//! `y[t, s, n] = sum_k x[t, s', k] * w[ids[t, s], n, k]`.

use kovar_core::ops::{MatmulId, Precision};

use super::matmul::quantized;
use super::{Activations, Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn matmul_id(
    attributes: &MatmulId,
    inputs: &Inputs<'_>,
    activations: Activations,
) -> Result<TensorData, OracleError> {
    let (w, x, ids) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
    let (experts, n, k) = (w.from_end(2), w.from_end(1), w.from_end(0));
    let (used, shared) = (ids.from_end(0), x.from_end(1) == 1);
    let quantizes = activations == Activations::Quantized
        && inputs.dtype(0).is_quantized()
        && attributes.precision == Precision::Default;
    let w = w.values()?;
    let mut out = Vec::new();
    for (i, &id) in ids.indices()?.iter().enumerate() {
        let Some(expert) = usize::try_from(id).ok().filter(|&id| id < experts) else {
            out.extend(std::iter::repeat_n(0.0, n));
            continue;
        };
        let row = if shared { i / used } else { i };
        let row = &x.values()?[row * k..][..k];
        let row = if quantizes {
            quantized(row)?
        } else {
            row.to_vec()
        };
        for column in 0..n {
            let weights = &w[(expert * n + column) * k..][..k];
            out.push(row.iter().zip(weights).map(|(x, w)| x * w).sum());
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
