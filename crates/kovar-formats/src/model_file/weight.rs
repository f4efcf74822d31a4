//! Weights of a model from the tensors of safetensors files.

use std::path::PathBuf;

use kovar_core::DType;

use super::{LazyTensor, TransformError};
use crate::safetensors::{SafeTensorInfo, SafeTensorsError, TensorDType};

/// Why the weights of a model in safetensors could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// The file is damaged.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SafeTensorsError,
    },
    /// The architecture has no such tensor.
    #[error("tensor {tensor:?} is not known")]
    Unknown {
        /// Its name.
        tensor: String,
    },
    /// The tensor has a dtype that kovar does not compute with.
    #[error("tensor {tensor:?} is {dtype}, which kovar does not support as a weight")]
    DType {
        /// Its name.
        tensor: String,
        /// Its dtype.
        dtype: TensorDType,
    },
    /// The tensor has dims that the model cannot have.
    #[error("tensor {tensor:?} has dims {dims:?}: {rule}")]
    Dims {
        /// Its name.
        tensor: String,
        /// Its dims, outermost first.
        dims: Vec<usize>,
        /// What must hold.
        rule: &'static str,
    },
    /// The tensor cannot be converted to its form in GGUF.
    #[error("tensor {tensor:?} ({dtype})")]
    Transform {
        /// Its name.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// The reason.
        source: TransformError,
    },
}

/// The floats of `tensor`, changed by `transform`.
pub(crate) fn weight(
    tensor: &SafeTensorInfo,
    transform: impl FnOnce(LazyTensor) -> Result<LazyTensor, TransformError>,
) -> Result<LazyTensor, WeightError> {
    let name = || tensor.name().to_owned();
    let dtype = tensor.dtype().to_dtype().filter(|dtype| dtype.is_float());
    let dtype = dtype.ok_or_else(|| WeightError::DType {
        tensor: name(),
        dtype: tensor.dtype(),
    })?;
    if tensor.dims().contains(&0) {
        return Err(WeightError::Dims {
            tensor: name(),
            dims: tensor.dims().to_vec(),
            rule: "no dim may be 0",
        });
    }
    let data = LazyTensor::new(dtype, tensor.dims(), tensor.bytes());
    data.and_then(transform)
        .map_err(|source| WeightError::Transform {
            tensor: name(),
            dtype,
            source,
        })
}
