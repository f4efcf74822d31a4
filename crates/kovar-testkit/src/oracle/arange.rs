//! `y[i] = start + i * step`.

use kovar_core::DType;
use kovar_core::ops::Arange;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn arange(attributes: &Arange, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let Arange { start, step, n, .. } = *attributes;
    let values = (0..n).map(|i| start + i as f64 * step);
    let dims = inputs.output_dims();
    Ok(match attributes.dtype {
        DType::I32 => TensorData::ints(dims, values.map(|value| value as i64).collect())?,
        _ => TensorData::floats(dims, values.collect())?,
    })
}
