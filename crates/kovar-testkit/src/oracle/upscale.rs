//! Images of another size: the nearest pixel, or linear between the neighbours of each axis.

use kovar_core::ops::{Upscale, UpscaleMode};

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

/// The two neighbours along an axis and the share of the second.
fn neighbours(mode: UpscaleMode, i: usize, n: usize, size: usize) -> (usize, usize, f64) {
    let (at, last) = (i as f64, (size - 1) as f64);
    let t = match mode {
        UpscaleMode::Nearest => return (i * size / n, 0, 0.0),
        UpscaleMode::Bilinear {
            align_corners: true,
        } if n == 1 => 0.0,
        UpscaleMode::Bilinear {
            align_corners: true,
        } => at * last / (n - 1) as f64,
        UpscaleMode::Bilinear {
            align_corners: false,
        } => ((at + 0.5) * size as f64 / n as f64 - 0.5).max(0.0),
    };
    let first = (t.floor() as usize).min(size - 1);
    (first, (first + 1).min(size - 1), t - first as f64)
}

pub(super) fn upscale(
    attributes: &Upscale,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let [height, width] = [1, 0].map(|i| x.from_end(i));
    let [oh, ow] = attributes.size;
    let mut out = Vec::new();
    for plane in x.values()?.chunks_exact(height * width) {
        for i in 0..oh {
            let (top, bottom, down) = neighbours(attributes.mode, i, oh, height);
            for j in 0..ow {
                let (left, right, across) = neighbours(attributes.mode, j, ow, width);
                let row = |row: usize| {
                    let (a, b) = (plane[row * width + left], plane[row * width + right]);
                    a * (1.0 - across) + b * across
                };
                out.push(row(top) * (1.0 - down) + row(bottom) * down);
            }
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
