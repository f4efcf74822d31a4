//! `S = S diag(w) + (S a) b^T + v k^T`, `y = S r`, token by token and head by head.

use kovar_core::ops::Wkv7;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

/// The result and the state after the last valid token.
pub(super) fn wkv7(
    attributes: &Wkv7,
    inputs: &Inputs<'_>,
) -> Result<(TensorData, TensorData), OracleError> {
    let vectors = (0..6)
        .map(|i| Ok(inputs.get(i)?.values()?))
        .collect::<Result<Vec<_>, OracleError>>()?;
    let r = inputs.get(0)?;
    let (n, heads, tokens) = (r.from_end(0), r.from_end(1), r.from_end(2));
    let valid = inputs.valid(attributes.n_valid, tokens)?;
    let mut state = inputs.get(6)?.values()?.to_vec();
    let mut y = vec![0.0; tokens * heads * n];
    for (t, h) in (0..valid).flat_map(|t| (0..heads).map(move |h| (t, h))) {
        let of = |i: usize| &vectors[i][(t * heads + h) * n..][..n];
        let (r, w, k, v, a, b) = (of(0), of(1), of(2), of(3), of(4), of(5));
        for i in 0..n {
            let row = &mut state[(h * n + i) * n..][..n];
            let removed: f64 = row.iter().zip(a).map(|(s, a)| s * a).sum();
            for j in 0..n {
                row[j] = row[j] * w[j] + removed * b[j] + v[i] * k[j];
            }
            y[(t * heads + h) * n + i] = row.iter().zip(r).map(|(s, r)| s * r).sum();
        }
    }
    let state = TensorData::floats(inputs.get(6)?.dims(), state)?;
    Ok((TensorData::floats(inputs.output_dims(), y)?, state))
}
