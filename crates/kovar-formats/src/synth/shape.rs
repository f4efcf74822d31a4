//! The sizes of known models.

use std::fmt;

use super::decoder::Decoder;
use super::rwkv7::Rwkv7;
use super::vocabulary::{self, Vocabulary};
use crate::gguf::Value;
use kovar_core::DType;

/// The sizes of a known model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub(super) name: &'static str,
    pub(super) vocab: usize,
    pub(super) context: u32,
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) ffn: usize,
    pub(super) blocks: Blocks,
}

/// The sizes of the blocks of an architecture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Blocks {
    Decoder(Decoder),
    Rwkv7(Rwkv7),
}

/// Sizes from the `config.json` of each model, and from the tensors of the RWKV-7 World models.
const SHAPES: [Shape; 6] = [
    Shape {
        name: "Llama-3.2-1B",
        vocab: 128_256,
        context: 131_072,
        layers: 16,
        width: 2048,
        ffn: 8192,
        blocks: Blocks::Decoder(Decoder {
            architecture: "llama",
            heads: 32,
            kv_heads: 8,
            head_dim: 64,
            eps: 1e-5,
            rope_base: 500_000.0,
            rope_factor: Some(32.0),
            tied: true,
        }),
    },
    Shape {
        name: "Llama-3.1-8B",
        vocab: 128_256,
        context: 131_072,
        layers: 32,
        width: 4096,
        ffn: 14_336,
        blocks: Blocks::Decoder(Decoder {
            architecture: "llama",
            heads: 32,
            kv_heads: 8,
            head_dim: 128,
            eps: 1e-5,
            rope_base: 500_000.0,
            rope_factor: Some(8.0),
            tied: false,
        }),
    },
    Shape {
        name: "Qwen3-0.6B",
        vocab: 151_936,
        context: 40_960,
        layers: 28,
        width: 1024,
        ffn: 3072,
        blocks: Blocks::Decoder(Decoder {
            architecture: "qwen3",
            heads: 16,
            kv_heads: 8,
            head_dim: 128,
            eps: 1e-6,
            rope_base: 1_000_000.0,
            rope_factor: None,
            tied: true,
        }),
    },
    Shape {
        name: "SmolLM2-135M",
        vocab: 49_152,
        context: 8192,
        layers: 30,
        width: 576,
        ffn: 1536,
        blocks: Blocks::Decoder(Decoder {
            architecture: "llama",
            heads: 9,
            kv_heads: 3,
            head_dim: 64,
            eps: 1e-5,
            rope_base: 100_000.0,
            rope_factor: None,
            tied: true,
        }),
    },
    Shape {
        name: "RWKV7-0.4B",
        vocab: 65_536,
        context: 1_048_576,
        layers: 24,
        width: 1024,
        ffn: 4096,
        blocks: Blocks::Rwkv7(Rwkv7 {
            head_dim: 64,
            decay_rank: 64,
            rate_rank: 64,
            value_rank: 32,
            gate_rank: 128,
        }),
    },
    Shape {
        name: "RWKV7-1.5B",
        vocab: 65_536,
        context: 1_048_576,
        layers: 24,
        width: 2048,
        ffn: 8192,
        blocks: Blocks::Rwkv7(Rwkv7 {
            head_dim: 64,
            decay_rank: 96,
            rate_rank: 96,
            value_rank: 64,
            gate_rank: 256,
        }),
    },
];

/// A tensor of a shape.
pub(super) struct Tensor {
    pub(super) name: String,
    /// The dims, outermost first.
    pub(super) dims: Vec<usize>,
    pub(super) fill: Fill,
    /// The dtype if the mix does not convert the tensor.
    pub(super) kept: DType,
}

pub(super) enum Fill {
    Values(Vec<f32>),
    /// Random with this standard deviation.
    Random(f32),
}

impl Tensor {
    /// `n` elements of `value`.
    pub(super) fn vector(name: String, n: usize, value: f32) -> Self {
        Self::values(name, vec![n], vec![value; n])
    }

    pub(super) fn values(name: String, dims: Vec<usize>, values: Vec<f32>) -> Self {
        Self {
            name,
            dims,
            fill: Fill::Values(values),
            kept: DType::F32,
        }
    }

    /// A random matrix of `n` rows and `k` columns. The standard deviation is `damping / sqrt(k)`.
    pub(super) fn matrix(name: String, n: usize, k: usize, damping: f32) -> Self {
        Self {
            name,
            dims: vec![n, k],
            fill: Fill::Random(damping / (k as f32).sqrt()),
            kept: DType::F32,
        }
    }
}

impl Shape {
    /// The shape called `name`, ignoring case; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|shape| shape.name.eq_ignore_ascii_case(name))
    }

    /// Every shape.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        SHAPES.into_iter()
    }

    /// The name of the model.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The value of `general.architecture`.
    pub fn architecture(&self) -> &'static str {
        match &self.blocks {
            Blocks::Decoder(decoder) => decoder.architecture,
            Blocks::Rwkv7(_) => "rwkv7",
        }
    }

    /// The metadata except the keys that describe number types.
    pub(super) fn metadata(&self) -> Vec<(String, Value)> {
        let mut metadata: Vec<(String, Value)> = vec![
            (
                "general.architecture".to_owned(),
                self.architecture().into(),
            ),
            (
                "general.name".to_owned(),
                format!("synthetic {}", self.name).into(),
            ),
        ];
        let mut own = vec![
            ("vocab_size", size(self.vocab)),
            ("context_length", self.context.into()),
            ("embedding_length", size(self.width)),
            ("block_count", size(self.layers)),
            ("feed_forward_length", size(self.ffn)),
        ];
        let vocabulary = match &self.blocks {
            Blocks::Decoder(decoder) => {
                own.extend(decoder.metadata());
                Vocabulary::ByteLevel
            }
            Blocks::Rwkv7(rwkv7) => {
                own.extend(rwkv7.metadata());
                Vocabulary::World
            }
        };
        let prefixed = own
            .into_iter()
            .map(|(key, value)| (format!("{}.{key}", self.architecture()), value));
        metadata.extend(prefixed);
        metadata.extend(vocabulary::metadata(vocabulary, self.vocab));
        metadata
    }

    /// The tensors, in the order of the file.
    pub(super) fn tensors(&self) -> Vec<Tensor> {
        match &self.blocks {
            Blocks::Decoder(decoder) => decoder.tensors(self),
            Blocks::Rwkv7(rwkv7) => rwkv7.tensors(self),
        }
    }

    /// The standard deviation of each addition to the hidden state. Every layer adds twice.
    pub(super) fn damping(&self) -> f32 {
        1.0 / (2.0 * self.layers as f32).sqrt()
    }
}

/// A size as a metadata value.
pub(super) fn size(size: usize) -> Value {
    u32::try_from(size).unwrap_or(u32::MAX).into()
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value residual in RWKV-7's first block is in files only, so it is not counted.
    #[test]
    fn shapes_have_the_parameters_of_their_models() {
        for (name, parameters) in [
            ("llama-3.2-1b", 1_235_814_432),
            ("Llama-3.1-8B", 8_030_261_312),
            ("Qwen3-0.6B", 596_049_920),
            ("SmolLM2-135M", 134_515_008),
            ("RWKV7-0.4B", 450_767_872),
            ("RWKV7-1.5B", 1_527_404_544),
        ] {
            let tensors = Shape::from_name(name).unwrap().tensors();
            let tensors = tensors.iter().filter(|t| {
                !["v0", "v1", "v2"]
                    .map(|v| format!("blk.0.time_mix_{v}.weight"))
                    .contains(&t.name)
            });
            let count = |t: &Tensor| t.dims.iter().product::<usize>();
            assert_eq!(tensors.map(count).sum::<usize>(), parameters, "{name}");
        }
    }
}
