//! Tokenizers, chat templates, samplers and language models of kovar.

#![forbid(unsafe_code)]

pub mod architecture;
mod chunks;
mod decoder;
pub mod generate;
pub mod grammar;
mod hyperparameters;
pub mod language_model;
mod llama;
pub mod model;
pub mod perplexity;
mod qwen2;
mod qwen3;
mod rwkv7;
pub mod sampler;
pub mod stream;
pub mod template;
pub mod tokenizer;

pub use generate::{FinishReason, GenerateError, GenerateOptions, Generation, Progress, generate};
pub use grammar::{Constraint, Grammar, GrammarError, GrammarKind};
pub use language_model::{LanguageModel, LanguageModelError};
pub use model::{
    EvalError, LoadError, LogitsOf, Model, ModelForecast, ModelOptions, SavedText, SavedTextError,
};
pub use perplexity::{Perplexity, PerplexityError, perplexity};
pub use sampler::{Sampler, SamplerError, SamplerParams};
pub use stream::{EmptyStopString, StopMatch, StopStrings, Utf8Stream};
pub use template::{ChatTemplate, Message, RenderOptions, TemplateError, TemplateKind};
pub use tokenizer::{
    DecodeOptions, EncodeOptions, TokenType, Tokenizer, TokenizerError, TokenizerSpec,
    TokenizerWarning,
};
