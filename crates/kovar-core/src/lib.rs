//! Dtypes, quantised block formats and their reference codecs, layouts, the operation vocabulary,
//! graphs with shape and alias inference, and the backend traits of kovar.

mod dtype;
pub mod error;
mod host;
pub mod quant;

pub use dtype::DType;
pub use host::{HostBytes, HostMemory};
