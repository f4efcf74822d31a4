//! Copies of the elements of tensors as numbers.

use half::{bf16, f16};

use super::{ReadError, SafeTensorInfo, SafeTensors, TensorDType};

impl SafeTensors {
    /// The elements of the F32, F16 or BF16 tensor called `name`, row-major, as `f32`.
    ///
    /// # Errors
    /// The tensor is missing or of another dtype.
    pub fn read_f32(&self, name: &str) -> Result<Vec<f32>, ReadError> {
        let tensor = self.required(name)?;
        match tensor.dtype {
            TensorDType::F32 => Ok(elements(tensor, f32::from_le_bytes)),
            TensorDType::F16 => Ok(elements(tensor, |b| f16::from_le_bytes(b).to_f32())),
            TensorDType::BF16 => Ok(elements(tensor, |b| bf16::from_le_bytes(b).to_f32())),
            found => Err(ReadError::WrongDType {
                tensor: name.to_owned(),
                expected: "F32, F16 or BF16",
                found,
            }),
        }
    }

    /// The elements of the I64 or I32 tensor called `name`, row-major, as `i64`.
    ///
    /// # Errors
    /// The tensor is missing or of another dtype.
    pub fn read_i64(&self, name: &str) -> Result<Vec<i64>, ReadError> {
        let tensor = self.required(name)?;
        match tensor.dtype {
            TensorDType::I64 => Ok(elements(tensor, i64::from_le_bytes)),
            TensorDType::I32 => Ok(elements(tensor, |b| i32::from_le_bytes(b).into())),
            found => Err(ReadError::WrongDType {
                tensor: name.to_owned(),
                expected: "I64 or I32",
                found,
            }),
        }
    }

    fn required(&self, name: &str) -> Result<&SafeTensorInfo, ReadError> {
        self.tensor(name).ok_or_else(|| ReadError::Missing {
            tensor: name.to_owned(),
        })
    }
}

fn elements<T, const N: usize>(tensor: &SafeTensorInfo, decode: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (elements, _) = tensor.data.as_slice().as_chunks::<N>();
    elements.iter().map(|element| decode(*element)).collect()
}
