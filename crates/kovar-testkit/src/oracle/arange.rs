//! `y[i] = start + i * step`.

use kovar_core::DType;
use kovar_core::ops::Arange;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn arange(attributes: &Arange, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let Arange { start, step, n, .. } = *attributes;
    let dims = inputs.output_dims();
    Ok(match attributes.dtype {
        DType::I32 | DType::I64 => {
            let value = |i| start as i128 + i as i128 * step as i128;
            TensorData::ints(dims, (0..n).map(|i| value(i) as i64).collect())?
        }
        _ => TensorData::floats(dims, (0..n).map(|i| start + i as f64 * step).collect())?,
    })
}
