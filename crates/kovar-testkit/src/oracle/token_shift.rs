//! `y[0] = state`, `y[t] = x[t - 1]`; the state becomes the last valid row of `x`.

use kovar_core::ops::TokenShift;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

/// The result and the state afterwards.
pub(super) fn token_shift(
    attributes: &TokenShift,
    inputs: &Inputs<'_>,
) -> Result<(TensorData, TensorData), OracleError> {
    let (x, state) = (inputs.get(0)?, inputs.get(1)?);
    let (n, tokens) = (x.from_end(0), x.from_end(1));
    let valid = inputs.valid(attributes.n_valid, tokens)?;
    // The state followed by the valid rows: results are all but the last of it.
    let mut rows = state.values()?.to_vec();
    rows.extend_from_slice(&x.values()?[..valid * n]);
    let last = rows.split_off(valid * n);
    rows.resize(tokens * n, 0.0);
    let state = TensorData::floats(state.dims(), last)?;
    Ok((TensorData::floats(inputs.output_dims(), rows)?, state))
}
