//! Convolution over two dimensions.
//!
//! No model calls it yet; it is for UNets and VAEs.

use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass, Precision, convolution, window};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// `y[b, o, i, j] = bias[o] + sum_{c, u, v} x[b, g c' + c, i s + u d - p, j s + v d - p] *
/// weight[o, c, u, v]`, where `c' = c_in / groups`, `g = o / (c_out / groups)`, and `s`, `d` and
/// `p` are stride, dilation and padding of the axis; `x` is 0 outside the image. A
/// cross-correlation, as PyTorch's `conv2d`.
///
/// - `x`: F32, F16 or BF16, `[batch, c_in, h, w]`.
/// - `weight`: F32, F16 or BF16, `[c_out, c_in / groups, kh, kw]`.
/// - `bias` (optional): F32, F16 or BF16, `[c_out]`.
/// - result: dtype of `x`, `[batch, c_out, oh, ow]` with
///   `oh = (h + 2 p - d (kh - 1) - 1) / s + 1`, rounded down, and `ow` likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2d {
    /// Steps of the window, `[vertical, horizontal]`.
    pub stride: [usize; 2],
    /// Zeros around the image, on each side, `[vertical, horizontal]`.
    pub padding: [usize; 2],
    /// Distances between taps, `[vertical, horizontal]`.
    pub dilation: [usize; 2],
    /// Groups of channels that are convolved apart; it divides `c_in` and `c_out`.
    pub groups: usize,
    /// How exactly.
    pub precision: Precision,
}

impl Default for Conv2d {
    /// Stride and dilation 1, no padding, one group.
    fn default() -> Self {
        Self {
            stride: [1; 2],
            padding: [0; 2],
            dilation: [1; 2],
            groups: 1,
            precision: Precision::Default,
        }
    }
}

impl Rules for Conv2d {
    fn signature(&self) -> Signature {
        Signature::new("conv2d", &["x", "weight", "bias"])
            .arity(2..=3)
            .classes(&[OpClass::Product])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let form = "[c_out, c_in / groups, kh, kw]";
        let (x, weight) = convolution::operands(operands, form, self.stride, self.dilation)?;
        let c_out = weight[0];
        let rule = "at least 1 and a divisor of c_out";
        convolution::groups(operands, self.groups, c_out, rule)?;
        let channels = weight[1].checked_mul(self.groups) == Some(x.dims()[1]);
        let rule = "its second dim must be c_in / groups";
        operands.dims(1, 0, channels, rule)?;
        let size = |axis: usize, size, kernel| {
            let (stride, padding) = (self.stride[axis], self.padding[axis]);
            window::positions(size, kernel, stride, padding, self.dilation[axis])
        };
        let rule = "the dilated kernel must not be empty and must fit the padded image";
        convolution::result(operands, c_out, size, rule)
    }

    fn flops(&self, inputs: &[&Value], output: &Value) -> u64 {
        2 * convolution::taps(inputs) * count(output)
    }
}

impl Graph {
    /// Appends [`Conv2d`], with a bias or without.
    pub fn conv2d(
        &mut self,
        attributes: Conv2d,
        x: ValueId,
        weight: ValueId,
        bias: Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = [x, weight].into_iter().chain(bias).collect();
        self.apply(Op::from(attributes), &inputs)
    }
}
