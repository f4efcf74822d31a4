#![doc = include_str!("../../../README.md")]
//!
//! # A custom graph
//!
//! ```
//! use kovar::runtime::HostSlice;
//! use kovar::{DType, Graph, HostBytes, Policy, Session, compile};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // y = x w^T + b; dims are outermost first.
//! let mut graph = Graph::new();
//! let w = graph.weight("w", DType::F32, &[2, 3])?;
//! let b = graph.weight("b", DType::F32, &[2])?;
//! let x = graph.input("x", DType::F32, &[1, 3])?;
//! let product = graph.matmul(w, x)?;
//! let y = graph.add(product, b)?;
//! graph.set_output(y, "y")?;
//!
//! let session = Session::new(kovar::devices(&kovar::DeviceOptions::default())?)?;
//! let bytes = |values: &[f32]| {
//!     let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
//!     HostBytes::new(std::sync::Arc::new(bytes))
//! };
//! session.add_weight("w", DType::F32, &[2, 3], bytes(&[1., 2., 3., 4., 5., 6.]))?;
//! session.add_weight("b", DType::F32, &[2], bytes(&[10., 20.]))?;
//!
//! let plan = compile(&graph, &session, &Policy::default())?;
//! let mut result = [0.0; 2];
//! plan.run(&[(x, HostSlice::f32(&[1., 1., 1.]))], &[])?.read_f32(y, &mut result)?;
//! assert_eq!(result, [16.0, 35.0]);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod cache;
pub mod demo;
mod devices;
mod open;
mod rates;

pub use devices::{DeviceOptions, DevicesError, device_names, devices, gpu_of};
pub use open::{OpenError, load, open};
pub use rates::{MeasuredRates, RatesNote, measured_rates, rates_cache};

pub use kovar_core::backend::{self, Backend, DeviceInfo, DeviceKind, Program, Queue, Support};
pub use kovar_core::{
    DType, Dims, Graph, HostBytes, HostMemory, Layout, NodeId, NodeRef, ScalarId, Storage,
    StorageId, StorageKind, Value, ValueId, error as core_error, ops, quant,
};
pub use kovar_cpu as cpu;
pub use kovar_formats::{
    FileWriteError, Gguf, GgufError, GgufWriter, HuggingFaceError, LazyTensor, Metadata,
    MetadataError, ModelFile, ModelFileError, ModelFormat, ModelTensor, SafeTensors,
    SafeTensorsError, TensorInfo, gguf, map_file, quantize, safetensors, synth,
};
pub use kovar_gpu as gpu;
pub use kovar_runtime as runtime;
pub use kovar_runtime::{
    CompileError, PlaceError, Plan, Policy, RunError, Session, SessionError, compile,
};
pub use kovar_text as text;
pub use kovar_text::{
    ChatTemplate, EncodeOptions, EvalError, FinishReason, GenerateError, GenerateOptions,
    Generation, Grammar, GrammarError, GrammarKind, LanguageModel, LanguageModelError, LoadError,
    LogitsOf, Message, Model, ModelOptions, PerplexityError, Progress, RenderOptions, Sampler,
    SamplerError, SamplerParams, SavedText, SavedTextError, TemplateError, TemplateKind, TokenType,
    Tokenizer, TokenizerError, TokenizerSpec, generate, perplexity,
};
