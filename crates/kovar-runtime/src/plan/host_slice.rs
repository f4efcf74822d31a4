//! Elements in host memory.

use kovar_core::DType;

/// Elements of an input of a run. Multi-byte elements are little-endian.
#[derive(Clone, Copy, Debug)]
pub struct HostSlice<'a> {
    dtype: Option<DType>,
    bytes: &'a [u8],
}

impl<'a> HostSlice<'a> {
    /// Bytes of elements of any dtype, contiguous.
    pub fn raw(bytes: &'a [u8]) -> Self {
        Self { dtype: None, bytes }
    }

    /// F32 elements.
    pub fn f32(elements: &'a [f32]) -> Self {
        Self {
            dtype: Some(DType::F32),
            bytes: bytemuck::cast_slice(elements),
        }
    }

    /// I32 elements.
    pub fn i32(elements: &'a [i32]) -> Self {
        Self {
            dtype: Some(DType::I32),
            bytes: bytemuck::cast_slice(elements),
        }
    }

    /// The elements' dtype; `None` for raw bytes.
    pub fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// The elements' bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

macro_rules! from_elements {
    ($element:ty, $make:ident) => {
        impl<'a> From<&'a [$element]> for HostSlice<'a> {
            fn from(elements: &'a [$element]) -> Self {
                Self::$make(elements)
            }
        }

        impl<'a> From<&'a Vec<$element>> for HostSlice<'a> {
            fn from(elements: &'a Vec<$element>) -> Self {
                Self::$make(elements)
            }
        }

        impl<'a, const N: usize> From<&'a [$element; N]> for HostSlice<'a> {
            fn from(elements: &'a [$element; N]) -> Self {
                Self::$make(elements)
            }
        }
    };
}

from_elements!(u8, raw);
from_elements!(f32, f32);
from_elements!(i32, i32);
