//! Tensors: from the names of transformers to GGUF's, with the changes that GGUF makes to them.

use kovar_core::DType;

use super::HuggingFaceError;
use super::config::Hyper;
use crate::model_file::{LazyTensor, ModelTensor, TransformError};
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

/// Computed from the config by every reader; old checkpoints carry them along.
const RECOMPUTED: &str = "self_attn.rotary_emb.inv_freq";

/// The tensors of `shards` as GGUF has them, layer after layer.
pub(super) fn read(shards: &Shards, hyper: &Hyper) -> Result<Vec<ModelTensor>, HuggingFaceError> {
    let mut found: Vec<(Place, ModelTensor)> = Vec::new();
    for tensor in shards.tensors() {
        let Some((place, name)) = rename(tensor.name())? else {
            continue;
        };
        if tensor.name() == OUTPUT && hyper.is_tied {
            continue;
        }
        let data = transform(tensor, &name, hyper)?;
        found.push((place, ModelTensor::new(name, data)));
    }
    check_outer(&found, hyper)?;
    if let Some(factors) = &hyper.rope.factors {
        let data = LazyTensor::from_values(&[factors.len()], factors);
        let data = data.map_err(|source| HuggingFaceError::Transform {
            tensor: "rope_freqs.weight".to_owned(),
            dtype: DType::F32,
            source,
        })?;
        let place = Place::outside(0);
        found.push((place, ModelTensor::new("rope_freqs.weight", data)));
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, tensor)| tensor).collect())
}

/// Where a tensor stands: the embeddings, the layers, then the rest. Mixes of number types count
/// layers in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u8, u32, usize);

impl Place {
    fn outside(row: usize) -> Self {
        match row {
            0 => Self(0, 0, row),
            _ => Self(2, 0, row),
        }
    }
}

/// The place and GGUF name of a tensor; `None` if nobody needs it.
fn rename(name: &str) -> Result<Option<(Place, String)>, HuggingFaceError> {
    let unknown = || HuggingFaceError::UnknownTensor {
        tensor: name.to_owned(),
    };
    if let Some(row) = TENSORS.iter().position(|(known, _)| *known == name) {
        return Ok(Some((Place::outside(row), TENSORS[row].1.to_owned())));
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
    Ok(Some((Place(1, layer, row), format!("blk.{layer}.{own}"))))
}

/// Vectors become F32, and the rows of a `llama`'s queries and keys are put into GGUF's order.
fn transform(
    tensor: &SafeTensorInfo,
    name: &str,
    hyper: &Hyper,
) -> Result<LazyTensor, HuggingFaceError> {
    let dtype = tensor.dtype().to_dtype().filter(|dtype| dtype.is_float());
    let dtype = dtype.ok_or_else(|| HuggingFaceError::TensorDType {
        tensor: tensor.name().to_owned(),
        dtype: tensor.dtype(),
    })?;
    if tensor.dims().contains(&0) {
        return Err(HuggingFaceError::TensorDims {
            tensor: tensor.name().to_owned(),
            dims: tensor.dims().to_vec(),
            rule: "no dim may be 0",
        });
    }
    let build = || -> Result<LazyTensor, TransformError> {
        let mut data = LazyTensor::new(dtype, tensor.dims(), tensor.bytes())?;
        if hyper.architecture == "llama" {
            if name.contains(".attn_q.") {
                data = data.interleave_halves(hyper.n_heads as usize)?;
            } else if name.contains(".attn_k.") {
                data = data.interleave_halves(hyper.n_kv_heads as usize)?;
            }
        }
        match data.dims().len() {
            0 | 1 => data.cast(DType::F32),
            _ => Ok(data),
        }
    };
    build().map_err(|source| HuggingFaceError::Transform {
        tensor: tensor.name().to_owned(),
        dtype,
        source,
    })
}

/// That the embeddings have the config's vocabulary, and that an untied model has an output matrix:
/// GGUF takes a missing one for tied.
fn check_outer(found: &[(Place, ModelTensor)], hyper: &Hyper) -> Result<(), HuggingFaceError> {
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
    if embeddings.dims().first() != Some(&(hyper.vocab_len as usize)) {
        return Err(HuggingFaceError::TensorDims {
            tensor: EMBEDDINGS.to_owned(),
            dims: embeddings.dims().to_vec(),
            rule: "it must have as many rows as `vocab_size` says",
        });
    }
    if !hyper.is_tied && tensor("output.weight").is_none() {
        return Err(missing(OUTPUT, "tie_word_embeddings"));
    }
    Ok(())
}
