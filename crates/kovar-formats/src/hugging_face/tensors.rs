//! Tensors: from the names and forms of transformers to those of GGUF.

use kovar_core::DType;

use super::HuggingFaceError;
use super::config::Hyperparams;
use crate::model_file::{LazyTensor, ModelTensor, WeightError, weight};
use crate::safetensors::{SafeTensorInfo, Shards};

const EMBEDDINGS: &str = "model.embed_tokens.weight";
const OUTPUT: &str = "lm_head.weight";

/// Tensors outside the layers, and GGUF's names for them.
const TENSORS: &[(&str, &str)] = &[
    (EMBEDDINGS, "token_embd.weight"),
    ("model.norm.weight", "output_norm.weight"),
    (OUTPUT, "output.weight"),
];

/// Tensors of a layer, `model.layers.N.NAME`, and GGUF's names for them, `blk.N.NAME`.
const LAYER_TENSORS: &[(&str, &str)] = &[
    ("input_layernorm.weight", "attn_norm.weight"),
    ("self_attn.q_proj.weight", "attn_q.weight"),
    ("self_attn.k_proj.weight", "attn_k.weight"),
    ("self_attn.v_proj.weight", "attn_v.weight"),
    ("self_attn.o_proj.weight", "attn_output.weight"),
    ("self_attn.q_proj.bias", "attn_q.bias"),
    ("self_attn.k_proj.bias", "attn_k.bias"),
    ("self_attn.v_proj.bias", "attn_v.bias"),
    ("self_attn.o_proj.bias", "attn_output.bias"),
    ("self_attn.q_norm.weight", "attn_q_norm.weight"),
    ("self_attn.k_norm.weight", "attn_k_norm.weight"),
    ("post_attention_layernorm.weight", "ffn_norm.weight"),
    ("mlp.gate_proj.weight", "ffn_gate.weight"),
    ("mlp.up_proj.weight", "ffn_up.weight"),
    ("mlp.down_proj.weight", "ffn_down.weight"),
];

/// Frequencies that every reader computes from the config. Old checkpoints store them.
const RECOMPUTED: &str = "self_attn.rotary_emb.inv_freq";

/// The tensors of `shards` in the names and forms of GGUF, layer after layer.
pub(super) fn read(
    shards: &Shards,
    hparams: &Hyperparams,
) -> Result<Vec<ModelTensor>, HuggingFaceError> {
    let mut found: Vec<(Order, ModelTensor)> = Vec::new();
    for tensor in shards.tensors() {
        let Some((order, name)) = rename(tensor.name())? else {
            continue;
        };
        if tensor.name() == OUTPUT && hparams.is_tied {
            continue;
        }
        let data = transform(tensor, &name, hparams)?;
        found.push((order, ModelTensor::new(name, data)));
    }
    check_outer(&found, hparams)?;
    if let Some(factors) = &hparams.rope.factors {
        let data = LazyTensor::from_values(&[factors.len()], factors);
        let data = data.map_err(|source| WeightError::Transform {
            tensor: "rope_freqs.weight".to_owned(),
            dtype: DType::F32,
            source,
        })?;
        let order = Order::outside(0);
        found.push((order, ModelTensor::new("rope_freqs.weight", data)));
    }
    found.sort_by_key(|(order, _)| *order);
    Ok(found.into_iter().map(|(_, tensor)| tensor).collect())
}

/// The order of tensors: the embeddings, the layers, then the rest. Mixes of number types count
/// layers in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order(u8, u32, usize);

impl Order {
    fn outside(row: usize) -> Self {
        match row {
            0 => Self(0, 0, row),
            _ => Self(2, 0, row),
        }
    }
}

/// The order and the GGUF name of a tensor; `None` if it is not needed.
fn rename(name: &str) -> Result<Option<(Order, String)>, WeightError> {
    let unknown = || WeightError::Unknown {
        tensor: name.to_owned(),
    };
    if let Some(row) = TENSORS.iter().position(|(known, _)| *known == name) {
        return Ok(Some((Order::outside(row), TENSORS[row].1.to_owned())));
    }
    let rest = name.strip_prefix("model.layers.").ok_or_else(unknown)?;
    let (index, part) = rest.split_once('.').ok_or_else(unknown)?;
    let layer: u32 = index.parse().map_err(|_| unknown())?;
    if part == RECOMPUTED {
        return Ok(None);
    }
    let row = LAYER_TENSORS.iter().position(|(known, _)| *known == part);
    let row = row.ok_or_else(unknown)?;
    let (_, own) = LAYER_TENSORS[row];
    Ok(Some((Order(1, layer, row), format!("blk.{layer}.{own}"))))
}

/// Vectors become F32, and the rows of the queries and keys of a `llama` get GGUF's order.
fn transform(
    tensor: &SafeTensorInfo,
    name: &str,
    hparams: &Hyperparams,
) -> Result<LazyTensor, WeightError> {
    weight(tensor, |mut data| {
        if hparams.architecture == "llama" {
            if name.contains(".attn_q.") {
                data = data.interleave_halves(hparams.n_heads as usize)?;
            } else if name.contains(".attn_k.") {
                data = data.interleave_halves(hparams.n_kv_heads as usize)?;
            }
        }
        if data.dims().len() <= 1 {
            data.cast(DType::F32)
        } else {
            Ok(data)
        }
    })
}

/// Checks that the embeddings have the vocabulary of the config and that an untied model has an
/// output matrix. GGUF models without an output matrix are tied.
fn check_outer(
    found: &[(Order, ModelTensor)],
    hparams: &Hyperparams,
) -> Result<(), HuggingFaceError> {
    let tensor = |name: &str| {
        let mut tensors = found.iter().map(|(_, tensor)| tensor);
        tensors.find(|tensor| tensor.name() == name)
    };
    let missing = |tensor: &str, key| HuggingFaceError::MissingTensor {
        tensor: tensor.to_owned(),
        key,
    };
    let embeddings =
        tensor("token_embd.weight").ok_or_else(|| missing(EMBEDDINGS, "vocab_size"))?;
    if embeddings.dims().first() != Some(&(hparams.vocab_len as usize)) {
        return Err(WeightError::Dims {
            tensor: EMBEDDINGS.to_owned(),
            dims: embeddings.dims().to_vec(),
            rule: "it must have `vocab_size` rows",
        }
        .into());
    }
    if !hparams.is_tied && tensor("output.weight").is_none() {
        return Err(missing(OUTPUT, "tie_word_embeddings"));
    }
    Ok(())
}
