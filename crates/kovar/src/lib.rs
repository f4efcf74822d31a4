#![doc = include_str!("../../../README.md")]

pub mod demo;
mod devices;
mod open;

pub use devices::{DEVICE_NAMES, DeviceOptions, DevicesError, devices};
pub use open::{OpenError, load, open};

pub use kovar_core::backend::{self, Backend, DeviceInfo, DeviceKind, Program, Queue, Support};
pub use kovar_core::{
    DType, Dims, Graph, HostBytes, HostMemory, Layout, NodeId, NodeRef, ScalarId, StorageId,
    StorageKind, ValueId, error as core_error, ops, quant,
};
pub use kovar_cpu as cpu;
pub use kovar_formats::{
    Gguf, GgufError, GgufWriter, Metadata, MetadataError, SafeTensors, SafeTensorsError,
    TensorInfo, gguf, map_file, quantize, safetensors, synth,
};
pub use kovar_runtime as runtime;
pub use kovar_runtime::{CompileError, Plan, Policy, RunError, Session, SessionError, compile};
pub use kovar_text as text;
pub use kovar_text::{
    ChatTemplate, EncodeOptions, EvalError, FinishReason, GenerateError, GenerateOptions,
    Generation, LanguageModel, LanguageModelError, LoadError, LogitsOf, Message, Model,
    ModelOptions, Progress, RenderOptions, Sampler, SamplerError, SamplerParams, TemplateError,
    TemplateKind, TokenType, Tokenizer, TokenizerError, TokenizerSpec, generate,
};
