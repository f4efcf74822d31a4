//! Element types: plain numbers and the quantised blocks of GGUF.

use std::fmt;
use std::str::FromStr;

use crate::error::UnknownDType;
use crate::quant::{
    Block, BlockIQ4NL, BlockIQ4XS, BlockMXFP4, BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K,
    BlockQ5_0, BlockQ5_1, BlockQ5K, BlockQ6K, BlockQ8_0, BlockTQ2_0, Codec,
};

/// A row of the table.
struct Row {
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
    gguf_id: Option<u32>,
    traits: u8,
    codec: Option<Codec>,
}

/// What a dtype is and may be used for, as bits.
pub(crate) mod traits {
    /// A plain float.
    pub(crate) const FLOAT: u8 = 1 << 0;
    /// A plain integer, or Bool.
    pub(crate) const INTEGER: u8 = 1 << 1;
    /// Quantised blocks.
    pub(crate) const QUANTIZED: u8 = 1 << 2;
    /// An operand of arithmetic.
    pub(crate) const ARITHMETIC: u8 = 1 << 3;
    /// A factor of general products.
    pub(crate) const FACTOR: u8 = 1 << 4;
    /// What `copy` and `set_rows` encode floats as.
    pub(crate) const ENCODED: u8 = 1 << 5;
    /// Keys and values of attention.
    pub(crate) const CACHE: u8 = 1 << 6;
    /// An arithmetic progression.
    pub(crate) const PROGRESSION: u8 = 1 << 7;
    /// All that floats of 32 and 16 bits may be used for.
    pub(super) const COMPUTED: u8 = FLOAT | ARITHMETIC | FACTOR | ENCODED | CACHE;
}
use traits::*;

const fn plain(name: &'static str, bytes: usize, gguf_id: Option<u32>, traits: u8) -> Row {
    Row {
        name,
        block_len: 1,
        block_bytes: bytes,
        gguf_id,
        traits,
        codec: None,
    }
}

/// A dtype of blocks. All of them may be weights, since all decode to f32.
const fn quantized<B: Block<N>, const N: usize>(
    name: &'static str,
    gguf_id: Option<u32>,
    traits: u8,
) -> Row {
    Row {
        name,
        block_len: N,
        block_bytes: size_of::<B>(),
        gguf_id,
        traits: QUANTIZED | traits,
        codec: Some(Codec::of::<B, N>()),
    }
}

/// Declares [`DType`] and the table, which has a row for each dtype: the name, for plain dtypes the
/// bytes of an element, the id in GGUF files, and what the dtype is and may be used for.
macro_rules! dtypes {
    ($($(#[$doc:meta])* $dtype:ident = $row:expr;)*) => {
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
            $($(#[$doc])* $dtype,)*
        }

        /// One row per dtype, in the order of the enum.
        static TABLE: &[Row] = &[$($row),*];

        impl DType {
            /// Every dtype, in the order of the enum.
            pub const ALL: [DType; [$(DType::$dtype),*].len()] = [$(DType::$dtype),*];
        }
    };
}

dtypes! {
    /// IEEE 754 binary32.
    F32 = plain("F32", 4, Some(0), COMPUTED | PROGRESSION);
    /// IEEE 754 binary16.
    F16 = plain("F16", 2, Some(1), COMPUTED);
    /// The upper half of a binary32 (bfloat16).
    BF16 = plain("BF16", 2, Some(30), COMPUTED);
    /// Two's complement 32-bit integer.
    I32 = plain("I32", 4, Some(26), INTEGER | PROGRESSION);
    /// Two's complement 8-bit integer.
    I8 = plain("I8", 1, Some(24), INTEGER);
    /// IEEE 754 binary64.
    F64 = plain("F64", 8, Some(28), FLOAT | PROGRESSION);
    /// A sign, 4 exponent and 3 mantissa bits; no infinities, the largest number is 448 (the "fn"
    /// form of the OCP 8-bit floating-point specification).
    F8E4M3 = plain("F8_E4M3", 1, None, FLOAT | FACTOR | ENCODED);
    /// A sign, 5 exponent and 2 mantissa bits, with infinities: the upper half of a binary16.
    F8E5M2 = plain("F8_E5M2", 1, None, FLOAT | FACTOR | ENCODED);
    /// Unsigned 8-bit integer.
    U8 = plain("U8", 1, None, INTEGER);
    /// Two's complement 16-bit integer.
    I16 = plain("I16", 2, Some(25), INTEGER);
    /// Two's complement 64-bit integer.
    I64 = plain("I64", 8, Some(27), INTEGER | PROGRESSION);
    /// A byte that is 0 for false; any other is true, and 1 is written.
    Bool = plain("BOOL", 1, None, INTEGER);
    /// 32 elements of 4 bits with an f16 scale: `d * (q - 8)`.
    Q4_0 = quantized::<BlockQ4_0, _>("Q4_0", Some(2), 0);
    /// 32 elements of 4 bits with an f16 scale and minimum: `d * q + m`.
    Q4_1 = quantized::<BlockQ4_1, _>("Q4_1", Some(3), 0);
    /// 32 elements of 5 bits with an f16 scale: `d * (q - 16)`.
    Q5_0 = quantized::<BlockQ5_0, _>("Q5_0", Some(6), 0);
    /// 32 elements of 5 bits with an f16 scale and minimum: `d * q + m`.
    Q5_1 = quantized::<BlockQ5_1, _>("Q5_1", Some(7), 0);
    /// 32 elements of 8 bits with an f16 scale: `d * q`.
    Q8_0 = quantized::<BlockQ8_0, _>("Q8_0", Some(8), ENCODED | CACHE);
    /// A super-block of 256 elements of 2 bits; 16 sub-blocks with 4-bit scales and minima.
    Q2K = quantized::<BlockQ2K, _>("Q2_K", Some(10), 0);
    /// A super-block of 256 elements of 3 bits; 16 sub-blocks with 6-bit scales.
    Q3K = quantized::<BlockQ3K, _>("Q3_K", Some(11), 0);
    /// A super-block of 256 elements of 4 bits; 8 sub-blocks with 6-bit scales and minima.
    Q4K = quantized::<BlockQ4K, _>("Q4_K", Some(12), 0);
    /// A super-block of 256 elements of 5 bits; 8 sub-blocks with 6-bit scales and minima.
    Q5K = quantized::<BlockQ5K, _>("Q5_K", Some(13), 0);
    /// A super-block of 256 elements of 6 bits; 16 sub-blocks with 8-bit scales.
    Q6K = quantized::<BlockQ6K, _>("Q6_K", Some(14), 0);
    /// 32 elements of 4 bits, indices into a table of 16 unevenly spaced levels, with an f16 scale.
    IQ4NL = quantized::<BlockIQ4NL, _>("IQ4_NL", Some(20), 0);
    /// A super-block of 256 elements of 4 bits, of the levels of IQ4_NL; 8 sub-blocks with 6-bit
    /// scales.
    IQ4XS = quantized::<BlockIQ4XS, _>("IQ4_XS", Some(23), 0);
    /// 32 floats of 4 bits (E2M1) with a power of two as scale (E8M0): the OCP microscaling format.
    MXFP4 = quantized::<BlockMXFP4, _>("MXFP4", Some(39), 0);
    /// 256 elements of 2 bits, of which -1, 0 and 1 are used, with an f16 scale: `d * (q - 1)`.
    TQ2_0 = quantized::<BlockTQ2_0, _>("TQ2_0", Some(35), 0);
}

/// How many dtypes have any of `traits`.
pub(crate) const fn count(traits: u8) -> usize {
    let (mut n, mut i) = (0, 0);
    while i < TABLE.len() {
        n += (TABLE[i].traits & traits != 0) as usize;
        i += 1;
    }
    n
}

/// The dtypes that have any of `traits`, in the order of the enum.
pub(crate) const fn list<const N: usize>(traits: u8) -> [DType; N] {
    let mut list = [DType::F32; N];
    let (mut n, mut i) = (0, 0);
    while i < TABLE.len() {
        if TABLE[i].traits & traits != 0 {
            list[n] = DType::ALL[i];
            n += 1;
        }
        i += 1;
    }
    list
}

impl DType {
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

    /// The id in GGUF files; `None` if GGUF has no such type.
    pub fn gguf_id(self) -> Option<u32> {
        self.row().gguf_id
    }

    /// Whether this is a quantised block dtype.
    pub fn is_quantized(self) -> bool {
        self.is(QUANTIZED)
    }

    /// Whether this is a plain floating-point dtype.
    pub fn is_float(self) -> bool {
        self.is(FLOAT)
    }

    /// Whether elements are integers, or [`DType::Bool`], which is 0 or 1.
    pub fn is_integer(self) -> bool {
        self.is(INTEGER)
    }

    fn is(self, traits: u8) -> bool {
        self.row().traits & traits != 0
    }

    /// The codec of a block dtype.
    pub(crate) fn codec(self) -> Option<&'static Codec> {
        self.row().codec.as_ref()
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
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownDType { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_are_given_once() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
            let same = |other: &DType| dtype.gguf_id() == other.gguf_id();
            let shared = DType::ALL.iter().filter(|other| same(other)).count();
            assert!(shared == 1 || dtype.gguf_id().is_none(), "{dtype}");
        }
    }

    #[test]
    fn partial_blocks_have_no_size() {
        assert_eq!(DType::Q4_0.bytes_for(64), Some(36));
        assert_eq!(DType::Q4_0.bytes_for(33), None);
        assert_eq!(DType::F32.bytes_for(usize::MAX), None);
    }
}
