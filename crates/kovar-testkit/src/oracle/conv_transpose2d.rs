//! Each `x[b, c, i, j]` adds `x[b, c, i, j] * weight[c, o, u, v]` to
//! `y[b, g c' + o, i s + u d - p, j s + v d - p]`.

use kovar_core::ops::ConvTranspose2d;

use super::{Inputs, OracleError};
use crate::tensor::TensorData;

pub(super) fn conv_transpose2d(
    attributes: &ConvTranspose2d,
    inputs: &Inputs<'_>,
) -> Result<TensorData, OracleError> {
    let (x, weight) = (inputs.get(0)?, inputs.get(1)?);
    let [height, width] = [1, 0].map(|i| x.from_end(i));
    let [kh, kw] = [1, 0].map(|i| weight.from_end(i));
    let [batch, c_out, oh, ow] = [3, 2, 1, 0].map(|i| inputs.output_dims().from_end(i));
    let (c_in, per_group) = (x.from_end(2), weight.from_end(2));
    let in_per_group = (c_in / attributes.groups).max(1);
    let (x_values, weights) = (x.values()?, weight.values()?);
    let place = |axis: usize, i: usize, tap: usize, size: usize| {
        let at = i * attributes.stride[axis] + tap * attributes.dilation[axis];
        at.checked_sub(attributes.padding[axis])
            .filter(|&at| at < size)
    };
    let mut out = vec![0.0; batch * c_out * oh * ow];
    if let Some(bias) = inputs.optional(inputs.has(2))? {
        let bias = bias.values()?;
        for (i, plane) in out.chunks_exact_mut((oh * ow).max(1)).enumerate() {
            plane.fill(bias[i % c_out]);
        }
    }
    for (b, c) in (0..batch).flat_map(|b| (0..c_in).map(move |c| (b, c))) {
        for (i, j) in (0..height).flat_map(|i| (0..width).map(move |j| (i, j))) {
            let value = x_values[((b * c_in + c) * height + i) * width + j];
            for o in 0..per_group {
                let channel = c / in_per_group * per_group + o;
                for (u, v) in (0..kh).flat_map(|u| (0..kw).map(move |v| (u, v))) {
                    if let (Some(row), Some(column)) = (place(0, i, u, oh), place(1, j, v, ow)) {
                        let at = ((b * c_out + channel) * oh + row) * ow + column;
                        out[at] += value * weights[((c * per_group + o) * kh + u) * kw + v];
                    }
                }
            }
        }
    }
    Ok(TensorData::floats(inputs.output_dims(), out)?)
}
