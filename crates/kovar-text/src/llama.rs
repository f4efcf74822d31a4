//! Llama (Touvron et al. 2023; Dubey et al. 2024): pre-norm decoder blocks of grouped-query
//! attention with rotary positions and a SwiGLU feed-forward network. In GGUF files of the `llama`
//! architecture, the projections are reordered so that adjacent elements are rotated together.

use kovar_core::error::GraphError;
use kovar_core::ops::Pairing;
use kovar_core::{Graph, ValueId};

use crate::architecture::TensorRule;
use crate::decoder::{Decoder, Family, Layer};

pub(crate) static LLAMA: Family = Family {
    name: "llama",
    block_tensors,
    attend,
};

fn block_tensors(decoder: &Decoder) -> Vec<TensorRule> {
    let [queries, keys, values] = decoder.qkv_widths();
    vec![
        TensorRule::vector("attn_q.bias", queries).optional(),
        TensorRule::vector("attn_k.bias", keys).optional(),
        TensorRule::vector("attn_v.bias", values).optional(),
        TensorRule::vector("attn_output.bias", decoder.width).optional(),
    ]
}

fn attend(layer: &Layer<'_>, g: &mut Graph, x: ValueId) -> Result<ValueId, GraphError> {
    let (q, k, v) = layer.qkv(g, x)?;
    let q = layer.rope(g, q, Pairing::Normal)?;
    let k = layer.rope(g, k, Pairing::Normal)?;
    layer.attend(g, q, k, v)
}
