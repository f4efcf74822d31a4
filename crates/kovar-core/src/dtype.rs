//! Element types: plain numbers and the quantised blocks of GGUF.

use std::fmt;
use std::str::FromStr;

use crate::error::UnknownDType;

/// The element type of a value.
///
/// A *plain* dtype stores every element on its own. A *block* dtype (all others) stores
/// [`block_len`](DType::block_len) consecutive elements of a row together in
/// [`block_bytes`](DType::block_bytes) bytes, so rows are whole numbers of blocks.
///
/// Source of the block layouts: the GGUF specification and ggml's `ggml-common.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32 (bfloat16).
    BF16,
    /// Two's complement 32-bit integer.
    I32,
    /// Two's complement 8-bit integer.
    I8,
    /// IEEE 754 binary64.
    F64,
    /// A sign, 4 exponent and 3 mantissa bits; no infinities, the largest number is 448 (the "fn"
    /// form of the OCP 8-bit floating-point specification).
    F8E4M3,
    /// A sign, 5 exponent and 2 mantissa bits, with infinities: the upper half of a binary16.
    F8E5M2,
    /// Unsigned 8-bit integer.
    U8,
    /// Two's complement 16-bit integer.
    I16,
    /// Two's complement 64-bit integer.
    I64,
    /// A byte that is 0 for false; any other is true, and 1 is written.
    Bool,
    /// 32 elements of 4 bits with an f16 scale: `d * (q - 8)`.
    Q4_0,
    /// 32 elements of 4 bits with an f16 scale and minimum: `d * q + m`.
    Q4_1,
    /// 32 elements of 5 bits with an f16 scale: `d * (q - 16)`.
    Q5_0,
    /// 32 elements of 5 bits with an f16 scale and minimum: `d * q + m`.
    Q5_1,
    /// 32 elements of 8 bits with an f16 scale: `d * q`.
    Q8_0,
    /// A super-block of 256 elements of 2 bits; 16 sub-blocks with 4-bit scales and minima.
    Q2K,
    /// A super-block of 256 elements of 3 bits; 16 sub-blocks with 6-bit scales.
    Q3K,
    /// A super-block of 256 elements of 4 bits; 8 sub-blocks with 6-bit scales and minima.
    Q4K,
    /// A super-block of 256 elements of 5 bits; 8 sub-blocks with 6-bit scales and minima.
    Q5K,
    /// A super-block of 256 elements of 6 bits; 16 sub-blocks with 8-bit scales.
    Q6K,
    /// 32 elements of 4 bits, indices into a table of 16 unevenly spaced levels, with an f16 scale.
    IQ4NL,
    /// A super-block of 256 elements of 4 bits, of the levels of IQ4_NL; 8 sub-blocks with 6-bit
    /// scales.
    IQ4XS,
    /// 32 floats of 4 bits (E2M1) with a power of two as scale (E8M0): the OCP microscaling format.
    MXFP4,
}

struct Row {
    dtype: DType,
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
}

const fn row(dtype: DType, name: &'static str, block_len: usize, block_bytes: usize) -> Row {
    Row {
        dtype,
        name,
        block_len,
        block_bytes,
    }
}

/// One row per dtype, in the order of the enum.
const TABLE: [Row; 25] = [
    row(DType::F32, "F32", 1, 4),
    row(DType::F16, "F16", 1, 2),
    row(DType::BF16, "BF16", 1, 2),
    row(DType::I32, "I32", 1, 4),
    row(DType::I8, "I8", 1, 1),
    row(DType::F64, "F64", 1, 8),
    row(DType::F8E4M3, "F8_E4M3", 1, 1),
    row(DType::F8E5M2, "F8_E5M2", 1, 1),
    row(DType::U8, "U8", 1, 1),
    row(DType::I16, "I16", 1, 2),
    row(DType::I64, "I64", 1, 8),
    row(DType::Bool, "BOOL", 1, 1),
    row(DType::Q4_0, "Q4_0", 32, 18),
    row(DType::Q4_1, "Q4_1", 32, 20),
    row(DType::Q5_0, "Q5_0", 32, 22),
    row(DType::Q5_1, "Q5_1", 32, 24),
    row(DType::Q8_0, "Q8_0", 32, 34),
    row(DType::Q2K, "Q2_K", 256, 84),
    row(DType::Q3K, "Q3_K", 256, 110),
    row(DType::Q4K, "Q4_K", 256, 144),
    row(DType::Q5K, "Q5_K", 256, 176),
    row(DType::Q6K, "Q6_K", 256, 210),
    row(DType::IQ4NL, "IQ4_NL", 32, 18),
    row(DType::IQ4XS, "IQ4_XS", 256, 136),
    row(DType::MXFP4, "MXFP4", 32, 17),
];

impl DType {
    /// Every dtype, in the order of the enum.
    pub const ALL: [DType; 25] = {
        let mut all = [DType::F32; 25];
        let mut i = 0;
        while i < all.len() {
            all[i] = TABLE[i].dtype;
            i += 1;
        }
        all
    };

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name used by GGUF tools, or else by safetensors: `F32`, `Q4_K`, `F8_E4M3`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Elements stored together: 1 for plain dtypes, 32 or 256 for blocks.
    pub fn block_len(self) -> usize {
        self.row().block_len
    }

    /// Bytes of one block (of one element for plain dtypes).
    pub fn block_bytes(self) -> usize {
        self.row().block_bytes
    }

    /// Whether this is a quantised block dtype.
    pub fn is_quantized(self) -> bool {
        self.block_len() > 1
    }

    /// Whether this is a plain floating-point dtype.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2
        )
    }

    /// Whether elements are integers, or [`DType::Bool`], which is 0 or 1.
    pub fn is_integer(self) -> bool {
        !self.is_float() && !self.is_quantized()
    }

    /// Bytes of `elements` consecutive elements; `None` if they are not whole blocks or the
    /// byte count overflows.
    pub fn bytes_for(self, elements: usize) -> Option<usize> {
        if !elements.is_multiple_of(self.block_len()) {
            return None;
        }
        (elements / self.block_len()).checked_mul(self.block_bytes())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Reads a name as [`DType::name`] writes it, in either case.
    fn from_str(name: &str) -> Result<Self, UnknownDType> {
        TABLE
            .iter()
            .find(|row| row.name.eq_ignore_ascii_case(name))
            .map(|row| row.dtype)
            .ok_or_else(|| UnknownDType { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(dtype as usize, i);
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
        }
    }

    #[test]
    fn partial_blocks_have_no_size() {
        assert_eq!(DType::Q4_0.bytes_for(64), Some(36));
        assert_eq!(DType::Q4_0.bytes_for(33), None);
        assert_eq!(DType::F32.bytes_for(usize::MAX), None);
    }
}
