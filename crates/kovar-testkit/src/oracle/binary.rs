//! `y = a op b`, with `b` broadcast to `a`.

use kovar_core::ops::{Binary, BinaryKind};

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn binary(attributes: &Binary, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let operation: fn(f64, f64) -> f64 = match attributes.kind {
        BinaryKind::Add => |a, b| a + b,
        BinaryKind::Sub => |a, b| a - b,
        BinaryKind::Mul => |a, b| a * b,
        BinaryKind::Div => |a, b| a / b,
        _ => return Err(OracleError::UnknownOp { op: inputs.op }),
    };
    let a = inputs.get(0)?;
    let b = inputs.get(1)?.broadcast(a.dims())?;
    let pairs = a.values()?.iter().zip(b);
    let out = pairs.map(|(&a, b)| operation(a, b)).collect();
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
