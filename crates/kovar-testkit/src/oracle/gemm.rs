//! `y = alpha op(a) op(b) + beta c`.

use kovar_core::ops::Gemm;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

/// The elements with the batch dims repeated to those of the result, and the last two as they are.
fn batches(x: &TensorData, result: &[usize]) -> Result<Vec<f64>, OracleError> {
    let outer = result.len() - 2;
    let dims = [&result[..outer], &[x.from_end(1), x.from_end(0)]].concat();
    Ok(x.broadcast(&dims)?)
}

pub(super) fn gemm(attributes: &Gemm, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let (a, b) = (inputs.get(0)?, inputs.get(1)?);
    let dims = inputs.output_dims();
    let (m, n) = (dims.from_end(1), dims.from_end(0));
    let k = a.from_end(usize::from(attributes.transpose_a));
    let (a, b) = (batches(a, dims)?, batches(b, dims)?);
    let c = inputs.optional(inputs.has(2))?;
    let c = c.filter(|_| attributes.beta != 0.0);
    let c = c.map(|c| c.broadcast(dims)).transpose()?;
    let mut out = Vec::new();
    for batch in 0..dims.iter().rev().skip(2).product() {
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let term = |l: usize| {
                let a_at = if attributes.transpose_a {
                    l * m + i
                } else {
                    i * k + l
                };
                let b_at = if attributes.transpose_b {
                    j * k + l
                } else {
                    l * n + j
                };
                a[batch * m * k + a_at] * b[batch * k * n + b_at]
            };
            let sum: f64 = (0..k).map(term).sum();
            let added = c.as_ref().map_or(0.0, |c| c[out.len()]);
            out.push(f64::from(attributes.alpha) * sum + f64::from(attributes.beta) * added);
        }
    }
    Ok(TensorData::floats(dims, out)?)
}
