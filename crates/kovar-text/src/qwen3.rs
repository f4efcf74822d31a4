//! Qwen3 (Yang et al. 2025): Llama's blocks with a norm on each head's query and key.

use kovar_core::error::GraphError;
use kovar_core::ops::Pairing;
use kovar_core::{Graph, ValueId};

use crate::architecture::TensorRule;
use crate::decoder::{Decoder, Family, Layer};

pub(crate) static QWEN3: Family = Family {
    name: "qwen3",
    block_tensors,
    attend,
};

fn block_tensors(decoder: &Decoder) -> Vec<TensorRule> {
    vec![
        TensorRule::vector("attn_q_norm.weight", decoder.key_dim),
        TensorRule::vector("attn_k_norm.weight", decoder.key_dim),
    ]
}

fn attend(layer: &Layer<'_>, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
    let (q, k, v) = layer.qkv(g, x)?;
    let q = layer.norm(g, "attn_q_norm", q)?;
    let k = layer.norm(g, "attn_k_norm", k)?;
    let q = layer.rope(g, q, Pairing::Neox)?;
    let k = layer.rope(g, k, Pairing::Neox)?;
    layer.attend(g, q, k, v)
}
