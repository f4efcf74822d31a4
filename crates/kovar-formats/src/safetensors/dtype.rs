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

/// A dtype's name in files, bytes per element, and the dtype that kovar computes with.
struct Row(TensorDType, &'static str, usize, Option<DType>);

const TABLE: &[Row] = &[
    Row(TensorDType::Bool, "BOOL", 1, Some(DType::Bool)),
    Row(TensorDType::U8, "U8", 1, Some(DType::U8)),
    Row(TensorDType::I8, "I8", 1, Some(DType::I8)),
    Row(TensorDType::F8E5M2, "F8_E5M2", 1, Some(DType::F8E5M2)),
    Row(TensorDType::F8E4M3, "F8_E4M3", 1, Some(DType::F8E4M3)),
    Row(TensorDType::F8E8M0, "F8_E8M0", 1, None),
    Row(TensorDType::I16, "I16", 2, Some(DType::I16)),
    Row(TensorDType::U16, "U16", 2, None),
    Row(TensorDType::F16, "F16", 2, Some(DType::F16)),
    Row(TensorDType::BF16, "BF16", 2, Some(DType::BF16)),
    Row(TensorDType::I32, "I32", 4, Some(DType::I32)),
    Row(TensorDType::U32, "U32", 4, None),
    Row(TensorDType::F32, "F32", 4, Some(DType::F32)),
    Row(TensorDType::C64, "C64", 8, None),
    Row(TensorDType::F64, "F64", 8, Some(DType::F64)),
    Row(TensorDType::I64, "I64", 8, Some(DType::I64)),
    Row(TensorDType::U64, "U64", 8, None),
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

    /// The dtype that kovar computes with; `None` if it has none.
    pub fn to_dtype(self) -> Option<DType> {
        self.row().3
    }

    /// The dtype that files have for one of kovar's; `None` for blocks.
    pub fn of(dtype: DType) -> Option<Self> {
        TABLE
            .iter()
            .find(|row| row.3 == Some(dtype))
            .map(|row| row.0)
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
    fn a_dtype_and_its_kovar_dtype_agree_on_name_and_size() {
        for &Row(dtype, name, bytes, own) in TABLE {
            if let Some(own) = own {
                assert_eq!((own.name(), own.block_bytes()), (name, bytes));
                assert_eq!(TensorDType::of(own), Some(dtype));
            }
        }
        for dtype in DType::ALL {
            assert_eq!(TensorDType::of(dtype).is_none(), dtype.is_quantized());
        }
    }
}
