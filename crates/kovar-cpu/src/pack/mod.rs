//! Prepared forms of quantised weights: the numbers of the file, in a layout for integer products.
//!
//! Rows form groups of [`GROUP_ROWS`]; the rows of a group are the lanes of a vector. A group holds
//! the scales of all its blocks, followed by the codes of all its blocks. The table `formats!` has
//! the form of each dtype: its kind of codes, its kind of scales, and the numbers that codes stand
//! for.
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
