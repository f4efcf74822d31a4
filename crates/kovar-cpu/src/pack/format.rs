//! The formats of prepared weights, their sizes, and a checked view of one.

use kovar_core::DType;
use kovar_core::quant::levels::{E2M1_LEVELS, IQ4_LEVELS};

use super::GROUP_ROWS;
use crate::buffer::ALIGN;

/// Elements of a block: those that share an activation scale.
pub(crate) const BLOCK_LEN: usize = 32;

/// Blocks of a super-block of 256 elements.
pub(crate) const SUPER_BLOCKS: usize = 8;

/// Bytes of a line of codes: four elements of each row of a group.
pub(crate) const LINE: usize = 4 * GROUP_ROWS;

/// The storage of codes: the lines (see [`pack`](super)) of 16 rows x 32 elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codes {
    /// 2 crumb lines.
    Crumb,
    /// 2 crumb lines, 1 line of third bits.
    Crumb1,
    /// 4 nibble lines.
    Nibble,
    /// 4 nibble lines, 1 line of fifth bits.
    Nibble1,
    /// 4 nibble lines, 2 crumb lines of high bits.
    Nibble2,
    /// 8 lines of signed bytes.
    Byte,
}

/// The signed number `w` of `scale * w` for a stored code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// The code minus this.
    Less(u8),
    /// The entry of this table at the code; codes have four bits.
    Table(&'static [i8; 16]),
}

impl Values {
    /// The number of a code that is not a signed byte.
    #[inline(always)]
    pub(crate) const fn of(self, code: u8) -> i8 {
        match self {
            Values::Less(offset) => code.wrapping_sub(offset) as i8,
            Values::Table(levels) => levels[(code & 0x0f) as usize],
        }
    }
}

/// The storage of scales: each as 16 numbers, one per row. `d`, `dmin` and `m` are f16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scales {
    /// `d` per block.
    D,
    /// `d` per super-block.
    D256,
    /// `d` and `m` per block.
    DM,
    /// The exponent of `d` per block, of one byte.
    E8M0,
    /// `d`, `dmin` per super-block; a byte with scale (low nibble) and minimum per half block.
    K2,
    /// `d`, `dmin` per super-block; all scales, then all minima, of one byte per block.
    K,
    /// `d` per super-block; scales of one signed byte per half block.
    K6,
    /// `d` per super-block; scales of one signed byte per block.
    XS,
}

impl Codes {
    /// Bytes of the codes of 16 rows x 32 elements.
    pub(crate) const fn block_bytes(self) -> usize {
        match self {
            Codes::Crumb => 2 * LINE,
            Codes::Crumb1 => 3 * LINE,
            Codes::Nibble => 4 * LINE,
            Codes::Nibble1 => 5 * LINE,
            Codes::Nibble2 => 6 * LINE,
            Codes::Byte => 8 * LINE,
        }
    }
}

impl Scales {
    /// Elements that one unit of scales covers.
    const fn unit_len(self) -> usize {
        match self {
            Scales::D | Scales::DM | Scales::E8M0 => BLOCK_LEN,
            Scales::D256 | Scales::K2 | Scales::K | Scales::K6 | Scales::XS => {
                BLOCK_LEN * SUPER_BLOCKS
            }
        }
    }

    /// The unit of scales that covers block `b`, and the block's index among those it covers.
    #[inline(always)]
    pub(crate) const fn unit_of(self, b: usize) -> (usize, usize) {
        let blocks = self.unit_len() / BLOCK_LEN;
        (b / blocks, b % blocks)
    }

    /// Bytes of one unit of scales for 16 rows.
    pub(crate) const fn unit_bytes(self) -> usize {
        match self {
            Scales::D | Scales::D256 => 2 * GROUP_ROWS,
            Scales::DM => 4 * GROUP_ROWS,
            Scales::E8M0 => GROUP_ROWS,
            Scales::K2 | Scales::K => (4 + 2 * SUPER_BLOCKS) * GROUP_ROWS,
            Scales::K6 => (2 + 2 * SUPER_BLOCKS) * GROUP_ROWS,
            Scales::XS => (2 + SUPER_BLOCKS) * GROUP_ROWS,
        }
    }
}

/// A prepared form, known at compile time.
pub(crate) trait Format: 'static {
    const CODES: Codes;
    const SCALES: Scales;
    const VALUES: Values;
    /// Whether elements are `scale * w + min` rather than `scale * w`.
    const MIN: bool = matches!(Self::SCALES, Scales::DM | Scales::K2 | Scales::K);
    /// Scales, and minima if there are any, per block of 32 elements: 2 if every 16 elements have
    /// their own.
    const SUB_SCALES: usize = if matches!(Self::SCALES, Scales::K2 | Scales::K6) {
        2
    } else {
        1
    };
}

/// A row of the table of formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: FormatId,
    dtype: DType,
    pub(super) codes: Codes,
    pub(super) scales: Scales,
    pub(super) values: Values,
}

/// Declares the table of formats, from `($)` for the macro that it defines and the rows.
macro_rules! formats {
    (($d:tt) $($name:ident: $codes:ident, $scales:ident, $values:expr;)*) => {
        /// A type for each format.
        pub(crate) mod formats {
            use super::*;

            $(
                pub(crate) struct $name;
                impl Format for $name {
                    const CODES: Codes = Codes::$codes;
                    const SCALES: Scales = Scales::$scales;
                    const VALUES: Values = $values;
                }
            )*
        }

        /// The formats, for a `match` that the compiler holds to be complete.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum FormatId {
            $($name),*
        }

        const FORMATS: &[Row] = &[$(Row {
            id: FormatId::$name,
            dtype: DType::$name,
            codes: Codes::$codes,
            scales: Scales::$scales,
            values: $values,
        }),*];

        /// One instance of a generic function per format, in the order of [`format_index`]; called,
        /// if arguments are given.
        macro_rules! per_format {
            ($d($d function:ident)::+ $d(, $d arguments:tt)?) => {
                [$($d($d function)::+::<$crate::pack::formats::$name> $d($d arguments)?,)*]
            };
        }
    };
}

formats! {
    ($)
    Q4_0: Nibble, D, Values::Less(8);
    Q4_1: Nibble, DM, Values::Less(0);
    Q5_0: Nibble1, D, Values::Less(16);
    Q5_1: Nibble1, DM, Values::Less(0);
    Q8_0: Byte, D, Values::Less(0);
    Q2K: Crumb, K2, Values::Less(0);
    Q3K: Crumb1, K6, Values::Less(4);
    Q4K: Nibble, K, Values::Less(0);
    Q5K: Nibble1, K, Values::Less(0);
    Q6K: Nibble2, K6, Values::Less(32);
    IQ4NL: Nibble, D, Values::Table(&IQ4_LEVELS);
    IQ4XS: Nibble, XS, Values::Table(&IQ4_LEVELS);
    MXFP4: Nibble, E8M0, Values::Table(&E2M1_LEVELS);
    TQ2_0: Crumb, D256, Values::Less(1);
}

/// The number of formats of prepared weights.
pub(crate) const N_FORMATS: usize = FORMATS.len();

pub(crate) use per_format;

/// Position of a quantised dtype in the kernel tables.
pub(crate) fn format_index(dtype: DType) -> Option<usize> {
    FORMATS.iter().position(|row| row.dtype == dtype)
}

/// Why a weight could not be prepared, or a prepared weight not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// There is no prepared form of the dtype.
    #[error("{dtype} weights have no prepared form")]
    Unsupported {
        /// The dtype.
        dtype: DType,
    },
    /// Rows must be whole blocks.
    #[error("rows of {k} elements are not whole {dtype} blocks of {}", dtype.block_len())]
    PartialBlock {
        /// The dtype.
        dtype: DType,
        /// Elements of a row.
        k: usize,
    },
    /// The byte count overflows.
    #[error("a {rows} x {k} {dtype} weight does not fit the address space")]
    TooLarge {
        /// The dtype.
        dtype: DType,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        k: usize,
    },
    /// A slice has the wrong length.
    #[error(
        "{what} of a {rows} x {k} {dtype} weight take {expected} bytes, the slice has {actual}"
    )]
    WrongSize {
        /// The expected content of the slice.
        what: &'static str,
        /// The dtype.
        dtype: DType,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        k: usize,
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// The prepared form is not aligned.
    #[error("prepared weights must be aligned to {ALIGN} bytes")]
    Misaligned,
    /// There is no such row.
    #[error("row {row} of a weight of {rows} rows")]
    NoRow {
        /// The row requested.
        row: usize,
        /// Rows of the weight.
        rows: usize,
    },
}

/// Shape and sizes of the prepared form of a `[rows, k]` weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedLayout {
    pub(super) row: Row,
    rows: usize,
    k: usize,
    scale_bytes: usize,
    group_bytes: usize,
    bytes: usize,
}

impl PackedLayout {
    /// The layout of a `[rows, k]` weight of `dtype`.
    ///
    /// # Errors
    /// [`PackError::Unsupported`] for dtypes that are not quantised, [`PackError::PartialBlock`]
    /// if rows are not whole blocks, [`PackError::TooLarge`] if sizes overflow.
    pub fn new(dtype: DType, rows: usize, k: usize) -> Result<Self, PackError> {
        let row = format_index(dtype).and_then(|i| FORMATS.get(i).copied());
        let row = row.ok_or(PackError::Unsupported { dtype })?;
        let Row { codes, scales, .. } = row;
        if !k.is_multiple_of(dtype.block_len()) {
            return Err(PackError::PartialBlock { dtype, k });
        }
        let too_large = PackError::TooLarge { dtype, rows, k };
        let sizes = || {
            let scale_bytes = (k / scales.unit_len())
                .checked_mul(scales.unit_bytes())?
                .checked_next_multiple_of(ALIGN)?;
            let code_bytes = (k / BLOCK_LEN).checked_mul(codes.block_bytes())?;
            let group_bytes = scale_bytes.checked_add(code_bytes)?;
            let bytes = rows.div_ceil(GROUP_ROWS).checked_mul(group_bytes)?;
            isize::try_from(bytes).ok()?;
            Some((scale_bytes, group_bytes, bytes))
        };
        let (scale_bytes, group_bytes, bytes) = sizes().ok_or(too_large)?;
        Ok(Self {
            row,
            rows,
            k,
            scale_bytes,
            group_bytes,
            bytes,
        })
    }

    /// The dtype of the weight in its file.
    pub fn dtype(&self) -> DType {
        self.row.dtype
    }

    /// Rows (outputs of the product).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row (inputs of the product).
    pub fn k(&self) -> usize {
        self.k
    }

    /// Bytes of the prepared form, padding rows included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Groups of [`GROUP_ROWS`] rows; the last may be padded.
    pub(crate) fn groups(&self) -> usize {
        self.rows.div_ceil(GROUP_ROWS)
    }

    /// Blocks of 32 elements in a row.
    pub(crate) fn blocks(&self) -> usize {
        self.k / BLOCK_LEN
    }

    /// Bytes of a group.
    pub(crate) fn group_bytes(&self) -> usize {
        self.group_bytes
    }

    /// Bytes of the scales of a group; its codes follow.
    pub(crate) fn scale_bytes(&self) -> usize {
        self.scale_bytes
    }

    pub(super) fn check_size(
        &self,
        what: &'static str,
        expected: usize,
        actual: usize,
    ) -> Result<(), PackError> {
        if expected == actual {
            return Ok(());
        }
        Err(PackError::WrongSize {
            what,
            dtype: self.row.dtype,
            rows: self.rows,
            k: self.k,
            expected,
            actual,
        })
    }
}

/// A prepared weight: a layout and its bytes, checked against each other.
#[derive(Clone, Copy, Debug)]
pub struct PackedMatrix<'a> {
    layout: PackedLayout,
    data: &'a [u8],
}

impl<'a> PackedMatrix<'a> {
    /// Views `data`, written by [`PackedLayout::pack`], as a weight of `layout`.
    ///
    /// # Errors
    /// [`PackError::WrongSize`] and [`PackError::Misaligned`].
    pub fn new(layout: PackedLayout, data: &'a [u8]) -> Result<Self, PackError> {
        layout.check_size("prepared bytes", layout.bytes(), data.len())?;
        if !data.is_empty() && !data.as_ptr().addr().is_multiple_of(ALIGN) {
            return Err(PackError::Misaligned);
        }
        Ok(Self { layout, data })
    }

    /// Shape and sizes.
    pub fn layout(&self) -> &PackedLayout {
        &self.layout
    }

    /// Scales and codes of a group.
    pub(crate) fn group(&self, group: usize) -> (&'a [u8], &'a [u8]) {
        let bytes = self.layout.group_bytes();
        self.data[group * bytes..][..bytes].split_at(self.layout.scale_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_weights_hardly_outgrow_the_file() {
        for dtype in DType::ALL.into_iter().filter(|d| d.is_quantized()) {
            let layout = PackedLayout::new(dtype, 64, 2048).unwrap();
            let file = dtype.bytes_for(64 * 2048).unwrap();
            // Six-bit scales become eight-bit ones.
            assert!(layout.bytes() as f64 <= 1.04 * file as f64, "{dtype}");
            assert!(layout.bytes() >= file, "{dtype}");
        }
    }

    #[test]
    fn impossible_layouts_are_errors() {
        assert_eq!(
            PackedLayout::new(DType::F16, 4, 32),
            Err(PackError::Unsupported { dtype: DType::F16 })
        );
        assert!(matches!(
            PackedLayout::new(DType::Q4K, 4, 64),
            Err(PackError::PartialBlock { .. })
        ));
        assert!(matches!(
            PackedLayout::new(DType::Q8_0, usize::MAX, 1 << 40),
            Err(PackError::TooLarge { .. })
        ));
    }

    #[test]
    fn a_view_checks_size_and_alignment() {
        let layout = PackedLayout::new(DType::Q4_0, 3, 64).unwrap();
        let buffer = crate::buffer::AlignedBytes::zeroed(layout.bytes() + 1).unwrap();
        let bytes = buffer.as_slice();
        assert!(PackedMatrix::new(layout, &bytes[..layout.bytes()]).is_ok());
        assert_eq!(
            PackedMatrix::new(layout, &bytes[1..]).unwrap_err(),
            PackError::Misaligned
        );
        assert!(matches!(
            PackedMatrix::new(layout, bytes).unwrap_err(),
            PackError::WrongSize { .. }
        ));
    }
}
