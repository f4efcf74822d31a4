//! `y[b, o, i, j] = bias[o] + sum_{c, u, v} x[b, g c' + c, i s + u d - p, j s + v d - p] *
//! weight[o, c, u, v]`.

use kovar_core::ops::Conv2d;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn conv2d(attributes: &Conv2d, inputs: &Inputs<'_>) -> Result<TensorData, OracleError> {
    let (x, weight) = (inputs.get(0)?, inputs.get(1)?);
    let bias = inputs.optional(inputs.has(2))?;
    let bias = bias.map(TensorData::values).transpose()?;
    let [height, width] = [1, 0].map(|i| x.from_end(i));
    let [kh, kw] = [1, 0].map(|i| weight.from_end(i));
    let [batch, c_out, oh, ow] = [3, 2, 1, 0].map(|i| inputs.output_dims().from_end(i));
    let (c_in, per_group) = (x.from_end(2), weight.from_end(2));
    let out_per_group = (c_out / attributes.groups).max(1);
    let (x_values, weights) = (x.values()?, weight.values()?);
    // The row or column that a tap falls on, if it is in the image.
    let place = |axis: usize, i: usize, tap: usize, size: usize| {
        let at = i * attributes.stride[axis] + tap * attributes.dilation[axis];
        at.checked_sub(attributes.padding[axis])
            .filter(|&at| at < size)
    };
    let mut out = Vec::with_capacity(batch * c_out * oh * ow);
    for b in 0..batch {
        for o in 0..c_out {
            for (i, j) in (0..oh).flat_map(|i| (0..ow).map(move |j| (i, j))) {
                let mut sum = bias.map_or(0.0, |bias| bias[o]);
                for c in 0..per_group {
                    let channel = o / out_per_group * per_group + c;
                    for (u, v) in (0..kh).flat_map(|u| (0..kw).map(move |v| (u, v))) {
                        let row = place(0, i, u, height);
                        let column = place(1, j, v, width);
                        if let (Some(row), Some(column)) = (row, column) {
                            let at = ((b * c_in + channel) * height + row) * width + column;
                            let w = weights[((o * per_group + c) * kh + u) * kw + v];
                            sum += x_values[at] * w;
                        }
                    }
                }
                out.push(sum);
            }
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
