//! What `conv2d` and `conv_transpose2d` have in common.

use super::rules::{FLOATS, Operands, TensorSpec};
use super::window;
use crate::dims::Dims;
use crate::error::GraphError;
use crate::graph::Value;

/// The image and the dims of the weight, which must have the dims `weight_form`.
pub(super) fn operands<'a>(
    operands: &Operands<'a>,
    weight_form: &'static str,
    stride: [usize; 2],
    dilation: [usize; 2],
) -> Result<(&'a Value, &'a Dims), GraphError> {
    let x = operands.typed(0, FLOATS)?;
    let weight = operands.typed(1, FLOATS)?.dims();
    operands.rank(0, x.dims().rank() == 4, "[batch, c_in, h, w]")?;
    operands.rank(1, weight.rank() == 4, weight_form)?;
    window::positive(operands, "stride", stride)?;
    window::positive(operands, "dilation", dilation)?;
    Ok((x, weight))
}

/// Fails unless `groups` divides `channels`.
pub(super) fn groups(
    operands: &Operands<'_>,
    groups: usize,
    channels: usize,
    rule: &'static str,
) -> Result<(), GraphError> {
    let divides = groups >= 1 && channels.is_multiple_of(groups);
    operands.attribute(divides, "groups", groups as f64, rule)
}

/// The result of `c_out` channels, whose size along an axis is `size` of the axis, the image's and
/// the kernel's size, or `None` against `rule`. Checks the bias.
pub(super) fn result(
    operands: &Operands<'_>,
    c_out: usize,
    size: impl Fn(usize, usize, usize) -> Option<usize>,
    rule: &'static str,
) -> Result<TensorSpec, GraphError> {
    if operands.optional(2).is_some() {
        let bias = operands.typed(2, FLOATS)?.dims();
        operands.rank(2, bias.rank() == 1, "[c_out]")?;
        operands.dims(2, 1, bias[0] == c_out, "it must have c_out elements")?;
    }
    let (x, weight) = (operands.get(0), operands.get(1).dims());
    let mut sizes = [x.dims()[0], c_out, 0, 0];
    for axis in 0..2 {
        let size = size(axis, x.dims()[2 + axis], weight[2 + axis]);
        operands.dims(1, 0, size.is_some(), rule)?;
        sizes[2 + axis] = size.unwrap_or(0);
    }
    Ok(TensorSpec {
        dtype: x.dtype,
        dims: Dims::from_fn(4, |i| sizes[i]),
    })
}

/// Multiply-adds for each element of an image or a result: the weight's elements but for its first
/// dimension.
pub(super) fn taps(inputs: &[&Value]) -> u64 {
    inputs.get(1).map_or(0, |weight| {
        weight.dims().iter().skip(1).product::<usize>() as u64
    })
}
