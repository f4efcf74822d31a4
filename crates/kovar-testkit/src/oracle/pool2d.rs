//! The greatest or the mean of the elements of a sliding window.

use kovar_core::ops::{Pool2d, PoolKind};

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn pool2d(attributes: &Pool2d, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let x = inputs.get(0)?;
    let [height, width] = [1, 0].map(|i| x.from_end(i));
    let [oh, ow] = [1, 0].map(|i| inputs.output_dims().from_end(i));
    let [kh, kw] = attributes.kernel;
    let place = |axis: usize, i: usize, tap: usize, size: usize| {
        let at = i * attributes.stride[axis] + tap;
        at.checked_sub(attributes.padding[axis])
            .filter(|&at| at < size)
    };
    let mut out = Vec::new();
    for plane in x.values()?.chunks_exact(height * width) {
        for (i, j) in (0..oh).flat_map(|i| (0..ow).map(move |j| (i, j))) {
            let mut inside = Vec::new();
            for (u, v) in (0..kh).flat_map(|u| (0..kw).map(move |v| (u, v))) {
                if let (Some(row), Some(column)) = (place(0, i, u, height), place(1, j, v, width)) {
                    inside.push(plane[row * width + column]);
                }
            }
            let sum: f64 = inside.iter().sum();
            out.push(match attributes.kind {
                PoolKind::Max if sum.is_nan() => f64::NAN,
                PoolKind::Max => inside.into_iter().fold(f64::NEG_INFINITY, f64::max),
                PoolKind::Average {
                    count_include_pad: true,
                } => sum / (kh * kw) as f64,
                PoolKind::Average {
                    count_include_pad: false,
                } => sum / inside.len() as f64,
            });
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
