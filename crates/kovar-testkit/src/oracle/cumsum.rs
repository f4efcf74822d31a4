//! `y[.., i] = x[.., 0] + .. + x[.., i]`.

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn cumsum(inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let mut out = x.values()?.to_vec();
    for row in out.chunks_exact_mut(x.from_end(0).max(1)) {
        for i in 1..row.len() {
            row[i] += row[i - 1];
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
