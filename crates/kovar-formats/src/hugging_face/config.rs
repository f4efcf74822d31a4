//! Hyperparameters: from `config.json` to GGUF's keys.

use serde_json::Value as Json;

use super::HuggingFaceError;
use super::json::Config;
use super::rope::{self, Rope};
use crate::gguf::Value;

/// A class of transformers, and the architecture of GGUF that it becomes.
struct Class {
    name: &'static str,
    model_type: &'static str,
    architecture: &'static str,
    /// The default of the class for `num_key_value_heads`.
    n_kv_heads: Option<u32>,
    /// The default of the class for `head_dim`.
    head_dim: Option<u32>,
    window: Window,
}

/// Which layers attend to a sliding window only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    None,
    /// All layers, unless the config sets `sliding_window` to null.
    All,
    /// None unless `use_sliding_window` is set. Then those of `layer_types`, or without that key
    /// the layers from `max_window_layers` on.
    Switched,
}

const DEFAULT_WINDOW: u32 = 4096;
const DEFAULT_MAX_WINDOW_LAYERS: u32 = 28;

const fn class(
    name: &'static str,
    model_type: &'static str,
    architecture: &'static str,
    n_kv_heads: Option<u32>,
) -> Class {
    Class {
        name,
        model_type,
        architecture,
        n_kv_heads,
        head_dim: None,
        window: Window::None,
    }
}

/// Source: the configuration classes of transformers 5.
const CLASSES: &[Class] = &[
    class("LlamaForCausalLM", "llama", "llama", None),
    Class {
        window: Window::All,
        ..class("MistralForCausalLM", "mistral", "llama", Some(8))
    },
    Class {
        window: Window::Switched,
        ..class("Qwen2ForCausalLM", "qwen2", "qwen2", Some(32))
    },
    Class {
        window: Window::Switched,
        head_dim: Some(128),
        ..class("Qwen3ForCausalLM", "qwen3", "qwen3", Some(32))
    },
];

/// Keys with the only value that the architectures support.
fn plain_values() -> [(&'static str, Json); 5] {
    [
        ("hidden_act", "silu".into()),
        ("quantization_config", Json::Null),
        ("mlp_bias", false.into()),
        ("num_local_experts", 0.into()),
        ("num_experts", 0.into()),
    ]
}

/// The hyperparameters in the config.
pub(super) struct Hyperparams {
    pub(super) architecture: &'static str,
    pub(super) vocab_len: u32,
    pub(super) n_layers: u32,
    pub(super) n_heads: u32,
    pub(super) n_kv_heads: u32,
    pub(super) is_tied: bool,
    pub(super) rope: Rope,
    rest: Vec<(&'static str, Value)>,
}

pub(super) fn read(config: &Config) -> Result<Hyperparams, HuggingFaceError> {
    let class = class_of(config)?;
    for (key, plain) in plain_values() {
        config.allow_only(key, &plain)?;
    }
    let n_heads = config.require_size("num_attention_heads")?;
    let n_kv_heads = config.size("num_key_value_heads")?;
    let n_kv_heads = n_kv_heads.or(class.n_kv_heads).unwrap_or(n_heads);
    let width = config.require_size("hidden_size")?;
    let head_dim = config.size("head_dim")?.or(class.head_dim);
    let head_dim = head_dim.unwrap_or(width / n_heads);
    if head_dim == 0 || !head_dim.is_multiple_of(2) {
        let expected = "a number that `hidden_size` is an even multiple of";
        return Err(config.wrong("num_attention_heads", expected));
    }
    let context = config.integer("max_position_embeddings")?;
    let context = context.ok_or_else(|| config.missing("max_position_embeddings"))?;
    let eps = config.positive("rms_norm_eps")?.unwrap_or(1e-6);
    let mut rest: Vec<(&'static str, Value)> = vec![
        ("context_length", context.into()),
        ("embedding_length", width.into()),
        (
            "feed_forward_length",
            config.require_size("intermediate_size")?.into(),
        ),
        ("attention.head_count", n_heads.into()),
        ("attention.head_count_kv", n_kv_heads.into()),
        ("attention.layer_norm_rms_epsilon", (eps as f32).into()),
        ("rope.dimension_count", head_dim.into()),
    ];
    if u64::from(head_dim) * u64::from(n_heads) != u64::from(width) {
        rest.push(("attention.key_length", head_dim.into()));
        rest.push(("attention.value_length", head_dim.into()));
    }
    let n_layers = config.require_size("num_hidden_layers")?;
    if let Some(window) = window(config, class, n_layers)? {
        rest.push(("attention.sliding_window", window.into()));
    }
    Ok(Hyperparams {
        architecture: class.architecture,
        vocab_len: config.require_size("vocab_size")?,
        n_layers,
        n_heads,
        n_kv_heads,
        is_tied: config.bool("tie_word_embeddings")?.unwrap_or(false),
        rope: rope::read(config, head_dim)?,
        rest,
    })
}

fn class_of(config: &Config) -> Result<&'static Class, HuggingFaceError> {
    if let Some(names) = config.list("architectures")? {
        let name = names.first().and_then(Json::as_str);
        let found = CLASSES.iter().find(|class| Some(class.name) == name);
        return found.ok_or_else(|| config.unsupported("architectures"));
    }
    let name = config.str("model_type")?;
    let name = name.ok_or_else(|| config.missing("model_type"))?;
    let found = CLASSES.iter().find(|class| class.model_type == name);
    found.ok_or_else(|| config.unsupported("model_type"))
}

/// The sliding window of all layers; `None` if no layer has one. A mixture is not supported.
fn window(config: &Config, class: &Class, n_layers: u32) -> Result<Option<u32>, HuggingFaceError> {
    let size = || {
        if config.has("sliding_window") {
            config.integer("sliding_window")
        } else {
            Ok(Some(DEFAULT_WINDOW))
        }
    };
    let uses = match class.window {
        Window::None => false,
        Window::All => true,
        Window::Switched => config.bool("use_sliding_window")?.unwrap_or(false),
    };
    let Some(size) = size()?.filter(|&size| uses && size > 0) else {
        return Ok(None);
    };
    if class.window == Window::All {
        return Ok(Some(size));
    }
    if let Some(kinds) = config.list("layer_types")? {
        let are = |kind: &str| kinds.iter().all(|found| found.as_str() == Some(kind));
        return match (are("full_attention"), are("sliding_attention")) {
            (true, _) => Ok(None),
            (_, true) => Ok(Some(size)),
            _ => Err(config.unsupported("layer_types")),
        };
    }
    let first = config.integer("max_window_layers")?;
    match first.unwrap_or(DEFAULT_MAX_WINDOW_LAYERS) {
        0 => Ok(Some(size)),
        first if first >= n_layers => Ok(None),
        _ => Err(config.unsupported("max_window_layers")),
    }
}

impl Hyperparams {
    /// The metadata in GGUF of a model called `name`.
    pub(super) fn metadata(&self, name: &str) -> Vec<(String, Value)> {
        let general: [(&str, Value); 3] = [
            ("general.architecture", self.architecture.into()),
            ("general.type", "model".into()),
            ("general.name", name.into()),
        ];
        let own: [(&str, Value); 2] = [
            ("block_count", self.n_layers.into()),
            ("vocab_size", self.vocab_len.into()),
        ];
        let own = own.iter().chain(&self.rest).chain(&self.rope.metadata);
        let own = own.map(|(key, value)| (format!("{}.{key}", self.architecture), value.clone()));
        let general = general.map(|(key, value)| (key.to_owned(), value));
        general.into_iter().chain(own).collect()
    }
}
