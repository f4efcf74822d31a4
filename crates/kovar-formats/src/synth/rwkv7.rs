//! RWKV-7.

use kovar_core::DType;

use super::shape::{Shape, Tensor, size};
use crate::gguf::Value;

/// The sizes of RWKV-7 blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rwkv7 {
    pub(super) head_dim: usize,
    pub(super) decay_rank: usize,
    /// The rank of the in-context learning rate.
    pub(super) rate_rank: usize,
    pub(super) value_rank: usize,
    pub(super) gate_rank: usize,
}

impl Rwkv7 {
    pub(super) fn metadata(&self) -> [(&'static str, Value); 8] {
        [
            ("attention.head_count", size(0)),
            ("attention.layer_norm_epsilon", 1e-5f32.into()),
            ("wkv.head_size", size(self.head_dim)),
            ("token_shift_count", size(2)),
            ("attention.decay_lora_rank", size(self.decay_rank)),
            ("attention.iclr_lora_rank", size(self.rate_rank)),
            (
                "attention.value_residual_mix_lora_rank",
                size(self.value_rank),
            ),
            ("attention.gate_lora_rank", size(self.gate_rank)),
        ]
    }

    pub(super) fn tensors(&self, shape: &Shape) -> Vec<Tensor> {
        let (vocab, width, ffn) = (shape.vocab, shape.width, shape.ffn);
        let damping = shape.damping();
        let norm = |name: &str| {
            [("weight", 1.0), ("bias", 0.0)]
                .map(|(part, value)| Tensor::vector(format!("{name}.{part}"), width, value))
        };
        let weight = |name: &str| format!("{name}.weight");
        let mut tensors = vec![Tensor::matrix(weight("token_embd"), vocab, width, 1.0)];
        tensors.extend(norm("token_embd_norm"));
        for layer in 0..shape.layers {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let vector = |part: &str, value| Tensor::vector(weight(&name(part)), width, value);
            let square =
                |part: &str, damping| Tensor::matrix(weight(&name(part)), width, width, damping);
            for part in ["attn_norm", "attn_norm_2", "time_mix_ln"] {
                tensors.extend(norm(&name(part)));
            }
            let lerp = weight(&name("time_mix_lerp_fused"));
            tensors.push(Tensor::values(
                lerp,
                vec![6, 1, 1, width],
                vec![0.5; 6 * width],
            ));
            // llama.cpp requires low-rank matrices of the value residual in the first block, which
            // it does not read. They have the rank of the in-context learning rate.
            let value_rank = match layer {
                0 => self.rate_rank,
                _ => self.value_rank,
            };
            for (part, rank, kept) in [
                ("w", self.decay_rank, DType::F32),
                ("a", self.rate_rank, DType::F16),
                ("v", value_rank, DType::F16),
                ("g", self.gate_rank, DType::F16),
            ] {
                if part != "g" {
                    tensors.push(vector(&format!("time_mix_{part}0"), 0.0));
                }
                for (i, n, k) in [(1, rank, width), (2, width, rank)] {
                    let name = weight(&name(&format!("time_mix_{part}{i}")));
                    let matrix = Tensor::matrix(name, n, k, 1.0);
                    tensors.push(Tensor { kept, ..matrix });
                }
            }
            tensors.extend([
                vector("time_mix_k_k", 0.85),
                vector("time_mix_k_a", 1.0),
                vector("time_mix_r_k", 0.1),
                square("time_mix_receptance", 1.0),
                square("time_mix_key", 1.0),
                square("time_mix_value", 1.0),
                square("time_mix_output", damping),
            ]);
            let lerp = weight(&name("channel_mix_lerp_k"));
            tensors.extend([
                Tensor::values(lerp, vec![1, 1, width], vec![0.5; width]),
                Tensor::matrix(weight(&name("channel_mix_key")), ffn, width, 1.0),
                Tensor::matrix(weight(&name("channel_mix_value")), width, ffn, damping),
            ]);
        }
        tensors.extend(norm("output_norm"));
        tensors.push(Tensor::matrix(weight("output"), vocab, width, 1.0));
        tensors
    }
}
