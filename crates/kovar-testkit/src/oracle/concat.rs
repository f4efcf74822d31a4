//! Operands one after another along a dimension.

use kovar_core::ops::Concat;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn concat(attributes: &Concat, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let dim = attributes.dim;
    let sources: Vec<&TensorData> = inputs.data.iter().collect();
    let from = |index: &[usize]| {
        let mut index = index.to_vec();
        for (source, x) in sources.iter().enumerate() {
            if index[dim] < x.dims()[dim] {
                return Some((source, index));
            }
            index[dim] -= x.dims()[dim];
        }
        None
    };
    Ok(TensorData::gathered(
        inputs.output_dims(),
        &sources,
        0.0,
        from,
    )?)
}
