//! The sizes of known models.

use std::f64::consts::TAU;
use std::fmt;

use crate::gguf::Value;

/// The sizes of a known model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub(super) name: &'static str,
    pub(super) architecture: &'static str,
    pub(super) vocab: usize,
    pub(super) context: u32,
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) ffn: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) eps: f32,
    pub(super) rope_base: f32,
    /// The factor of Llama 3's scaling of rotary frequencies.
    pub(super) rope_factor: Option<f64>,
    /// Whether the embeddings are the output matrix too.
    pub(super) tied: bool,
}

/// Sizes from the `config.json` of each model.
const SHAPES: [Shape; 4] = [
    Shape {
        name: "Llama-3.2-1B",
        architecture: "llama",
        vocab: 128_256,
        context: 131_072,
        layers: 16,
        width: 2048,
        ffn: 8192,
        heads: 32,
        kv_heads: 8,
        head_dim: 64,
        eps: 1e-5,
        rope_base: 500_000.0,
        rope_factor: Some(32.0),
        tied: true,
    },
    Shape {
        name: "Llama-3.1-8B",
        architecture: "llama",
        vocab: 128_256,
        context: 131_072,
        layers: 32,
        width: 4096,
        ffn: 14_336,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        eps: 1e-5,
        rope_base: 500_000.0,
        rope_factor: Some(8.0),
        tied: false,
    },
    Shape {
        name: "Qwen3-0.6B",
        architecture: "qwen3",
        vocab: 151_936,
        context: 40_960,
        layers: 28,
        width: 1024,
        ffn: 3072,
        heads: 16,
        kv_heads: 8,
        head_dim: 128,
        eps: 1e-6,
        rope_base: 1_000_000.0,
        rope_factor: None,
        tied: true,
    },
    Shape {
        name: "SmolLM2-135M",
        architecture: "llama",
        vocab: 49_152,
        context: 8192,
        layers: 30,
        width: 576,
        ffn: 1536,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        eps: 1e-5,
        rope_base: 100_000.0,
        rope_factor: None,
        tied: true,
    },
];

/// A tensor of a shape: its name, its dims outermost first, and how its numbers are chosen.
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    pub(super) fill: Fill,
}

pub(super) enum Fill {
    Values(Vec<f32>),
    /// Random with this standard deviation.
    Random(f32),
}

impl Shape {
    /// The shape called `name`, in either case; `None` if it is not known.
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
        self.architecture
    }

    /// The metadata, without that of number types.
    pub(super) fn metadata(&self) -> Vec<(String, Value)> {
        let size = |size: usize| Value::from(u32::try_from(size).unwrap_or(u32::MAX));
        let mut metadata = vec![
            ("general.architecture".to_owned(), self.architecture.into()),
            (
                "general.name".to_owned(),
                format!("synthetic {}", self.name).into(),
            ),
            ("tokenizer.ggml.model".to_owned(), "none".into()),
        ];
        let own = [
            ("vocab_size", size(self.vocab)),
            ("context_length", self.context.into()),
            ("embedding_length", size(self.width)),
            ("block_count", size(self.layers)),
            ("feed_forward_length", size(self.ffn)),
            ("attention.head_count", size(self.heads)),
            ("attention.head_count_kv", size(self.kv_heads)),
            ("attention.key_length", size(self.head_dim)),
            ("attention.value_length", size(self.head_dim)),
            ("attention.layer_norm_rms_epsilon", self.eps.into()),
            ("rope.dimension_count", size(self.head_dim)),
            ("rope.freq_base", self.rope_base.into()),
        ];
        let prefixed = own.map(|(key, value)| (format!("{}.{key}", self.architecture), value));
        metadata.extend(prefixed);
        metadata
    }

    /// The tensors, in the order of the file.
    pub(super) fn tensors(&self) -> Vec<Tensor> {
        let (width, ffn) = (self.width, self.ffn);
        let (queries, keys) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        // What is added to the hidden state once in each half of a layer.
        let damping = 1.0 / (2.0 * self.layers as f32).sqrt();
        let ones = |name: String, n: usize| Tensor {
            name,
            dims: vec![n],
            fill: Fill::Values(vec![1.0; n]),
        };
        let matrix = |name: String, n: usize, k: usize, damping: f32| Tensor {
            name,
            dims: vec![n, k],
            fill: Fill::Random(damping / (k as f32).sqrt()),
        };
        let mut tensors = vec![matrix("token_embd.weight".into(), self.vocab, width, 1.0)];
        if let Some(factor) = self.rope_factor {
            tensors.push(Tensor {
                name: "rope_freqs.weight".into(),
                dims: vec![self.head_dim / 2],
                fill: Fill::Values(self.rope_factors(factor)),
            });
        }
        for layer in 0..self.layers {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            tensors.extend([
                ones(name("attn_norm"), width),
                matrix(name("attn_q"), queries, width, 1.0),
                matrix(name("attn_k"), keys, width, 1.0),
                matrix(name("attn_v"), keys, width, 1.0),
                matrix(name("attn_output"), width, queries, damping),
            ]);
            if self.architecture == "qwen3" {
                tensors.push(ones(name("attn_q_norm"), self.head_dim));
                tensors.push(ones(name("attn_k_norm"), self.head_dim));
            }
            tensors.extend([
                ones(name("ffn_norm"), width),
                matrix(name("ffn_gate"), ffn, width, 1.0),
                matrix(name("ffn_up"), ffn, width, 1.0),
                matrix(name("ffn_down"), width, ffn, damping),
            ]);
        }
        tensors.push(ones("output_norm.weight".into(), width));
        if !self.tied {
            tensors.push(matrix("output.weight".into(), self.vocab, width, 1.0));
        }
        tensors
    }

    /// The divisors of the rotary frequencies: `factor` for wavelengths beyond the 8192 tokens of
    /// the first training, 1 below a quarter of them, smooth between (Llama 3.1's
    /// `rope_type: llama3`).
    fn rope_factors(&self, factor: f64) -> Vec<f32> {
        const TRAINED: f64 = 8192.0;
        const LOW: f64 = 1.0;
        const HIGH: f64 = 4.0;
        let divisor = |pair: usize| {
            let exponent = 2.0 * pair as f64 / self.head_dim as f64;
            let turns = TRAINED / (TAU * f64::from(self.rope_base).powf(exponent));
            let smooth = ((turns - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
            (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
        };
        (0..self.head_dim / 2).map(divisor).collect()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_the_parameters_of_their_models() {
        for (name, parameters) in [
            ("llama-3.2-1b", 1_235_814_432),
            ("Llama-3.1-8B", 8_030_261_312),
            ("Qwen3-0.6B", 596_049_920),
            ("SmolLM2-135M", 134_515_008),
        ] {
            let tensors = Shape::from_name(name).unwrap().tensors();
            let count = |t: &Tensor| t.dims.iter().product::<usize>();
            assert_eq!(
                tensors.iter().map(count).sum::<usize>(),
                parameters,
                "{name}"
            );
        }
    }

    #[test]
    fn rotary_divisors_go_from_1_to_the_factor() {
        let factors = Shape::from_name("Llama-3.2-1B").unwrap().rope_factors(32.0);
        assert_eq!((factors[0], factors[31]), (1.0, 32.0));
        assert!(factors.is_sorted());
    }
}
