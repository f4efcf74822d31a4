//! Prepared forms of quantised weights: the numbers of the file, in a layout for integer products.
//!
//! Rows form groups of [`GROUP_ROWS`]; the rows of a group are the lanes of a vector. A group holds
//! the scales of all its blocks, followed by the codes of all its blocks:
//!
//! | dtypes | scales | codes of 16 rows x 32 elements |
//! |---|---|---|
//! | Q4_0 | `d` f16 x 16 per block | 4 nibble lines |
//! | Q4_1 | `d` f16 x 16, `m` f16 x 16 per block | 4 nibble lines |
//! | Q5_0, Q5_1 | as Q4_0, Q4_1 | 4 nibble lines, 1 line of fifth bits |
//! | Q8_0 | as Q4_0 | 8 lines of signed bytes |
//! | Q2_K | per 256 elements: `d` f16 x 16, `dmin` f16 x 16, 16 x 16 bytes of scale (low nibble) and minimum | 2 crumb lines |
//! | Q3_K | as Q6_K | 2 crumb lines, 1 line of third bits |
//! | Q4_K, Q5_K | per 256 elements: `d` f16 x 16, `dmin` f16 x 16, 8 x 16 scales u8, 8 x 16 minima u8 | as Q4_0, Q5_0 |
//! | Q6_K | per 256 elements: `d` f16 x 16, 16 x 16 scales i8 | 4 nibble lines, 2 crumb lines of high bits |
//! | IQ4_NL | as Q4_0 | as Q4_0 |
//! | IQ4_XS | per 256 elements: `d` f16 x 16, 8 x 16 scales i8 | as Q4_0 |
//! | MXFP4 | 16 exponents u8 per block | as Q4_0 |
//! | TQ2_0 | `d` f16 x 16 per 256 elements | 2 crumb lines |
//!
//! A line is 64 bytes; byte `4 * row + i` belongs to `row`. A *quad* is four consecutive elements
//! of a row, and a block of 32 elements has quads 0 to 7:
//! - nibble line `l` has quad `l` in its low and quad `l + 4` in its high nibbles;
//! - in a line of third or fifth bits, bit `q` of a byte belongs to quad `q`;
//! - in crumb line `l`, bits `2j` and `2j + 1` belong to quad `4l + j`;
//! - byte line `q` has quad `q`.
//!
//! One line is an operand of one 64-byte dot-product instruction. The other operand is a quad of
//! activations, broadcast to all rows, so no sum crosses lanes. Scales stay exact.

mod encode;
mod format;
mod row;

pub(crate) use format::{
    BLOCK_LEN, Codes, Format, LINE, N_FORMATS, SUPER_BLOCKS, Scales, Values, format_index, formats,
    per_format,
};
pub use format::{PackError, PackedLayout, PackedMatrix};

/// Rows of a group.
pub const GROUP_ROWS: usize = 16;
