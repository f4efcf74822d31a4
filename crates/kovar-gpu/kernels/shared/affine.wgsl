// The affine part of a norm: its weight is operand `b`, its bias operand `c`.

import package::shared::b::b_at;
import package::shared::c::c_at;
import package::shared::view::View;

struct Affine {
    weight: View,
    bias: View,
    // Whether there are such operands.
    weighted: u32,
    biased: u32,
    // The epsilon of the norm.
    eps: f32,
}

// `x * weight[i] + bias[i]`
fn affine(norm: Affine, i: u32, x: f32) -> f32 {
    var y = x;
    if norm.weighted != 0u {
        y *= b_at(norm.weight.offset + i * norm.weight.strides.w);
    }
    if norm.biased != 0u {
        y += c_at(norm.bias.offset + i * norm.bias.strides.w);
    }
    return y;
}
