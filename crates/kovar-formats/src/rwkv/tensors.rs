//! Tensors: from the names and forms of RWKV-7's authors to those of GGUF.

use std::collections::HashSet;

use kovar_core::DType;

use super::RwkvError;
use crate::MAX_SIZE;
use crate::model_file::{LazyTensor, ModelTensor, WeightError, weight};
use crate::safetensors::{SafeTensorInfo, SafeTensors};

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) vocab: usize,
    pub(super) width: usize,
    pub(super) layers: usize,
    pub(super) head: usize,
    pub(super) ffn: usize,
    pub(super) decay_rank: usize,
    pub(super) rate_rank: usize,
    pub(super) value_rank: usize,
    pub(super) gate_rank: usize,
}

/// How a tensor is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transform {
    /// Not at all.
    None,
    /// To F32 in one dim.
    Vector,
    /// To F32 with dims `[1, 1, n]`.
    Lerp,
    /// Transposed.
    Transpose,
    /// Transposed, as F32.
    TransposeF32,
}

use Transform::{Lerp, None as Same, Transpose, TransposeF32, Vector};

/// Tensors before the blocks, and GGUF's names for them.
const BEFORE: &[(&str, &str, Transform)] = &[
    ("emb.weight", "token_embd.weight", Same),
    ("blocks.0.ln0.weight", "token_embd_norm.weight", Vector),
    ("blocks.0.ln0.bias", "token_embd_norm.bias", Vector),
];

/// Tensors after the blocks.
const AFTER: &[(&str, &str, Transform)] = &[
    ("ln_out.weight", "output_norm.weight", Vector),
    ("ln_out.bias", "output_norm.bias", Vector),
    ("head.weight", "output.weight", Same),
];

/// Tensors of a block, `blocks.N.NAME`, and GGUF's names for them, `blk.N.NAME`.
const BLOCK: &[(&str, &str, Transform)] = &[
    ("ln1.weight", "attn_norm.weight", Vector),
    ("ln1.bias", "attn_norm.bias", Vector),
    ("ln2.weight", "attn_norm_2.weight", Vector),
    ("ln2.bias", "attn_norm_2.bias", Vector),
    ("att.ln_x.weight", "time_mix_ln.weight", Vector),
    ("att.ln_x.bias", "time_mix_ln.bias", Vector),
    ("att.w0", "time_mix_w0.weight", Vector),
    ("att.w1", "time_mix_w1.weight", TransposeF32),
    ("att.w2", "time_mix_w2.weight", TransposeF32),
    ("att.a0", "time_mix_a0.weight", Vector),
    ("att.a1", "time_mix_a1.weight", Transpose),
    ("att.a2", "time_mix_a2.weight", Transpose),
    ("att.v0", "time_mix_v0.weight", Vector),
    ("att.v1", "time_mix_v1.weight", Transpose),
    ("att.v2", "time_mix_v2.weight", Transpose),
    ("att.g1", "time_mix_g1.weight", Transpose),
    ("att.g2", "time_mix_g2.weight", Transpose),
    ("att.k_k", "time_mix_k_k.weight", Vector),
    ("att.k_a", "time_mix_k_a.weight", Vector),
    ("att.r_k", "time_mix_r_k.weight", Vector),
    ("att.receptance.weight", "time_mix_receptance.weight", Same),
    ("att.key.weight", "time_mix_key.weight", Same),
    ("att.value.weight", "time_mix_value.weight", Same),
    ("att.output.weight", "time_mix_output.weight", Same),
    ("ffn.x_k", "channel_mix_lerp_k.weight", Lerp),
    ("ffn.key.weight", "channel_mix_key.weight", Same),
    ("ffn.value.weight", "channel_mix_value.weight", Same),
];

/// The token-shift interpolations of attention, which are one tensor in GGUF, in this order.
const LERPS: [&str; 6] = ["x_r", "x_w", "x_k", "x_v", "x_a", "x_g"];
const FUSED: &str = "time_mix_lerp_fused.weight";

impl Sizes {
    /// The sizes of the tensors in `file`.
    pub(super) fn read(file: &SafeTensors) -> Result<Self, RwkvError> {
        let matrix = |name: &str| match require(file, name)?.dims() {
            &[rows @ 1..=MAX_SIZE, columns @ 1..=MAX_SIZE] => Ok((rows, columns)),
            dims => Err(RwkvError::Weight(WeightError::Dims {
                tensor: name.to_owned(),
                dims: dims.to_vec(),
                rule: "it must be a matrix of 1 to 1048576 rows and columns",
            })),
        };
        let (vocab, width) = matrix("emb.weight")?;
        let (_, head) = matrix("blocks.0.att.r_k")?;
        let (ffn, _) = matrix("blocks.0.ffn.key.weight")?;
        let rank = |name: &str| matrix(name).map(|(_, rank)| rank);
        let rate_rank = rank("blocks.0.att.a1")?;
        let layers = file
            .tensors()
            .filter(|tensor| counts_a_block(tensor.name()));
        let layers = layers.count();
        Ok(Self {
            vocab,
            width,
            layers,
            head,
            ffn,
            decay_rank: rank("blocks.0.att.w1")?,
            rate_rank,
            value_rank: match layers {
                1 => rate_rank,
                _ => rank("blocks.1.att.v1")?,
            },
            gate_rank: rank("blocks.0.att.g1")?,
        })
    }
}

/// Whether the blocks are counted by this tensor.
fn counts_a_block(name: &str) -> bool {
    name.starts_with("blocks.") && name.ends_with(".att.r_k")
}

fn require<'f>(file: &'f SafeTensors, name: &str) -> Result<&'f SafeTensorInfo, RwkvError> {
    file.tensor(name).ok_or_else(|| RwkvError::MissingTensor {
        tensor: name.to_owned(),
    })
}

/// The tensors of `file` in the names and forms of GGUF.
pub(super) fn read(file: &SafeTensors, sizes: &Sizes) -> Result<Vec<ModelTensor>, RwkvError> {
    let mut used = HashSet::new();
    let mut tensors = Vec::new();
    let mut add = |name: String, to: String, transform| -> Result<(), RwkvError> {
        let data = transformed(require(file, &name)?, transform)?;
        tensors.push(ModelTensor::new(to, data));
        used.insert(name);
        Ok(())
    };
    for &(from, to, transform) in BEFORE {
        add(from.to_owned(), to.to_owned(), transform)?;
    }
    for layer in 0..sizes.layers {
        for &(from, to, transform) in BLOCK {
            // The first block has no value residual, but llama.cpp requires its tensors. Those of
            // the in-context learning rate take their place.
            let from = match (layer, from) {
                (0, "att.v0") => "att.a0",
                (0, "att.v1") => "att.a1",
                (0, "att.v2") => "att.a2",
                _ => from,
            };
            add(
                format!("blocks.{layer}.{from}"),
                format!("blk.{layer}.{to}"),
                transform,
            )?;
        }
    }
    for &(from, to, transform) in AFTER {
        add(from.to_owned(), to.to_owned(), transform)?;
    }
    for layer in 0..sizes.layers {
        let names = LERPS.map(|name| format!("blocks.{layer}.att.{name}"));
        tensors.push(ModelTensor::new(
            format!("blk.{layer}.{FUSED}"),
            fused(file, &names)?,
        ));
        used.extend(names);
    }
    used.extend(["v0", "v1", "v2"].map(|name| format!("blocks.0.att.{name}")));
    match file.tensors().find(|tensor| !used.contains(tensor.name())) {
        Some(tensor) => Err(WeightError::Unknown {
            tensor: tensor.name().to_owned(),
        }
        .into()),
        None => Ok(tensors),
    }
}

fn transformed(tensor: &SafeTensorInfo, transform: Transform) -> Result<LazyTensor, WeightError> {
    weight(tensor, |data| {
        let n = data.elements();
        match transform {
            Transform::None => Ok(data),
            Transform::Vector => data.cast(DType::F32)?.reshape(&[n]),
            Transform::Lerp => data.cast(DType::F32)?.reshape(&[1, 1, n]),
            Transform::Transpose => data.transpose(),
            Transform::TransposeF32 => data.cast(DType::F32)?.transpose(),
        }
    })
}

/// The tensors of these names as one of F32 with dims `[6, 1, 1, n]`.
fn fused(file: &SafeTensors, names: &[String; 6]) -> Result<LazyTensor, RwkvError> {
    let mut lerps = Vec::with_capacity(names.len());
    for name in names {
        lerps.push(weight(require(file, name)?, |data| {
            let n = data.elements();
            data.cast(DType::F32)?.reshape(&[1, 1, 1, n])
        })?);
    }
    let fused = LazyTensor::concat(lerps).map_err(|source| WeightError::Transform {
        tensor: names.join(", "),
        dtype: DType::F32,
        source,
    });
    Ok(fused?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kovar_core::HostBytes;

    use super::*;
    use crate::safetensors::SafeTensorsWriter;

    fn refused(embeddings: [usize; 2]) -> String {
        let mut writer = SafeTensorsWriter::new();
        let bytes = vec![0; embeddings[0] * embeddings[1]];
        let added = writer.tensor("emb.weight", DType::F8E4M3, &embeddings, bytes);
        added.unwrap();
        let bytes = HostBytes::new(Arc::new(writer.to_bytes().unwrap()));
        let file = SafeTensors::from_bytes(bytes).unwrap();
        Sizes::read(&file).unwrap_err().to_string()
    }

    #[test]
    fn more_tokens_than_the_limit_are_refused_before_memory_is_allocated_for_them() {
        let rule = "it must be a matrix of 1 to 1048576 rows and columns";
        for dims in [[MAX_SIZE + 1, 1], [1, MAX_SIZE + 1], [0, 1]] {
            let expected = format!("tensor \"emb.weight\" has dims {dims:?}: {rule}");
            assert_eq!(refused(dims), expected);
        }
        let missing = "tensor \"blocks.0.att.r_k\" is missing";
        assert_eq!(refused([MAX_SIZE, 1]), missing);
    }
}
