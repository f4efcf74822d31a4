//! `x` and a constant around it.

use kovar_core::ops::Pad;

use super::{Inputs, OracleError};
use crate::tensor::{Elements, TensorData};

pub(super) fn pad(attributes: &Pad, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let from = |index: &[usize]| {
        let inner = index.iter().zip(attributes.before.iter()).zip(x.dims());
        let inner = inner.map(|((i, before), &size)| i.checked_sub(*before).filter(|&i| i < size));
        Some((0, inner.collect::<Option<Vec<usize>>>()?))
    };
    let value = attributes.value.into();
    let y = TensorData::gathered(inputs.output_dims(), &[x], value, from)?;
    Ok(match y.elements() {
        Elements::Float(_) => y.rounded_to(inputs.dtype(0))?,
        Elements::Int(_) => y,
    })
}
