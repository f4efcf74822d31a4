//! Rotary position embeddings: from the config to GGUF's keys and frequency divisors.

use std::f64::consts::TAU;

use serde_json::Value as Json;

use super::HuggingFaceError;
use super::json::Config;
use crate::gguf::Value;

/// The rotary settings of a model.
pub(super) struct Rope {
    /// Keys without the prefix `<architecture>.`, and their values.
    pub(super) metadata: Vec<(&'static str, Value)>,
    /// The divisors of the frequencies of the pairs.
    pub(super) factors: Option<Vec<f32>>,
}

const DEFAULT_BASE: f64 = 10_000.0;

/// The kinds of scaling and their keys besides [`COMMON`].
const KINDS: &[(&str, &[&str])] = &[
    ("default", &[]),
    ("linear", &["factor"]),
    (
        "llama3",
        &[
            "factor",
            "low_freq_factor",
            "high_freq_factor",
            "original_max_position_embeddings",
        ],
    ),
    (
        "yarn",
        &[
            "factor",
            "original_max_position_embeddings",
            "attention_factor",
            "beta_fast",
            "beta_slow",
        ],
    ),
];
const COMMON: &[&str] = &["rope_type", "type", "rope_theta", "partial_rotary_factor"];

/// Reads `rope_parameters` (transformers 5), or `rope_scaling` and `rope_theta` (older versions).
pub(super) fn read(config: &Config, head_dim: u32) -> Result<Rope, HuggingFaceError> {
    let settings = match config.object("rope_parameters")? {
        Some(settings) => Some(settings),
        None => config.object("rope_scaling")?,
    };
    refuse_partial(config)?;
    let outer = config.positive("rope_theta")?;
    let Some(settings) = settings else {
        let base = outer.unwrap_or(DEFAULT_BASE);
        return Ok(Rope {
            metadata: vec![("rope.freq_base", (base as f32).into())],
            factors: None,
        });
    };
    refuse_partial(&settings)?;
    let base = settings.positive("rope_theta")?.or(outer);
    let base = base.unwrap_or(DEFAULT_BASE);
    let mut metadata: Vec<(&'static str, Value)> = vec![("rope.freq_base", (base as f32).into())];
    let (kind_key, kind) = match settings.str("rope_type")? {
        Some(kind) => ("rope_type", kind),
        None => ("type", settings.str("type")?.unwrap_or("default")),
    };
    let Some((_, keys)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        return Err(settings.unsupported(kind_key));
    };
    let is_known = |key: &str| keys.contains(&key) || COMMON.contains(&key);
    // Some configs of kind `default` also have keys of other kinds, which have no effect.
    if kind != "default"
        && let Some(key) = settings.keys().find(|key| !is_known(key))
    {
        return Err(settings.unsupported(key));
    }
    if let Some(key) = settings
        .keys()
        .find(|key| settings.get(key).is_some_and(Json::is_object))
    {
        return Err(settings.unsupported(key));
    }
    let mut factors = None;
    match kind {
        "linear" => {
            let factor = settings.require_positive("factor")?;
            metadata.push(("rope.scaling.type", "linear".into()));
            metadata.push(("rope.scaling.factor", (factor as f32).into()));
        }
        "yarn" => {
            let factor = settings.require_positive("factor")?;
            metadata.push(("rope.scaling.type", "yarn".into()));
            metadata.push(("rope.scaling.factor", (factor as f32).into()));
            if let Some(context) = settings.integer("original_max_position_embeddings")? {
                metadata.push(("rope.scaling.original_context_length", context.into()));
            }
            for (key, name) in [
                ("beta_fast", "rope.scaling.yarn_beta_fast"),
                ("beta_slow", "rope.scaling.yarn_beta_slow"),
            ] {
                if let Some(beta) = settings.positive(key)? {
                    metadata.push((name, (beta as f32).into()));
                }
            }
            if let Some(attention) = settings.positive("attention_factor")? {
                // GGUF's factor multiplies that of the paper.
                let paper = if factor > 1.0 {
                    0.1 * factor.ln() + 1.0
                } else {
                    1.0
                };
                metadata.push((
                    "rope.scaling.attn_factor",
                    ((attention / paper) as f32).into(),
                ));
            }
        }
        "llama3" => factors = Some(llama3_factors(&settings, base, head_dim)?),
        _ => {}
    }
    Ok(Rope { metadata, factors })
}

fn refuse_partial(config: &Config) -> Result<(), HuggingFaceError> {
    const KEY: &str = "partial_rotary_factor";
    match config.positive(KEY)? {
        Some(factor) if factor != 1.0 => Err(config.unsupported(KEY)),
        _ => Ok(()),
    }
}

/// The divisors of Llama 3.1, one for each pair of a head: wavelengths above
/// `original context / low_freq_factor` are stretched by `factor`, those below
/// `original context / high_freq_factor` stay, and between them the frequency is interpolated.
fn llama3_factors(
    settings: &Config,
    base: f64,
    head_dim: u32,
) -> Result<Vec<f32>, HuggingFaceError> {
    let factor = settings.require_positive("factor")?;
    let low = settings.require_positive("low_freq_factor")?;
    let high = settings.require_positive("high_freq_factor")?;
    let context = settings.require_positive("original_max_position_embeddings")?;
    if high <= low {
        return Err(settings.wrong("high_freq_factor", "more than `low_freq_factor`"));
    }
    let pair = |i: u32| {
        let wavelength = TAU * base.powf(f64::from(2 * i) / f64::from(head_dim));
        let divisor = if wavelength < context / high {
            1.0
        } else if wavelength > context / low {
            factor
        } else {
            let smooth = (context / wavelength - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        };
        divisor as f32
    };
    Ok((0..head_dim / 2).map(pair).collect())
}
