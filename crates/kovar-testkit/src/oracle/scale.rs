//! `y = scale * x`.

use kovar_core::ops::Scale;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn scale(attributes: &Scale, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let factor = f64::from(attributes.scale);
    let x = inputs.get(0)?.values()?;
    let out = x.iter().map(|x| factor * x).collect();
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
