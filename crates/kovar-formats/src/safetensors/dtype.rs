//! The dtypes of safetensors.

use std::fmt;

use kovar_core::DType;

/// A dtype that a safetensors file can name; more than kovar computes with. In the order of the
/// format, by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TensorDType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// 8-bit float with 5 exponent bits.
    F8E5M2,
    /// 8-bit float with 4 exponent bits.
    F8E4M3,
    /// 8-bit power of two.
    F8E8M0,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 16-bit integer.
    U16,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    BF16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// IEEE 754 binary32.
    F32,
    /// Complex number of two binary32.
    C64,
    /// IEEE 754 binary64.
    F64,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
}

/// A dtype's name in files, and bytes per element.
struct Row(TensorDType, &'static str, usize);

const TABLE: &[Row] = &[
    Row(TensorDType::Bool, "BOOL", 1),
    Row(TensorDType::U8, "U8", 1),
    Row(TensorDType::I8, "I8", 1),
    Row(TensorDType::F8E5M2, "F8_E5M2", 1),
    Row(TensorDType::F8E4M3, "F8_E4M3", 1),
    Row(TensorDType::F8E8M0, "F8_E8M0", 1),
    Row(TensorDType::I16, "I16", 2),
    Row(TensorDType::U16, "U16", 2),
    Row(TensorDType::F16, "F16", 2),
    Row(TensorDType::BF16, "BF16", 2),
    Row(TensorDType::I32, "I32", 4),
    Row(TensorDType::U32, "U32", 4),
    Row(TensorDType::F32, "F32", 4),
    Row(TensorDType::C64, "C64", 8),
    Row(TensorDType::F64, "F64", 8),
    Row(TensorDType::I64, "I64", 8),
    Row(TensorDType::U64, "U64", 8),
];

impl TensorDType {
    /// The name in files: `F32`, `F8_E4M3`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        self.row().2
    }

    /// The dtype of kovar, which has the same name; `None` if kovar has none.
    pub fn to_dtype(self) -> Option<DType> {
        self.name().parse().ok()
    }

    /// The dtype that files have for one of kovar's; `None` for blocks.
    pub fn of(dtype: DType) -> Option<Self> {
        Self::from_name(dtype.name())
    }

    /// The dtype that files call `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

impl fmt::Display for TensorDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
            assert_eq!(TensorDType::from_name(row.1), Some(row.0));
        }
        assert_eq!(TABLE.len(), TensorDType::U64 as usize + 1);
    }

    #[test]
    fn dtypes_of_one_name_have_one_size() {
        for &Row(dtype, _, bytes) in TABLE {
            if let Some(own) = dtype.to_dtype() {
                assert_eq!(own.block_bytes(), bytes);
                assert_eq!(TensorDType::of(own), Some(dtype));
            }
        }
        for dtype in DType::ALL {
            assert_eq!(TensorDType::of(dtype).is_none(), dtype.is_quantized());
        }
    }
}
