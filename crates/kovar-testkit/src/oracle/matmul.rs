//! `y[b.., m, n] = sum_k x[b.., m, k] * w[b'.., n, k]`.

use kovar_core::ops::{Matmul, Precision};
use kovar_core::quant::activation::{BLOCK_LEN, block_count, quantize_activations};

use super::{Activations, Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn matmul(
    attributes: &Matmul,
    inputs: &Inputs<'_>,
    activations: Activations,
) -> Result<TensorData, OracleError> {
    let (w, x) = (inputs.get(0)?, inputs.get(1)?);
    let (k, m, n) = (x.from_end(0), x.from_end(1), w.from_end(1));
    let quantizes = activations == Activations::Quantized
        && inputs.dtype(0).is_quantized()
        && attributes.precision == Precision::Default;
    let x_values = if quantizes && k > 0 {
        let rows = x.values()?.chunks_exact(k);
        rows.map(quantized).collect::<Result<Vec<_>, _>>()?.concat()
    } else {
        x.values()?.to_vec()
    };
    let w_values = w.values()?;
    let batches: usize = x.dims().iter().rev().skip(2).product();
    let mut out = Vec::with_capacity(batches * m * n);
    for batch in 0..batches {
        let w_batch = weight_batch(x, w, batch);
        for row in 0..m {
            let x_row = &x_values[(batch * m + row) * k..][..k];
            for column in 0..n {
                let w_row = &w_values[(w_batch * n + column) * k..][..k];
                out.push(x_row.iter().zip(w_row).map(|(x, w)| x * w).sum());
            }
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}

/// The batch of `w` that goes with a batch of `x`, both counted row-major: along each dimension,
/// index `i` of `x` goes with `i / (size of x / size of w)`.
fn weight_batch(x: &TensorData, w: &TensorData, batch: usize) -> usize {
    let (mut rest, mut at, mut stride) = (batch, 0, 1);
    for i in 2..x.dims().len() {
        let (x_size, w_size) = (x.from_end(i), w.from_end(i));
        at += rest % x_size / (x_size / w_size) * stride;
        stride *= w_size;
        rest /= x_size;
    }
    at
}

/// The numbers that the 8-bit codes of a row stand for.
pub(super) fn quantized(row: &[f64]) -> Result<Vec<f64>, OracleError> {
    let row: Vec<f32> = row.iter().map(|&x| x as f32).collect();
    let mut codes = vec![0; row.len()];
    let blocks = block_count(row.len());
    let (mut scales, mut sums) = (vec![0.0; blocks], vec![0; blocks]);
    quantize_activations(&row, &mut codes, &mut scales, &mut sums)?;
    let codes = codes.iter().enumerate();
    Ok(codes
        .map(|(i, &code)| f64::from(scales[i / BLOCK_LEN]) * f64::from(code))
        .collect())
}
