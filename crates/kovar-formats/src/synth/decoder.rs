//! Transformer decoders: Llama and Qwen3.

use std::f64::consts::TAU;

use super::shape::{Shape, Tensor, size};
use crate::gguf::Value;

/// The sizes of decoder blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decoder {
    pub(super) architecture: &'static str,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) eps: f32,
    pub(super) rope_base: f32,
    /// The factor of Llama 3's scaling of rotary frequencies.
    pub(super) rope_factor: Option<f64>,
    /// Whether the embeddings are also the output matrix.
    pub(super) tied: bool,
}

impl Decoder {
    pub(super) fn metadata(&self) -> [(&'static str, Value); 7] {
        [
            ("attention.head_count", size(self.heads)),
            ("attention.head_count_kv", size(self.kv_heads)),
            ("attention.key_length", size(self.head_dim)),
            ("attention.value_length", size(self.head_dim)),
            ("attention.layer_norm_rms_epsilon", self.eps.into()),
            ("rope.dimension_count", size(self.head_dim)),
            ("rope.freq_base", self.rope_base.into()),
        ]
    }

    pub(super) fn tensors(&self, shape: &Shape) -> Vec<Tensor> {
        let (width, ffn, damping) = (shape.width, shape.ffn, shape.damping());
        let (queries, keys) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let ones = |name: String, n: usize| Tensor::vector(name, n, 1.0);
        let matrix = Tensor::matrix;
        let embeddings = "token_embd.weight".to_owned();
        let mut tensors = vec![matrix(embeddings, shape.vocab, width, 1.0)];
        if let Some(factor) = self.rope_factor {
            let name = "rope_freqs.weight".to_owned();
            let factors = self.rope_factors(factor);
            tensors.push(Tensor::values(name, vec![factors.len()], factors));
        }
        for layer in 0..shape.layers {
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
            tensors.push(matrix("output.weight".into(), shape.vocab, width, 1.0));
        }
        tensors
    }

    /// The divisors of the rotary frequencies: `factor` for wavelengths beyond the 8192 tokens of
    /// the original context, 1 below a quarter of it, interpolated between (`rope_type: llama3` of
    /// Llama 3.1).
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

#[cfg(test)]
mod tests {
    use super::super::shape::{Blocks, Shape};

    #[test]
    fn rotary_divisors_go_from_1_to_the_factor() {
        let shape = Shape::from_name("Llama-3.2-1B").unwrap();
        let Blocks::Decoder(decoder) = shape.blocks else {
            panic!("a Llama has decoder blocks");
        };
        let factors = decoder.rope_factors(32.0);
        assert_eq!((factors[0], factors[31]), (1.0, 32.0));
        assert!(factors.is_sorted());
    }
}
