//! Transposed convolution over two dimensions.
//!
//! No model calls it yet; it is for decoders that diffusers configures with `use_conv_transpose`.

use super::rules::{Operands, Rules, Signature, TensorSpec, count};
use super::{Op, OpClass, Precision, convolution, window};
use crate::error::GraphError;
use crate::graph::{Graph, Value, ValueId};

/// The adjoint of [`Conv2d`](super::Conv2d) as PyTorch's `conv_transpose2d`: each `x[b, c, i, j]`
/// adds `x[b, c, i, j] * weight[c, o, u, v]` to `y[b, g c' + o, i s + u d - p, j s + v d - p]`,
/// where `c' = c_out / groups`, `g = c / (c_in / groups)`, and `s`, `d` and `p` are stride,
/// dilation and padding of the axis; terms that fall outside `y` are dropped. The bias is added.
///
/// - `x`: F32, F16 or BF16, `[batch, c_in, h, w]`, not empty along `h` and `w`.
/// - `weight`: F32, F16 or BF16, `[c_in, c_out / groups, kh, kw]`.
/// - `bias` (optional): F32, F16 or BF16, `[c_out]`.
/// - result: dtype of `x`, `[batch, c_out, oh, ow]` with
///   `oh = (h - 1) s - 2 p + d (kh - 1) + output_padding + 1`, and `ow` likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvTranspose2d {
    /// Steps of the window in the result, `[vertical, horizontal]`.
    pub stride: [usize; 2],
    /// Rows or columns cut from each side of the result, `[vertical, horizontal]`.
    pub padding: [usize; 2],
    /// Rows or columns added after the result, `[vertical, horizontal]`; less than the stride or
    /// the dilation of the axis.
    pub output_padding: [usize; 2],
    /// Distances between taps, `[vertical, horizontal]`.
    pub dilation: [usize; 2],
    /// Groups of channels that are convolved apart; it divides `c_in` and `c_out`.
    pub groups: usize,
    /// How exactly.
    pub precision: Precision,
}

impl Default for ConvTranspose2d {
    /// Stride and dilation 1, no padding, one group.
    fn default() -> Self {
        Self {
            stride: [1; 2],
            padding: [0; 2],
            output_padding: [0; 2],
            dilation: [1; 2],
            groups: 1,
            precision: Precision::Default,
        }
    }
}

impl ConvTranspose2d {
    /// The result's size along an axis, at least 1.
    fn size(&self, axis: usize, size: usize, kernel: usize) -> Option<usize> {
        let steps = size.checked_sub(1)?.checked_mul(self.stride[axis])?;
        let whole = steps
            .checked_add(window::extent(kernel, self.dilation[axis])?)?
            .checked_add(self.output_padding[axis])?;
        let cut = self.padding[axis].checked_mul(2)?;
        window::fits(whole)?
            .checked_sub(cut)
            .filter(|&size| size >= 1)
    }
}

impl Rules for ConvTranspose2d {
    fn signature(&self) -> Signature {
        Signature::new("conv_transpose2d", &["x", "weight", "bias"])
            .arity(2..=3)
            .classes(&[OpClass::Product])
    }

    fn infer(&self, operands: &Operands<'_>) -> Result<TensorSpec, GraphError> {
        let form = "[c_in, c_out / groups, kh, kw]";
        let (x, weight) = convolution::operands(operands, form, self.stride, self.dilation)?;
        for axis in 0..2 {
            let value = self.output_padding[axis];
            let less = value < self.stride[axis].max(self.dilation[axis]);
            let rule = "less than the stride or the dilation";
            operands.attribute(less, "output_padding", value as f64, rule)?;
        }
        let c_in = x.dims()[1];
        let rule = "at least 1 and a divisor of c_in";
        convolution::groups(operands, self.groups, c_in, rule)?;
        operands.dims(1, 0, weight[0] == c_in, "its first dim must be c_in")?;
        let c_out = weight[1].checked_mul(self.groups);
        operands.dims(1, 0, c_out.is_some(), "c_out must not overflow")?;
        let size = |axis, size, kernel| self.size(axis, size, kernel);
        let rule = "the kernel and the result must not be empty";
        convolution::result(operands, c_out.unwrap_or(0), size, rule)
    }

    fn flops(&self, inputs: &[&Value], _output: &Value) -> u64 {
        2 * convolution::taps(inputs) * inputs.first().map_or(0, |x| count(x))
    }
}

impl Graph {
    /// Appends [`ConvTranspose2d`], with a bias or without.
    pub fn conv_transpose2d(
        &mut self,
        attributes: ConvTranspose2d,
        x: ValueId,
        weight: ValueId,
        bias: Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let inputs: Vec<ValueId> = [x, weight].into_iter().chain(bias).collect();
        self.apply(Op::from(attributes), &inputs)
    }
}
