use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kovar::demo::Demo;
use kovar::ops::dtypes::CACHES;
use kovar::{Backend, DType, ModelOptions};

use super::{DeviceArgs, PlacementArgs, whole};

/// A model file or folder, or an embedded model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// An embedded story model.
    Demo(Demo),
    /// A GGUF file, or the folder of a Hugging Face model.
    File(PathBuf),
}

/// Paths need not be UTF-8.
impl From<OsString> for ModelSource {
    fn from(text: OsString) -> Self {
        let demo = Demo::ALL.into_iter().find(|demo| text == demo.name());
        demo.map_or_else(|| Self::File(text.into()), Self::Demo)
    }
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demo(demo) => demo.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The model.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// The model: a GGUF file, the folder of a Hugging Face model, the safetensors file of an
    /// RWKV-7 model with its vocabulary beside it, or `llama-stories` or `rwkv7-stories` for the
    /// small embedded models.
    #[arg(short, long, value_name = "FILE", default_value = Demo::LlamaStories.name())]
    pub model: ModelSource,
}

/// The model, and how it is loaded.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Model")]
pub struct RunArgs {
    #[command(flatten)]
    pub model: ModelArgs,

    /// Size of the context in tokens [default: the size that the model was trained for, at most
    /// 4096]. The context of a recurrent model (RWKV) is unlimited.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole(1u32..=1 << 24))]
    pub ctx: Option<u32>,

    /// Number type of the cached keys and values.
    #[arg(long, value_name = "DTYPE", default_value = "F16", ignore_case = true,
          value_parser = cache_type())]
    pub cache_type: DType,

    #[command(flatten)]
    pub device: DeviceArgs,

    #[command(flatten)]
    pub placement: PlacementArgs,

    /// Maximum number of tokens whose logits a step gives; memory budgets reserve space for them.
    #[arg(skip = 1usize)]
    pub logit_rows: usize,
}

impl RunArgs {
    /// The options of the library.
    ///
    /// # Errors
    /// An option that names none of `devices`.
    pub fn options(&self, devices: &[Arc<dyn Backend>]) -> anyhow::Result<ModelOptions> {
        let micro_batch = self.placement.micro_batch.map(|tokens| tokens as usize);
        Ok(ModelOptions {
            context: self.ctx.map(|tokens| tokens as usize),
            cache_dtype: self.cache_type,
            homes: self.placement.homes(devices)?,
            policy: self.placement.policy(devices),
            micro_batch: micro_batch.unwrap_or(ModelOptions::default().micro_batch),
            logit_rows: self.logit_rows,
        })
    }
}

/// A parser of the number type of cached keys and values. Its option needs `ignore_case`.
pub fn cache_type() -> impl TypedValueParser<Value = DType> {
    PossibleValuesParser::new(CACHES.iter().map(|dtype| dtype.name()))
        .try_map(|name| name.parse::<DType>())
}
