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

/// The names of all ids that ggml has ever used, including those of removed types.
///
/// Source: `enum ggml_type` of ggml.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "F32", "F16", "Q4_0", "Q4_1", "Q4_2", "Q4_3", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K",
    "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8", "I16", "I32", "I64", "F64", "IQ1_M", "BF16", "Q4_0_4_4", "Q4_0_4_8",
    "Q4_0_8_8", "TQ1_0", "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4",
    "Q1_0",
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
    if let Some(dtype) = DType::ALL
        .into_iter()
        .find(|dtype| dtype.gguf_id() == Some(id))
    {
        return TypeOf::Readable(dtype);
    }
    match NAMES.get(id as usize) {
        Some(name) => TypeOf::Unsupported(name),
        None => TypeOf::Unknown,
    }
}

/// The names of the types that kovar reads, for messages.
pub(super) fn readable_types() -> String {
    let mut dtypes = DType::ALL.to_vec();
    dtypes.retain(|dtype| dtype.gguf_id().is_some());
    dtypes.sort_by_key(|dtype| dtype.gguf_id());
    let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_have_the_ids_of_their_names() {
        for dtype in DType::ALL {
            let id = NAMES.iter().position(|&name| name == dtype.name());
            assert_eq!(dtype.gguf_id().map(|id| id as usize), id, "{dtype}");
        }
    }
}
