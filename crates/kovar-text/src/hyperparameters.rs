//! Hyperparameters from GGUF metadata, `<architecture>.<key>`, each checked against its range.

use std::fmt::Display;

use kovar_core::ops::RopeScaling;
use kovar_core::quant;
use kovar_formats::ModelFile;

use crate::architecture::ArchitectureError;
use crate::model::MAX_CONTEXT;

/// The largest size of a hyperparameter; products of three such sizes do not overflow.
const MAX_SIZE: usize = 1 << 20;

/// The metadata of one architecture in one file.
pub(crate) struct Hyperparameters<'a> {
    file: &'a ModelFile,
    prefix: &'a str,
}

impl<'a> Hyperparameters<'a> {
    pub(crate) fn new(file: &'a ModelFile, prefix: &'a str) -> Self {
        Self { file, prefix }
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    /// The error for an invalid value.
    pub(crate) fn wrong(
        &self,
        key: &str,
        value: impl Display,
        rule: &'static str,
    ) -> ArchitectureError {
        ArchitectureError::Value {
            key: self.key(key),
            value: value.to_string(),
            rule,
        }
    }

    /// A size between 1 and 2^20.
    pub(crate) fn size(&self, key: &str) -> Result<usize, ArchitectureError> {
        let size = self.file.metadata().require_usize(&self.key(key))?;
        self.in_range(key, size)
    }

    /// A size between 1 and 2^20, `default` if the file does not give it.
    pub(crate) fn size_or(&self, key: &str, default: usize) -> Result<usize, ArchitectureError> {
        let size = self.file.metadata().get_usize(&self.key(key))?;
        self.in_range(key, size.unwrap_or(default))
    }

    /// A size between 1 and 2^20, if the file gives it.
    pub(crate) fn size_if_given(&self, key: &str) -> Result<Option<usize>, ArchitectureError> {
        let size = self.file.metadata().get_usize(&self.key(key))?;
        size.map(|size| self.in_range(key, size)).transpose()
    }

    /// The number of blocks. Each block has its own tensors, so there are never more blocks than
    /// tensors.
    pub(crate) fn layers(&self) -> Result<usize, ArchitectureError> {
        let layers = self.size("block_count")?;
        if layers > self.file.tensors().len() {
            let rule = "the file has fewer tensors than blocks";
            return Err(self.wrong("block_count", layers, rule));
        }
        Ok(layers)
    }

    /// The trained context in tokens, at most [`MAX_CONTEXT`].
    pub(crate) fn context(&self) -> Result<usize, ArchitectureError> {
        let context = self
            .file
            .metadata()
            .require_usize(&self.key("context_length"))?;
        if context == 0 {
            return Err(self.wrong("context_length", context, "it must not be 0"));
        }
        Ok(context.min(MAX_CONTEXT))
    }

    fn in_range(&self, key: &str, size: usize) -> Result<usize, ArchitectureError> {
        if (1..=MAX_SIZE).contains(&size) {
            Ok(size)
        } else {
            Err(self.wrong(key, size, "it must be between 1 and 1048576"))
        }
    }

    /// Fails if the file sets `key` to anything but 0.
    pub(crate) fn refuse(&self, key: &str, feature: &'static str) -> Result<(), ArchitectureError> {
        match self.file.metadata().get_usize(&self.key(key))? {
            None | Some(0) => Ok(()),
            Some(_) => Err(ArchitectureError::Feature {
                key: self.key(key),
                feature,
            }),
        }
    }

    /// A sliding window in tokens; `None` if it is absent or 0.
    pub(crate) fn window(&self, key: &str) -> Result<Option<u32>, ArchitectureError> {
        let window = self.file.metadata().get_u32(&self.key(key))?;
        Ok(window.filter(|&window| window > 0))
    }

    /// The epsilon of a normalisation.
    pub(crate) fn epsilon(&self, key: &str) -> Result<f32, ArchitectureError> {
        let eps = self.file.metadata().require_f32(&self.key(key))?;
        if eps.is_finite() && eps >= 0.0 {
            Ok(eps)
        } else {
            Err(self.wrong(key, eps, "it must be finite and not negative"))
        }
    }

    /// The number of rows of the embedding table, which is the vocabulary's size.
    pub(crate) fn vocab_len(&self, embeddings: &str) -> Result<usize, ArchitectureError> {
        match self.file.tensor(embeddings).map(|tensor| tensor.dims()) {
            Some([rows, _]) => Ok(*rows),
            Some(dims) => Err(ArchitectureError::Tensors(vec![format!(
                "`{embeddings}` has dims {dims:?}, expected a matrix"
            )])),
            None => Err(ArchitectureError::Tensors(vec![format!(
                "`{embeddings}` is missing (is this a vocabulary without a model?)"
            )])),
        }
    }

    fn positive(&self, key: &str, default: f64) -> Result<f64, ArchitectureError> {
        let (metadata, name) = (self.file.metadata(), self.key(key));
        // Some of these are integers, for example `original_context_length`.
        let value = match metadata.get_usize(&name) {
            Ok(value) => value.map(|value| value as f64),
            Err(_) => metadata.get_f32(&name)?.map(f64::from),
        };
        let value = value.unwrap_or(default);
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(self.wrong(key, value, "it must be finite and positive"))
        }
    }

    /// The base of the rotary frequencies.
    pub(crate) fn rope_base(&self) -> Result<f64, ArchitectureError> {
        let base = self.positive("rope.freq_base", 10_000.0)?;
        if base > 1.0 {
            Ok(base)
        } else {
            Err(self.wrong("rope.freq_base", base, "it must exceed 1"))
        }
    }

    /// The scaling of the rotary positions: none, linear or YaRN. (Llama 3.1 files carry theirs as
    /// a tensor of frequency factors.)
    pub(crate) fn rope_scaling(&self) -> Result<RopeScaling, ArchitectureError> {
        let metadata = self.file.metadata();
        let kind = metadata.get_str(&self.key("rope.scaling.type"))?;
        // Files older than `rope.scaling.*` have the linear factor under this key.
        let old = self.positive("rope.scale_linear", 1.0)?;
        let factor = self.positive("rope.scaling.factor", old)?;
        match kind {
            None if factor == 1.0 => Ok(RopeScaling::None),
            Some("none") => Ok(RopeScaling::None),
            None | Some("linear") => Ok(RopeScaling::Linear { factor }),
            Some("yarn") => {
                let context = self.context()? as f64;
                // From the YaRN paper, for contexts longer than the trained one.
                let magnitude = if factor > 1.0 {
                    0.1 * factor.ln() + 1.0
                } else {
                    1.0
                };
                Ok(RopeScaling::Yarn {
                    factor,
                    original_context: self
                        .positive("rope.scaling.original_context_length", context)?,
                    beta_fast: self.positive("rope.scaling.yarn_beta_fast", 32.0)?,
                    beta_slow: self.positive("rope.scaling.yarn_beta_slow", 1.0)?,
                    attention_factor: self.positive("rope.scaling.attn_factor", 1.0)? * magnitude,
                })
            }
            Some(other) => Err(self.wrong(
                "rope.scaling.type",
                other,
                "supported are none, linear and yarn",
            )),
        }
    }

    /// The divisors of the rotary frequencies in the tensor `name`, if the file has it.
    pub(crate) fn rope_factors(
        &self,
        name: &str,
        pairs: usize,
    ) -> Result<Option<Vec<f32>>, ArchitectureError> {
        let Some(tensor) = self.file.tensor(name) else {
            return Ok(None);
        };
        let wrong = |what: String| ArchitectureError::Tensors(vec![format!("`{name}` {what}")]);
        if tensor.dims() != [pairs] || !tensor.dtype().is_float() {
            return Err(wrong(format!(
                "is {} {:?}, expected floats [{pairs}]",
                tensor.dtype(),
                tensor.dims()
            )));
        }
        let mut factors = vec![0.0; pairs];
        tensor
            .bytes()
            .and_then(|bytes| quant::decode(tensor.dtype(), bytes.as_slice(), &mut factors))
            .map_err(|error| wrong(error.to_string()))?;
        match factors
            .iter()
            .find(|factor| !factor.is_finite() || **factor <= 0.0)
        {
            Some(factor) => Err(wrong(format!("holds {factor}, expected positive numbers"))),
            None => Ok(Some(factors)),
        }
    }
}
