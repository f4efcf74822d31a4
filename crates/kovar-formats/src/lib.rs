//! Model files for kovar: GGUF and safetensors, memory-mapped.
//!
//! Files are untrusted input. Every length, count, offset, alignment and type is checked before
//! use, memory grows only with what was actually parsed, and every error names the field and its
//! offset in the file. Tensor bytes are windows of the mapped file
//! ([`HostBytes`](kovar_core::HostBytes)) and are not copied.

mod error;
pub mod gguf;
mod hugging_face;
mod index;
mod mmap;
mod model_file;
pub mod quantize;
mod replace;
mod rwkv;
pub mod safetensors;
mod small_file;
pub mod synth;
mod tensor;

pub use error::{FileReadError, FileWriteError};
pub use gguf::{Gguf, GgufError, GgufWriter, Metadata, MetadataError, TensorInfo, Value};
pub use hugging_face::HuggingFaceError;
pub use mmap::map_file;
pub use model_file::{
    LazyTensor, ModelFile, ModelFileError, ModelFormat, ModelTensor, TransformError, WeightError,
};
pub use rwkv::RwkvError;
pub use safetensors::{SafeTensors, SafeTensorsError};
pub use tensor::FileTensor;

/// The most dims that a tensor of a file may have: the most of a kovar layout. ggml writes at most
/// 4.
pub const MAX_DIMS: usize = 6;

/// The largest size in a model (tokens, widths): a product of three sizes does not overflow.
const MAX_SIZE: usize = 1 << 20;
