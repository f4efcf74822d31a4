//! `y = act(gate) * up`.

use kovar_core::ops::{Glu, GluKind};

use super::unary::{gelu, relu, silu};
use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn glu(attributes: &Glu, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let activation = match attributes.kind {
        GluKind::Swiglu => silu,
        GluKind::Geglu => gelu,
        GluKind::Reglu => relu,
        _ => return Err(OracleError::UnknownOp { op: inputs.op }),
    };
    let pairs = inputs
        .get(0)?
        .values()?
        .iter()
        .zip(inputs.get(1)?.values()?);
    let out = pairs.map(|(&gate, up)| activation(gate) * up).collect();
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
