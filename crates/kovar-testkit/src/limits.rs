//! The largest distance of a result from the oracle, as a normalised mean square error (NMSE).
//!
//! | operation | result | limit | because |
//! |---|---|---|---|
//! | get_rows | | 1e-12 | decoding is exact up to the order of two f32 roundings |
//! | copy, set_rows | F32, F16, BF16 | 1e-12 | the oracle rounds too, so only a wrong rounding differs |
//! | get_rows, copy, set_rows, concat, pad, repeat | F64, 8-bit floats, integers, Bool | 0 | every backend rounds as the oracle does, if at all |
//! | copy | the dtype of `x` | 1e-12 | nothing is rounded, not even blocks |
//! | copy, set_rows | Q8_0 | 1e-5 | a quotient that is a tie may fall to either code |
//! | arange, timestep_embedding | | 1e-12 | angles to f64, one f32 rounding |
//! | argmax, argsort, top_k | | 0 | the order is defined for every input |
//! | concat, pad, repeat | | 1e-12 | elements are moved as they are; the oracle rounds the padding too |
//! | quantize_rows | | 1e-5 | a quotient that is a tie may fall to either code |
//! | add, sub, mul, div, pool2d, row_scales, scale, rope, rope_apply, upscale | F32 | 1e-12 | one to three f32 roundings, 2^-48 each |
//! | unary operations, swiglu, geglu, reglu, rms_norm, layer_norm, group_norm, l2_norm | F32 | 1e-11 | an `exp` or a root good to a few units in the last place, and f32 sums |
//! | softmax | F32 | 1e-10 | f32 arguments of `exp` up to some tens lose 2^-19 of the result |
//! | sum, mean | F32 | 1e-11 | f32 sums of some thousand terms that may cancel |
//! | token_shift | F32, and its state | 1e-12 | nothing is computed |
//! | wkv7 | F32, and its state | 1e-10 | errors of f32 products add up over the tokens, and decay with the state |
//! | any of those | F16 | + 2^-22 | half a unit in the last place of f16 is at most 2^-11 of the value |
//! | any of those | BF16 | + 2^-16 | the same with 2^-8 |
//! | attention | precision F32, or keys and values F32 or BF16 | 1e-9 | as softmax, and two products |
//! | attention | keys or values F16 or Q8_0 | 1e-6 | queries and weights may be rounded to f16 for an f16 product |
//! | conv2d, conv_transpose2d, gemm | | as matmul, and the rounding to F16 or BF16 | they are products |
//! | matmul | precision F32 | 1e-10 | f32 products and sums of some thousand terms |
//! | matmul | | 1e-7 | operands may be rounded to f16 for an f16 product |
//! | matmul_i8 | | 1e-7, or 1e-10 for codes | as matmul; codes have exact products |
//! | matmul_id | | as matmul | it is one for each token |
//! | matmul | quantised weight | 5e-4, and 1e-7 to the oracle with 8-bit activations | the rounding of a block of 32 to 127 steps |

use kovar_core::ops::dtypes::FLOATS;
use kovar_core::ops::{Conv2d, ConvTranspose2d, Gemm, Matmul, MatmulId, Op, Precision};
use kovar_core::{DType, NodeRef};

/// The limits of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The largest NMSE to the plain oracle.
    pub plain: f64,
    /// The alternative limits of a product that may quantise its activations.
    pub quantized: Option<QuantizedLimits>,
}

/// The limits of a product with 8-bit activations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantizedLimits {
    /// The largest NMSE to the plain oracle.
    pub plain: f64,
    /// The largest NMSE to the oracle that is fed the same quantised activations.
    pub same_activations: f64,
}

const QUANTIZED: QuantizedLimits = QuantizedLimits {
    plain: 5e-4,
    same_activations: 1e-7,
};

/// The limits of a node's result.
pub fn limits(node: NodeRef<'_>) -> Limits {
    limits_of(node, node.output().dtype)
}

/// The limits of what a node writes in a dtype: its result or an updated operand.
pub fn limits_of(node: NodeRef<'_>, output: DType) -> Limits {
    let dtype_of = |i| node.input(i).map_or(DType::F32, |value| value.dtype);
    let rounding = match output {
        DType::F16 => 2f64.powi(-22),
        DType::BF16 => 2f64.powi(-16),
        _ => 0.0,
    };
    let half_products = |i| matches!(dtype_of(i), DType::F16 | DType::Q8_0);
    let exact = output.is_integer() || output.is_float() && !FLOATS.contains(&output);
    let plain = match node.op() {
        Op::GetRows(_)
        | Op::Copy(_)
        | Op::SetRows(_)
        | Op::Concat(_)
        | Op::Pad(_)
        | Op::Repeat(_)
            if exact =>
        {
            0.0
        }
        Op::GetRows(_) => 1e-12,
        Op::Copy(_) if dtype_of(0) == output => 1e-12,
        Op::Copy(_) | Op::SetRows(_) if output == DType::Q8_0 => 1e-5,
        Op::Copy(_) | Op::SetRows(_) => 1e-12,
        Op::Reduce(_) => 1e-11 + rounding,
        Op::Argmax(_) | Op::Argsort(_) => 0.0,
        Op::Concat(_) | Op::Pad(_) | Op::Repeat(_) => 1e-12,
        Op::Glu(_) | Op::RmsNorm(_) | Op::Unary(_) => 1e-11 + rounding,
        Op::GroupNorm(_) | Op::L2Norm(_) | Op::LayerNorm(_) => 1e-11 + rounding,
        Op::Softmax(_) | Op::Wkv7(_) => 1e-10 + rounding,
        Op::Attention(op) if op.precision == Precision::F32 => 1e-9,
        Op::Attention(_) if half_products(1) || half_products(2) => 1e-6,
        Op::Attention(_) => 1e-9,
        Op::Conv2d(Conv2d { precision, .. })
        | Op::Gemm(Gemm { precision, .. })
        | Op::ConvTranspose2d(ConvTranspose2d { precision, .. }) => {
            let exact = *precision == Precision::F32;
            (if exact { 1e-10 } else { 1e-7 }) + rounding
        }
        Op::Matmul(Matmul { precision }) | Op::MatmulId(MatmulId { precision }) => {
            match precision {
                Precision::F32 => 1e-10,
                Precision::Default => 1e-7,
            }
        }
        Op::MatmulI8(_) if dtype_of(2) == DType::I8 => 1e-10,
        Op::MatmulI8(_) => 1e-7,
        Op::QuantizeRows(_) => 1e-5,
        _ => 1e-12 + rounding,
    };
    let may_quantize = matches!(
        node.op(),
        Op::Matmul(Matmul { precision }) | Op::MatmulId(MatmulId { precision })
            if *precision == Precision::Default
    ) && dtype_of(0).is_quantized();
    Limits {
        plain,
        quantized: may_quantize.then_some(QUANTIZED),
    }
}
