//! `y[i.., n] = scales[n] x_scale[i..] sum_k x[i.., k] w[n, k]`.

use super::{Inputs, OracleError};
use crate::tensor::{Elements, TensorData};

fn numbers(data: &TensorData) -> Vec<f64> {
    match data.elements() {
        Elements::Float(values) => values.clone(),
        Elements::Int(values) => values.iter().map(|&v| v as f64).collect(),
    }
}

pub(super) fn matmul_i8(inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let (w, scales, x) = (inputs.get(0)?, inputs.get(1)?.values()?, inputs.get(2)?);
    let x_scales = inputs.optional(inputs.has(3))?;
    let x_scales = x_scales.map(TensorData::values).transpose()?;
    let (n, k) = (w.from_end(1), w.from_end(0));
    let rows: usize = x.dims().iter().rev().skip(1).product();
    let (w, x) = (numbers(w), numbers(x));
    let mut out = Vec::new();
    for (row, column) in (0..rows).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let terms = (0..k).map(|l| x[row * k + l] * w[column * k + l]);
        let x_scale = x_scales.map_or(1.0, |x_scales| x_scales[row]);
        out.push(terms.sum::<f64>() * scales[column] * x_scale);
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
