//! `y = x`, rounded to another dtype.

use kovar_core::ops::Copy;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn copy(attributes: &Copy, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    Ok(inputs.get(0)?.rounded_to(attributes.dtype)?)
}
