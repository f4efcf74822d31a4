//! Matrix products `y[m, n] = x[m, k] * w[n, k]^T`, with quantised and with float weights.

pub(crate) mod activation;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_float;
mod error;
mod float;
mod kernels;
#[cfg(target_arch = "aarch64")]
mod neon;
mod panel;
mod portable;
mod quantized;
mod views;

pub use error::ProductError;
pub use float::{FloatDType, FloatMatrix};
pub use kernels::Kernels;
pub use quantized::{QuantizedProduct, QuantizedRows};
pub use views::{MatrixView, Rows, RowsMut};
