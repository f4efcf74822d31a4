//! The tensors of a GGUF file and the ids of their types.

use kovar_core::DType;

use crate::model_file::LazyTensor;
use crate::tensor::FileTensor;

/// A tensor of a GGUF file.
pub type TensorInfo = FileTensor<DType>;

impl TensorInfo {
    pub(crate) fn into_lazy(self) -> (Box<str>, LazyTensor) {
        let data = LazyTensor::window(self.dtype, self.dims, self.data);
        (self.name, data)
    }
}

/// A type of ggml: its id in files, ggml's name, and the dtype if kovar reads it.
struct GgmlType {
    id: u32,
    name: &'static str,
    dtype: Option<DType>,
}

const fn reads(id: u32, name: &'static str, dtype: DType) -> GgmlType {
    let dtype = Some(dtype);
    GgmlType { id, name, dtype }
}

const fn knows(id: u32, name: &'static str) -> GgmlType {
    let dtype = None;
    GgmlType { id, name, dtype }
}

/// Every id that ggml has ever used, including those of removed types.
///
/// Source: `enum ggml_type` of ggml.
const TYPES: &[GgmlType] = &[
    reads(0, "F32", DType::F32),
    reads(1, "F16", DType::F16),
    reads(2, "Q4_0", DType::Q4_0),
    reads(3, "Q4_1", DType::Q4_1),
    knows(4, "Q4_2"),
    knows(5, "Q4_3"),
    reads(6, "Q5_0", DType::Q5_0),
    reads(7, "Q5_1", DType::Q5_1),
    reads(8, "Q8_0", DType::Q8_0),
    knows(9, "Q8_1"),
    reads(10, "Q2_K", DType::Q2K),
    reads(11, "Q3_K", DType::Q3K),
    reads(12, "Q4_K", DType::Q4K),
    reads(13, "Q5_K", DType::Q5K),
    reads(14, "Q6_K", DType::Q6K),
    knows(15, "Q8_K"),
    knows(16, "IQ2_XXS"),
    knows(17, "IQ2_XS"),
    knows(18, "IQ3_XXS"),
    knows(19, "IQ1_S"),
    reads(20, "IQ4_NL", DType::IQ4NL),
    knows(21, "IQ3_S"),
    knows(22, "IQ2_S"),
    reads(23, "IQ4_XS", DType::IQ4XS),
    reads(24, "I8", DType::I8),
    reads(25, "I16", DType::I16),
    reads(26, "I32", DType::I32),
    reads(27, "I64", DType::I64),
    reads(28, "F64", DType::F64),
    knows(29, "IQ1_M"),
    reads(30, "BF16", DType::BF16),
    knows(31, "Q4_0_4_4"),
    knows(32, "Q4_0_4_8"),
    knows(33, "Q4_0_8_8"),
    knows(34, "TQ1_0"),
    knows(35, "TQ2_0"),
    knows(36, "IQ4_NL_4_4"),
    knows(37, "IQ4_NL_4_8"),
    knows(38, "IQ4_NL_8_8"),
    reads(39, "MXFP4", DType::MXFP4),
    knows(40, "NVFP4"),
    knows(41, "Q1_0"),
];

/// The type with a given id.
pub(super) enum TypeOf {
    /// A type that kovar reads.
    Readable(DType),
    /// A type of ggml that kovar does not read.
    Unsupported(&'static str),
    /// No type has the id.
    Unknown,
}

pub(super) fn type_of(id: u32) -> TypeOf {
    match TYPES.iter().find(|row| row.id == id) {
        Some(row) => match row.dtype {
            Some(dtype) => TypeOf::Readable(dtype),
            None => TypeOf::Unsupported(row.name),
        },
        None => TypeOf::Unknown,
    }
}

/// The id that files use for `dtype`; `None` if GGUF has no such type.
pub(super) fn type_id(dtype: DType) -> Option<u32> {
    let row = TYPES.iter().find(|row| row.dtype == Some(dtype))?;
    Some(row.id)
}

/// The names of the types that kovar reads, for messages.
pub(super) fn readable_types() -> String {
    let names: Vec<&str> = TYPES
        .iter()
        .filter(|row| row.dtype.is_some())
        .map(|row| row.name)
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_but_four_has_the_id_of_its_name() {
        let lacking = [DType::F8E4M3, DType::F8E5M2, DType::U8, DType::Bool];
        for dtype in DType::ALL {
            let Some(row) = TYPES.iter().find(|row| row.dtype == Some(dtype)) else {
                assert!(lacking.contains(&dtype), "{dtype}");
                continue;
            };
            assert_eq!(row.name, dtype.name());
            assert_eq!(type_id(dtype), Some(row.id));
        }
    }

    #[test]
    fn ids_are_given_once_and_in_order() {
        assert!(TYPES.windows(2).all(|pair| pair[0].id < pair[1].id));
    }
}
