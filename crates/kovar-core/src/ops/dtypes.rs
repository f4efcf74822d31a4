//! Which operations take which dtypes. Every backend implements at most these combinations.
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
//! | `attention` | `q`: [`FLOATS`], `k`, `v`: [`CACHES`] | F32 |
//! | `matmul_i8` | `w`: I8, `x`: [`FLOATS`] or I8 | F32 |
//! | `row_scales`, `quantize_rows` | [`FLOATS`] | F32, I8 |
//! | `timestep_embedding` | [`FLOATS`] or I32 | F32 |
//! | all other arithmetic: unary, binary, glu, scale, sums, norms, softmax, rope, convolutions, pooling, recurrences | [`FLOATS`] | the first operand's |
//!
//! Views (slice, permute, reshape, broadcast) exist for every dtype, in whole blocks. Indices,
//! ids and positions are [`INDICES`]; rope tables, sinks, states and scales F32.
//!
//! So arithmetic is in f32 on storage of 32 or 16 bits. F64, the 8-bit floats and the integers are
//! storage: they are moved, looked up and cast. The 8-bit floats may also be weights and factors of
//! products, which decode them.

use crate::DType;
use crate::dtype::{count, list, traits};

/// The dtypes that the table of [`DType`] gives any of some traits, in its order.
macro_rules! having {
    ($traits:expr) => {
        &list::<{ count($traits) }>($traits)
    };
}

/// Operands of arithmetic: the floats of 32 and 16 bits.
pub const FLOATS: &[DType] = having!(traits::ARITHMETIC);

/// The plain dtypes, whose elements can be moved and cast one by one.
pub const PLAIN: &[DType] = having!(traits::FLOAT | traits::INTEGER);

/// The quantised dtypes.
pub const QUANTIZED: &[DType] = having!(traits::QUANTIZED);

/// Weights of products and tables of embeddings: the dtypes that decode to f32 exactly.
pub const WEIGHTS: &[DType] = having!(traits::FACTOR | traits::QUANTIZED);

/// Factors of general products.
pub const FACTORS: &[DType] = having!(traits::FACTOR);

/// The dtypes that [`FLOATS`] can be encoded as.
pub const ENCODED: &[DType] = having!(traits::ENCODED);

/// Results of copies: [`PLAIN`] and [`ENCODED`].
pub const COPIES: &[DType] = having!(traits::FLOAT | traits::INTEGER | traits::ENCODED);

/// Keys and values of attention.
pub const CACHES: &[DType] = having!(traits::CACHE);

/// Arithmetic progressions.
pub const PROGRESSIONS: &[DType] = having!(traits::PROGRESSION);

/// Masks of attention and softmax.
pub const MASKS: &[DType] = &[DType::F32, DType::F16];

/// Index operands.
pub const INDICES: &[DType] = &[DType::I32];

/// A list of `dtype` alone; an empty one for a block dtype.
pub(super) fn only(dtype: DType) -> &'static [DType] {
    let one = PLAIN.chunks(1).find(|one| one.contains(&dtype));
    one.unwrap_or(&[])
}
