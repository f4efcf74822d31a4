//! `y = x / max(sqrt(sum(x^2)), eps)` over the last dimension.

use kovar_core::ops::L2Norm;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn l2_norm(attributes: &L2Norm, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let mut out = x.values()?.to_vec();
    for row in out.chunks_exact_mut(x.from_end(0).max(1)) {
        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let divisor = length.max(f64::from(attributes.eps));
        row.iter_mut().for_each(|x| *x /= divisor);
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
