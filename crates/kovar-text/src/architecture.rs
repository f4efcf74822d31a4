//! The table of model architectures, and the tensors that a model file must have for one.

use std::ops::Range;

use kovar_core::error::GraphError;
use kovar_core::ops::RopeSpec;
use kovar_core::ops::dtypes::{FLOATS, WEIGHTS};
use kovar_core::{DType, Graph, NodeId, StorageKind, ValueId};
use kovar_formats::{MetadataError, ModelFile};

use crate::decoder::Decoder;
use crate::llama::LLAMA;
use crate::qwen2::QWEN2;
use crate::qwen3::QWEN3;
use crate::rwkv7::{self, Rwkv7};

/// The sizes of one compiled step of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// Tokens that go in together.
    pub n_tokens: usize,
    /// Tokens whose logits come out; 0 only updates the state.
    pub n_outputs: usize,
}

/// What a model remembers of earlier tokens.
#[derive(Clone, Copy, Debug)]
pub enum Memory<'a> {
    /// The keys and values of every token, one cache row per token. Rotary embeddings with these
    /// angles encode the positions. Rows can be overwritten, so a text can be truncated.
    Caches {
        /// The angles.
        rope: &'a RopeSpec,
    },
    /// States of a fixed size that every token changes. They cannot be truncated and never fill up.
    States,
}

/// The caches of a step; a model with states of a fixed size has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Rows: the maximum number of tokens of a text.
    pub rows: usize,
    /// The dtype of keys and values.
    pub dtype: DType,
}

/// The graph of one step and the inputs that the caller writes before each run.
#[derive(Clone, Debug)]
pub struct StepGraph {
    /// The operations. They take one run-time scalar per micro-batch, see [`StepTokens`].
    pub graph: Graph,
    /// The token ranges of the micro-batches. The tokens of a micro-batch go through a layer
    /// together. All micro-batches go through a layer before any goes through the next one, so the
    /// weights of each layer are read once.
    pub micro_batches: Vec<Range<usize>>,
    /// The first node of each layer and micro-batch.
    pub layer_starts: Vec<NodeId>,
    /// I32 `[n_tokens]`: token ids; any value for padding.
    pub ids: ValueId,
    /// How the step distinguishes tokens from padding.
    pub tokens: StepTokens,
    /// The inputs and outputs for logits, if the step has any.
    pub outputs: Option<StepOutputs>,
}

/// How a step distinguishes tokens from padding, and how many tokens came before them.
#[derive(Clone, Copy, Debug)]
pub enum StepTokens {
    /// For [`Memory::Caches`]. The scalar of a micro-batch is the number of valid cache rows once
    /// its own rows are written.
    Positions {
        /// I32 `[n_tokens]`: positions in the context, -1 for padding.
        positions: ValueId,
        /// F32 `[n_tokens, n_rot / 2, 2]`: cos and sin for each position.
        rope_table: ValueId,
    },
    /// For [`Memory::States`]. The scalar of a micro-batch is the number of its tokens that are no
    /// padding. Padding comes last.
    Count,
}

impl StepTokens {
    /// The scalar of a micro-batch in a step of `valid` tokens (without padding) after `first`
    /// earlier tokens.
    pub fn scalar(&self, micro_batch: &Range<usize>, first: usize, valid: usize) -> usize {
        match self {
            Self::Positions { .. } => first + valid.min(micro_batch.end),
            Self::Count => valid.clamp(micro_batch.start, micro_batch.end) - micro_batch.start,
        }
    }
}

/// The logits of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepOutputs {
    /// I32 `[n_outputs]`: the tokens of the last micro-batch to give logits for.
    pub rows: ValueId,
    /// F32 `[n_outputs, vocab]`.
    pub logits: ValueId,
}

/// A model architecture, read from a file's metadata.
pub trait Architecture: Send + Sync {
    /// The tensors that a file of this model has.
    fn tensors(&self) -> Vec<TensorRule>;

    /// The number of logits.
    fn vocab_len(&self) -> usize;

    /// The context length that the model was trained for, in tokens.
    fn trained_context(&self) -> usize;

    /// What it remembers of earlier tokens.
    fn memory(&self) -> Memory<'_>;

    /// The graph of a step.
    ///
    /// # Errors
    /// A tensor that is missing in the file, or sizes for which the graph is invalid.
    fn step(
        &self,
        weights: &Weights<'_>,
        shape: StepShape,
        caches: CacheShape,
    ) -> Result<StepGraph, GraphError>;
}

/// Reads an architecture from the metadata of a file.
type Reader = fn(&ModelFile) -> Result<Box<dyn Architecture>, ArchitectureError>;

/// One row per architecture: its name in `general.architecture`, and its reader.
const ARCHITECTURES: &[(&str, Reader)] = &[
    (LLAMA.name, |file| {
        Ok(Box::new(Decoder::read(file, &LLAMA)?))
    }),
    (QWEN2.name, |file| {
        Ok(Box::new(Decoder::read(file, &QWEN2)?))
    }),
    (QWEN3.name, |file| {
        Ok(Box::new(Decoder::read(file, &QWEN3)?))
    }),
    (rwkv7::NAME, |file| Ok(Box::new(Rwkv7::read(file)?))),
];

/// The names of all architectures that kovar runs.
pub fn architecture_names() -> impl Iterator<Item = &'static str> {
    ARCHITECTURES.iter().map(|&(name, _)| name)
}

/// Why a file's model cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchitectureError {
    /// An architecture that kovar does not run.
    #[error("architecture `{found}` is not supported; supported are: {}", known())]
    Unknown {
        /// The value of `general.architecture`.
        found: String,
    },
    /// Metadata that is missing or of the wrong type.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// Metadata with an invalid value.
    #[error("metadata `{key}` is {value}: {rule}")]
    Value {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The violated rule.
        rule: &'static str,
    },
    /// A feature of the architecture that kovar does not support.
    #[error("the model uses {feature} (metadata `{key}`), which kovar does not support")]
    Feature {
        /// The key that enables it.
        key: String,
        /// The feature.
        feature: &'static str,
    },
    /// All tensors that are missing, unknown, or of wrong dims or dtype.
    #[error("the tensors do not fit the architecture: {}", listed(.0))]
    Tensors(Vec<String>),
}

/// The first of `faults`, and how many more there are.
fn listed(faults: &[String]) -> String {
    const MAX_LISTED: usize = 20;
    let (first, more) = faults.split_at(faults.len().min(MAX_LISTED));
    match more.len() {
        0 => first.join("; "),
        more => format!("{}; and {more} more", first.join("; ")),
    }
}

fn known() -> String {
    architecture_names().collect::<Vec<_>>().join(", ")
}

/// Reads the architecture of `file` and checks its tensors.
///
/// # Errors
/// See [`ArchitectureError`].
pub fn read_architecture(file: &ModelFile) -> Result<Box<dyn Architecture>, ArchitectureError> {
    let name = file.metadata().require_str("general.architecture")?;
    let Some((_, reader)) = ARCHITECTURES.iter().find(|(known, _)| *known == name) else {
        return Err(ArchitectureError::Unknown {
            found: name.to_owned(),
        });
    };
    let architecture = reader(file)?;
    check_tensors(file, &architecture.tensors())?;
    Ok(architecture)
}

/// A required or optional tensor of a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRule {
    /// Its name in the file.
    pub name: String,
    /// Its dims, outermost first; leading dims of 1 are ignored.
    pub dims: Vec<usize>,
    /// Whether it may be missing.
    pub optional: bool,
    /// Whether it is used elementwise and must therefore be a plain float.
    pub plain: bool,
}

impl TensorRule {
    /// A required matrix `[n, k]`, of any dtype that can be multiplied.
    pub fn matrix(name: impl Into<String>, n: usize, k: usize) -> Self {
        Self {
            name: name.into(),
            dims: vec![n, k],
            optional: false,
            plain: false,
        }
    }

    /// A required vector of plain floats.
    pub fn vector(name: impl Into<String>, n: usize) -> Self {
        Self::floats(name, &[n])
    }

    /// A required tensor of plain floats.
    pub fn floats(name: impl Into<String>, dims: &[usize]) -> Self {
        Self {
            name: name.into(),
            dims: dims.to_vec(),
            optional: false,
            plain: true,
        }
    }

    /// The same, but optional.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

fn without_outer_ones(dims: &[usize]) -> &[usize] {
    let ones = dims.iter().take_while(|&&dim| dim == 1).count();
    dims.get(ones..).unwrap_or_default()
}

fn check_tensors(file: &ModelFile, rules: &[TensorRule]) -> Result<(), ArchitectureError> {
    let mut faults = Vec::new();
    for rule in rules {
        match file.tensor(&rule.name) {
            Some(tensor) if without_outer_ones(tensor.dims()) != without_outer_ones(&rule.dims) => {
                faults.push(format!(
                    "`{}` has dims {:?}, expected {:?}",
                    rule.name,
                    tensor.dims(),
                    rule.dims
                ))
            }
            Some(tensor)
                if !if rule.plain { FLOATS } else { WEIGHTS }.contains(&tensor.dtype()) =>
            {
                faults.push(format!(
                    "`{}` is {}, expected {}",
                    rule.name,
                    tensor.dtype(),
                    if rule.plain {
                        "F32, F16 or BF16"
                    } else {
                        "a float of 32 bits or fewer, or a quantised type"
                    }
                ));
            }
            None if !rule.optional => faults.push(format!("`{}` is missing", rule.name)),
            _ => {}
        }
    }
    let known: std::collections::HashSet<&str> =
        rules.iter().map(|rule| rule.name.as_str()).collect();
    for tensor in file
        .tensors()
        .filter(|tensor| !known.contains(tensor.name()))
    {
        faults.push(format!(
            "`{}` is not a tensor of this architecture",
            tensor.name()
        ));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ArchitectureError::Tensors(faults))
    }
}

/// The weights of a file, for building graphs.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    file: &'a ModelFile,
}

impl<'a> Weights<'a> {
    /// The tensors of `file`.
    pub fn new(file: &'a ModelFile) -> Self {
        Self { file }
    }

    /// The weight `name` in `graph`, added on first use; `None` if the file lacks it.
    pub fn get(&self, graph: &mut Graph, name: &str) -> Result<Option<ValueId>, GraphError> {
        if let Some(weight) = graph.whole(StorageKind::Weight, name) {
            return Ok(Some(weight));
        }
        let Some(tensor) = self.file.tensor(name) else {
            return Ok(None);
        };
        graph.weight(name, tensor.dtype(), tensor.dims()).map(Some)
    }

    /// The weight `name` in `graph`, added on first use.
    pub fn require(&self, graph: &mut Graph, name: &str) -> Result<ValueId, GraphError> {
        self.get(graph, name)?.ok_or_else(|| GraphError::Tensor {
            name: name.to_owned(),
            dtype: DType::F32,
            dims: Vec::new(),
            reason: "the model file lacks it",
        })
    }

    /// The logits of a step: `x`, `[tokens, width]`, is the hidden state of its last micro-batch.
    /// The requested rows go through `norm` and the head, which is `output.weight`, or the
    /// embeddings if the file has none.
    pub(crate) fn outputs(
        &self,
        g: &mut Graph,
        shape: StepShape,
        x: ValueId,
        embeddings: ValueId,
        norm: impl FnOnce(&mut Graph, ValueId) -> Result<ValueId, GraphError>,
    ) -> Result<Option<StepOutputs>, GraphError> {
        if shape.n_outputs == 0 {
            return Ok(None);
        }
        let rows = g.input("rows", DType::I32, &[shape.n_outputs])?;
        let x = g.get_rows(x, rows)?;
        let x = norm(g, x)?;
        let head = self.get(g, "output.weight")?.unwrap_or(embeddings);
        let logits = g.matmul(head, x)?;
        g.set_output(logits, "logits")?;
        Ok(Some(StepOutputs { rows, logits }))
    }
}

/// The state `name` in `graph`, added on first use.
pub(crate) fn state(
    graph: &mut Graph,
    name: &str,
    dtype: DType,
    dims: &[usize],
) -> Result<ValueId, GraphError> {
    match graph.whole(StorageKind::State, name) {
        Some(state) => Ok(state),
        None => graph.state(name, dtype, dims),
    }
}
