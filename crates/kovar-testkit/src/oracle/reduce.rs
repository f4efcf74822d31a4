//! `y[.., 0] = sum(x[.., :])` or the mean.

use kovar_core::ops::{Reduce, ReduceKind};

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn reduce(attributes: &Reduce, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let n = x.from_end(0);
    let values = x.values()?;
    let divisor = match attributes.kind {
        ReduceKind::Sum => 1.0,
        ReduceKind::Mean => n as f64,
        _ => return Err(OracleError::UnknownOp { op: inputs.op }),
    };
    let dims = inputs.output_dims();
    let rows = 0..dims.iter().product();
    let sum = |row: usize| values[row * n..(row + 1) * n].iter().sum::<f64>();
    // An empty sum of floats is -0 in Rust.
    let out = rows.map(|row| (0.0 + sum(row)) / divisor).collect();
    Ok(TensorData::floats(dims, out)?)
}
