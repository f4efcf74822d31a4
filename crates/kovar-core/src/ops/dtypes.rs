//! Which operations take which dtypes. Every backend implements this, and no more.
//!
//! | operations | operands | results |
//! |---|---|---|
//! | `copy` | [`PLAIN`] | any of [`PLAIN`], cast by the rules of [`plain`](crate::plain) |
//! | `copy` | [`WEIGHTS`] | any of [`ENCODED`] |
//! | `concat`, `pad`, `repeat` | [`PLAIN`] | the operands' |
//! | `get_rows` | table: [`WEIGHTS`] | F32 |
//! | `get_rows` | table: F64, integers, Bool | the table's |
//! | `set_rows` | `x`: [`PLAIN`] | the dtype of `x` |
//! | `set_rows` | `x`: [`FLOATS`] | any of [`ENCODED`] |
//! | `arange` | | [`PROGRESSIONS`] |
//! | `argmax`, `argsort`, `top_k` | [`FLOATS`] | I32 |
//! | `matmul`, `matmul_id` | `w`: [`WEIGHTS`], `x`: [`FLOATS`] | F32 |
//! | `gemm` | `a`, `b`: [`FACTORS`], `c`: [`FLOATS`] | F32 |
//! | `attention` | `q`: [`FLOATS`], `k`, `v`: [`FLOATS`] or Q8_0 | F32 |
//! | `matmul_i8` | `w`: I8, `x`: [`FLOATS`] or I8 | F32 |
//! | `row_scales`, `quantize_rows` | [`FLOATS`] | F32, I8 |
//! | `timestep_embedding` | [`FLOATS`] or I32 | F32 |
//! | all other arithmetic: unary, binary, glu, scale, sums, norms, softmax, rope, convolutions, pooling, recurrences | [`FLOATS`] | the first operand's |
//!
//! Views (slice, permute, reshape, broadcast) exist of every dtype, with whole blocks. Indices,
//! ids and positions are [`INDICES`]; rope tables, sinks, states and scales F32.
//!
//! So arithmetic is in f32 on storage of 32 or 16 bits. F64, the 8-bit floats and the integers are
//! storage: they are moved, looked up and cast. The 8-bit floats besides are weights of products,
//! decoded where they are multiplied.

use crate::DType;

/// What arithmetic takes: the floats of 32 and 16 bits.
pub const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16];

/// The plain dtypes, whose elements can be moved and cast one by one.
pub const PLAIN: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I32,
    DType::I8,
    DType::F64,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::U8,
    DType::I16,
    DType::I64,
    DType::Bool,
];

/// What weights of products and tables of embeddings may be: what decodes to f32 exactly.
pub const WEIGHTS: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q8_0,
    DType::Q2K,
    DType::Q3K,
    DType::Q4K,
    DType::Q5K,
    DType::Q6K,
    DType::IQ4NL,
    DType::IQ4XS,
    DType::MXFP4,
];

/// What factors of a general product may be.
pub const FACTORS: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F8E4M3,
    DType::F8E5M2,
];

/// What [`FLOATS`] are encoded as.
pub const ENCODED: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::Q8_0,
];

/// What copies may be: [`PLAIN`] and Q8_0.
pub const COPIES: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I32,
    DType::I8,
    DType::F64,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::U8,
    DType::I16,
    DType::I64,
    DType::Bool,
    DType::Q8_0,
];

/// What arithmetic progressions may be.
pub const PROGRESSIONS: &[DType] = &[DType::F32, DType::I32, DType::F64, DType::I64];

/// Index operands.
pub const INDICES: &[DType] = &[DType::I32];

/// The dtypes that `dtype` alone is in; none of block dtypes.
pub(super) fn only(dtype: DType) -> &'static [DType] {
    let one = PLAIN.chunks(1).find(|one| one.contains(&dtype));
    one.unwrap_or(&[])
}
