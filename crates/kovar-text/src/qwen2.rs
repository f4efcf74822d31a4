//! Qwen2 (Yang et al. 2024): Llama's blocks with biases on queries, keys and values.

use kovar_core::error::GraphError;
use kovar_core::ops::Pairing;
use kovar_core::{Graph, ValueId};

use crate::architecture::TensorRule;
use crate::decoder::{Decoder, Family, Layer};

pub(crate) static QWEN2: Family = Family {
    name: "qwen2",
    block_tensors,
    attend,
};

fn block_tensors(decoder: &Decoder) -> Vec<TensorRule> {
    let [queries, keys, values] = decoder.qkv_widths();
    vec![
        TensorRule::vector("attn_q.bias", queries),
        TensorRule::vector("attn_k.bias", keys),
        TensorRule::vector("attn_v.bias", values),
    ]
}

fn attend(layer: &Layer<'_>, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
    let (q, k, v) = layer.qkv(g, x)?;
    let q = layer.rope(g, q, Pairing::Neox)?;
    let k = layer.rope(g, k, Pairing::Neox)?;
    layer.attend(g, q, k, v)
}
