//! The choice of a type for each tensor of a file, and the writing of the converted file.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use kovar_core::DType;

use super::convert::convert;
use super::mix::{Layer, Mix, fall_back};
use super::{QuantizeError, TensorRule};
use crate::error::FileWriteError;
use crate::gguf::{
    ALIGNMENT_KEY, GgufWriter, SPLIT_COUNT_KEY, SPLIT_NO_KEY, SPLIT_PREFIX, SPLIT_TENSORS_KEY,
    Value, shard_path,
};
use crate::model_file::{ModelFile, ModelTensor};
use crate::replace::PartialFile;

pub(crate) const FILE_TYPE_KEY: &str = "general.file_type";
pub(crate) const QUANTIZATION_VERSION_KEY: &str = "general.quantization_version";
/// The version of ggml's block layouts.
pub(crate) const QUANTIZATION_VERSION: u32 = 2;

const OUTPUT: &str = "output.weight";
const EMBEDDINGS: &str = "token_embd.weight";

/// Matrices whose names contain one of these texts are not converted: norms, expert gates, position
/// tables, and the small matrices of recurrent models.
///
/// Source: llama.cpp's `llama_model_quantize`.
const KEPT: &[&str] = &[
    "_norm.weight",
    "ffn_gate_inp.weight",
    "position_embd.weight",
    "token_types.weight",
    "attn_rel_b.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
];

/// The chosen types of the tensors of a file.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    file: &'a ModelFile,
    mix: Mix,
    tensors: Vec<TensorPlan<'a>>,
}

/// The limits of a shard of a split file. A shard has at least one tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitLimit {
    /// The most tensors.
    pub max_tensors: Option<usize>,
    /// The most bytes of tensors.
    pub max_bytes: Option<u64>,
}

/// A tensor and its chosen type.
#[derive(Clone, Copy, Debug)]
pub struct TensorPlan<'a> {
    tensor: &'a ModelTensor,
    dtype: DType,
    fell_back: bool,
}

impl<'a> TensorPlan<'a> {
    /// The tensor in the source file.
    pub fn tensor(&self) -> &'a ModelTensor {
        self.tensor
    }

    /// The chosen type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether its rows are not whole blocks of the type of the mix, so that it has another type.
    pub fn fell_back(&self) -> bool {
        self.fell_back
    }

    /// Bytes of the tensor in its chosen type.
    pub fn bytes(&self) -> usize {
        self.dtype.bytes_for(self.tensor.elements()).unwrap_or(0)
    }
}

/// Chooses the types of the tensors of `file`: that of the first of `rules` that matches the name,
/// or that of `mix` if none matches.
///
/// Vectors, norms, integers and the small matrices that llama.cpp does not quantise keep their
/// type; rules do not apply to them. If the rows of a matrix are not whole blocks of the type of
/// `mix`, the matrix gets Q5_0 in place of Q4_K, Q5_1 of Q5_K, Q8_0 of Q6_K, Q4_0 of TQ2_0, IQ4_NL
/// of Q2_K, Q3_K and IQ4_XS, and F16 otherwise.
///
/// # Errors
/// A rule matches no tensor that is converted, or the rows of a tensor are not whole blocks of the
/// type of its rule.
pub fn plan<'a>(
    file: &'a ModelFile,
    mix: Mix,
    rules: &[TensorRule],
) -> Result<Plan<'a>, QuantizeError> {
    let wanted = mix_types(mix, file.tensors().map(|t| (t.name(), t.dtype(), t.dims())));
    let mut used = vec![false; rules.len()];
    let mut tensors = Vec::with_capacity(file.tensors().len());
    for (tensor, wanted) in file.tensors().zip(wanted) {
        let name = tensor.name();
        let Some(wanted) = wanted else {
            tensors.push(TensorPlan {
                tensor,
                dtype: tensor.dtype(),
                fell_back: false,
            });
            continue;
        };
        let row = tensor.dims().last().copied().unwrap_or(1);
        let mut dtype = fall_back(wanted, row);
        let mut fell_back = dtype != wanted;
        for (rule, used) in rules.iter().zip(&mut used).rev() {
            if rule.matches(name) {
                *used = true;
                dtype = rule.dtype();
                fell_back = false;
            }
        }
        if !row.is_multiple_of(dtype.block_len()) {
            return Err(QuantizeError::PartialBlock {
                tensor: name.to_owned(),
                dtype,
                row,
            });
        }
        tensors.push(TensorPlan {
            tensor,
            dtype,
            fell_back,
        });
    }
    match rules.iter().zip(used).find(|(_, used)| !used) {
        Some((rule, _)) => Err(QuantizeError::UnusedRule {
            pattern: rule.pattern().to_owned(),
        }),
        None => Ok(Plan { file, mix, tensors }),
    }
}

/// The types of tensors with these names, dtypes and dims in `mix`, before [`fall_back`]; `None`
/// for tensors that are not converted.
pub(crate) fn mix_types<'t>(
    mix: Mix,
    tensors: impl Iterator<Item = (&'t str, DType, &'t [usize])> + Clone,
) -> Vec<Option<DType>> {
    let has_output = tensors.clone().any(|(name, ..)| name == OUTPUT);
    let count = |part: &str| {
        tensors
            .clone()
            .filter(|(name, ..)| name.contains(part))
            .count()
    };
    let (n_values, n_downs) = (count("attn_v.weight"), count("ffn_down"));
    let group = heads_per_key_head(tensors.clone());
    let (mut values, mut downs) = (0, 0);
    let wanted = |(name, dtype, dims): (&str, DType, &[usize])| {
        if !is_converted(name, dtype, dims) {
            None
        } else if name == OUTPUT || name == EMBEDDINGS && !has_output {
            Some(mix.output())
        } else if name == EMBEDDINGS {
            Some(mix.embeddings())
        } else if name.contains("attn_v.weight") {
            values += 1;
            Some(mix.value(Layer {
                index: values - 1,
                count: n_values,
                group,
            }))
        } else if name.contains("attn_output.weight") {
            Some(mix.attention_output())
        } else if name.contains("attn_qkv.weight") {
            Some(mix.fused())
        } else if name.contains("ffn_down") {
            downs += 1;
            // Layers of experts may have several down projections.
            Some(mix.down(Layer {
                index: layer(name).unwrap_or(downs - 1),
                count: n_downs,
                group,
            }))
        } else {
            Some(mix.base())
        }
    };
    tensors.clone().map(wanted).collect()
}

/// Query heads per key head in the first layer; 1 if a matrix is missing.
fn heads_per_key_head<'t>(
    tensors: impl Iterator<Item = (&'t str, DType, &'t [usize])> + Clone,
) -> usize {
    let rows = |name: &str| {
        let (.., dims) = tensors.clone().find(|(other, ..)| *other == name)?;
        dims.first().copied()
    };
    match (rows("blk.0.attn_q.weight"), rows("blk.0.attn_k.weight")) {
        (Some(queries), Some(keys)) if keys > 0 => queries / keys,
        _ => 1,
    }
}

fn is_converted(name: &str, dtype: DType, dims: &[usize]) -> bool {
    (dtype.is_float() || dtype.is_quantized())
        && name.ends_with("weight")
        && is_matrix(dims)
        && !KEPT.iter().any(|part| name.contains(part))
}

/// Whether the dims have more than one row; outer dims of 1 do not count.
fn is_matrix(dims: &[usize]) -> bool {
    let outer = dims.len().saturating_sub(1);
    dims.iter().take(outer).any(|&dim| dim > 1)
}

/// The layer in a name such as `blk.3.ffn_down.weight`.
fn layer(name: &str) -> Option<usize> {
    let (index, _) = name.strip_prefix("blk.")?.split_once('.')?;
    index.parse().ok()
}

impl<'a> Plan<'a> {
    /// The tensors in the order of the file.
    pub fn tensors(&self) -> &[TensorPlan<'a>] {
        &self.tensors
    }

    /// Writes the file at `path`, replacing an existing one.
    ///
    /// The metadata keep their order; `general.file_type` and `general.quantization_version` are
    /// set. `threads` threads convert. `progress` is called after each batch with the number of
    /// source bytes that were converted, and can stop the conversion.
    ///
    /// # Errors
    /// A tensor does not stay finite in its type, the file cannot be written, or `progress` stopped
    /// the conversion. No file is left then.
    pub fn write_file(
        &self,
        path: impl AsRef<Path>,
        threads: usize,
        progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), QuantizeError> {
        let (path, writer) = (path.as_ref(), self.writer()?);
        let file = self.write_partial(path, writer, 0..self.tensors.len(), threads, progress)?;
        file.persist()?;
        Ok(())
    }

    /// Writes the model split into shards within `limit`, in the form of llama.cpp's `gguf-split`:
    /// `out.gguf` becomes `out-00001-of-00003.gguf` and so on, and the first shard has the
    /// metadata. Otherwise as [`write_file`](Self::write_file). Returns the paths of the shards.
    ///
    /// # Errors
    /// Those of [`write_file`](Self::write_file), or there would be more than 65,535 shards. No
    /// file is left or replaced then, unless renaming one of the complete files fails.
    pub fn write_shards(
        &self,
        path: impl AsRef<Path>,
        limit: SplitLimit,
        threads: usize,
        progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<PathBuf>, QuantizeError> {
        let shards = self.shards(limit);
        let too_many = || QuantizeError::TooManyShards {
            count: shards.len(),
        };
        let count = u16::try_from(shards.len()).map_err(|_| too_many())?;
        let tensors = i32::try_from(self.tensors.len()).map_err(|_| too_many())?;
        let paths = self.shard_paths(path, limit);
        let mut files = Vec::with_capacity(shards.len());
        for ((no, shard), path) in (0u16..).zip(shards).zip(&paths) {
            let split: [(&str, Value); 3] = [
                (SPLIT_NO_KEY, no.into()),
                (SPLIT_COUNT_KEY, count.into()),
                (SPLIT_TENSORS_KEY, tensors.into()),
            ];
            let mut writer = if no == 0 {
                self.writer()?
            } else {
                GgufWriter::with_alignment(self.file.alignment())?
            };
            for (key, value) in split {
                writer.metadata(key, value)?;
            }
            files.push(self.write_partial(path, writer, shard, threads, progress)?);
        }
        for file in files {
            file.persist()?;
        }
        Ok(paths)
    }

    /// The paths of the files that [`write_shards`](Self::write_shards) writes.
    pub fn shard_paths(&self, path: impl AsRef<Path>, limit: SplitLimit) -> Vec<PathBuf> {
        let path = path.as_ref();
        let prefix = match path.extension() {
            Some(extension) if extension == "gguf" => path.with_extension(""),
            _ => path.to_owned(),
        };
        let count = u32::try_from(self.shards(limit).len()).unwrap_or(u32::MAX);
        (0..count)
            .map(|no| shard_path(&prefix, no, count))
            .collect()
    }

    /// The tensors of each shard.
    fn shards(&self, limit: SplitLimit) -> Vec<Range<usize>> {
        let most_tensors = limit.max_tensors.unwrap_or(usize::MAX).max(1);
        let most_bytes = limit.max_bytes.unwrap_or(u64::MAX);
        let alignment = u64::from(self.file.alignment());
        let mut shards = Vec::new();
        let (mut start, mut bytes) = (0, 0u64);
        for (at, tensor) in self.tensors.iter().enumerate() {
            let size = (tensor.bytes() as u64).next_multiple_of(alignment);
            let is_full = at - start >= most_tensors || bytes.saturating_add(size) > most_bytes;
            if is_full && at > start {
                shards.push(start..at);
                (start, bytes) = (at, 0);
            }
            bytes = bytes.saturating_add(size);
        }
        shards.push(start..self.tensors.len());
        shards
    }

    fn write_partial(
        &self,
        path: &Path,
        mut writer: GgufWriter,
        shard: Range<usize>,
        threads: usize,
        progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<PartialFile, QuantizeError> {
        let tensors = self.tensors.get(shard).unwrap_or_default();
        for tensor in tensors {
            writer.declare_tensor(tensor.tensor.name(), tensor.dtype, tensor.tensor.dims())?;
        }
        writer.stream_partial(path, |stream| {
            for tensor in tensors {
                convert(tensor, threads, progress, &mut |bytes| stream.data(bytes))?;
            }
            Ok(())
        })
    }

    /// A writer with the metadata of the model.
    fn writer(&self) -> Result<GgufWriter, FileWriteError> {
        let mut writer = GgufWriter::with_alignment(self.file.alignment())?;
        let set: [(&str, Value); 2] = [
            (FILE_TYPE_KEY, self.mix.file_type().into()),
            (QUANTIZATION_VERSION_KEY, QUANTIZATION_VERSION.into()),
        ];
        let is_kept = |key: &str| key != ALIGNMENT_KEY && !key.starts_with(SPLIT_PREFIX);
        let metadata = self.file.metadata();
        for (key, value) in metadata.iter().filter(|(key, _)| is_kept(key)) {
            let replaced = set.iter().find(|(other, _)| *other == key);
            writer.metadata(key, replaced.map_or(value, |(_, value)| value).clone())?;
        }
        for (key, value) in set.into_iter().filter(|(key, _)| !metadata.contains(key)) {
            writer.metadata(key, value)?;
        }
        Ok(writer)
    }
}
