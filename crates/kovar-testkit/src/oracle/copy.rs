//! `y = x`, rounded to the result's dtype if it is another one.

use kovar_core::ops::Copy;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn copy(attributes: &Copy, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    if inputs.dtype(0) == attributes.dtype {
        return Ok(x.clone());
    }
    Ok(x.rounded_to(attributes.dtype)?)
}
