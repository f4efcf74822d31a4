//! A loaded language model: weights, caches and compiled steps on one session.

mod cancellation;
mod eval;
mod forecast;
mod saved_text;
mod snapshot;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use kovar_core::backend::Backend;
use kovar_core::error::{CodecError, DeviceError, GraphError};
use kovar_core::ops::RopeAngles;
use kovar_core::{DType, Graph};
use kovar_formats::ModelFile;
use kovar_runtime::{
    CompileError, DeviceId, Homes, HostSlice, Observer, PlaceError, Plan, Policy, RunError,
    Session, SessionError, compile, forecast, place_layers, place_states,
};

use crate::architecture::{
    Architecture, ArchitectureError, CacheShape, Memory, StepGraph, StepShape, StepTokens, Weights,
    read_architecture,
};
use crate::chunks::step_within;

pub use forecast::ModelForecast;
pub(crate) use saved_text::check_writable;
pub use saved_text::{SavedText, SavedTextError};

use snapshot::StateBytes;

/// Options for loading a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOptions {
    /// Tokens that the context holds; by default the trained context, at most [`DEFAULT_CONTEXT`].
    /// Ignored for a recurrent model, whose context is unlimited.
    pub context: Option<usize>,
    /// The dtype of the keys and values in the context: F32, F16, BF16 or Q8_0. The states of a
    /// recurrent model are always F32.
    pub cache_dtype: DType,
    /// The devices of the weights and caches, by name. The names of a layer are of the form
    /// `blk.3.ffn_up.weight` and `blk.3.cache.k`. If a device has a budget, layers that do not fit
    /// go to the next device.
    pub homes: Homes,
    /// How the steps are compiled.
    pub policy: Policy,
    /// The maximum number of tokens of a micro-batch, rounded down to 1, 2, 4, 8, 32, 128 or 512.
    /// The steps of a prompt are queued without waiting. With layers on several devices, a device
    /// runs its layers of one step while the previous device runs the next step, so smaller steps
    /// keep more devices busy.
    pub micro_batch: usize,
    /// The maximum number of tokens of a step with [`LogitsOf::All`], at least 1. If a device has a
    /// budget, memory for this many rows of logits is reserved. Ignored without budgets.
    pub logit_rows: usize,
}

/// The largest default context, in tokens.
pub const DEFAULT_CONTEXT: usize = 4096;

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            context: None,
            cache_dtype: DType::F16,
            homes: Homes::all_on(DeviceId::FIRST),
            policy: Policy::default(),
            micro_batch: LONGEST_MICRO_BATCH,
            logit_rows: 1,
        }
    }
}

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file holds no model that kovar runs.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// A context of 0 tokens, or of too many.
    #[error(
        "a context of {tokens} tokens is not possible; it must be between 1 and {}",
        MAX_CONTEXT
    )]
    Context {
        /// Requested tokens.
        tokens: usize,
    },
    /// A forecast for more tokens than the context holds.
    #[error("the context holds {context} tokens, a step of {tokens} does not fit into it")]
    StepTokens {
        /// Tokens of the step.
        tokens: usize,
        /// Tokens that the context holds.
        context: usize,
    },
    /// A tensor cannot be decoded.
    #[error("tensor {name:?} cannot be read")]
    Tensor {
        /// Its name.
        name: String,
        /// The cause.
        source: CodecError,
    },
    /// The session cannot be created, or does not accept the weights.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The model's graph cannot be built or compiled.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// The largest context, in tokens.
pub(crate) const MAX_CONTEXT: usize = 1 << 24;

/// Why a step could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The graph cannot be built.
    #[error("building the model's graph: {0}")]
    Graph(#[from] GraphError),
    /// The graph cannot be compiled.
    #[error("compiling the model's graph: {0}")]
    Compile(#[from] CompileError),
}

impl From<PlaceError> for StepError {
    fn from(error: PlaceError) -> Self {
        Self::Compile(error.into())
    }
}

/// Why tokens could not be evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The tokens do not fit into the rest of the context. Nothing was evaluated.
    #[error("{}", describe_full(*context, *used, *requested))]
    ContextFull {
        /// Tokens that the context holds.
        context: usize,
        /// Tokens in the context.
        used: usize,
        /// Tokens to be added.
        requested: usize,
    },
    /// A token outside the vocabulary. Nothing was evaluated.
    #[error("token {token} does not exist: the model has {vocab_len} tokens")]
    Token {
        /// The token.
        token: u32,
        /// The number of tokens of the model.
        vocab_len: usize,
    },
    /// No tokens.
    #[error("there are no tokens to evaluate")]
    Empty,
    /// A step cannot be built.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A step cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The states of a recurrent model cannot be read or written.
    #[error(transparent)]
    States(#[from] SessionError),
}

fn describe_full(context: usize, used: usize, requested: usize) -> String {
    let s = |count: usize| if count == 1 { "" } else { "s" };
    let (more, taken) = match used {
        0 => ("", String::new()),
        1 => ("more ", ", 1 is taken".to_owned()),
        _ => ("more ", format!(", {used} are taken")),
    };
    format!(
        "{requested} {more}token{} not fit: the context holds {context} token{}{taken}",
        if requested == 1 { " does" } else { "s do" },
        s(context),
    )
}

/// The tokens whose logits an evaluation returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogitsOf {
    /// Only the last token.
    Last,
    /// Every token, in order.
    All,
}

/// A language model with one context.
pub struct Model {
    file: ModelFile,
    architecture: Box<dyn Architecture>,
    context: Context,
    session: Session,
    steps: HashMap<StepShape, Step>,
    caches: CacheShape,
    policy: Policy,
    /// The maximum number of tokens of a micro-batch.
    micro_batch: usize,
    /// The maximum number of tokens of a step with the logits of all tokens.
    logit_rows: usize,
    /// Whether steps with the logits of the last token may have several micro-batches.
    long_steps: bool,
    /// The tokens in the context.
    tokens: Vec<u32>,
}

/// The step of one token with its logits, which every generation uses; compiling it prepares the
/// weights.
const DECODE: StepShape = StepShape {
    n_tokens: 1,
    n_outputs: 1,
};

/// The maximum number of tokens of a micro-batch.
const LONGEST_MICRO_BATCH: usize = 512;

/// Steps of fewer tokens are short and cannot be cancelled.
const INTERRUPTED_FROM: usize = 128;

/// The steps of one micro-batch that need the most activation memory.
fn largest(micro_batch: usize, logit_rows: usize) -> impl Iterator<Item = StepShape> {
    let shape = |n_tokens, n_outputs| StepShape {
        n_tokens,
        n_outputs,
    };
    let rows = logit_rows.min(micro_batch);
    let shapes = [
        shape(micro_batch, 0),
        shape(micro_batch, 1),
        shape(rows, rows),
    ];
    shapes.into_iter().filter(|shape| *shape != DECODE)
}

/// How the context of a model returns to an earlier token.
enum Context {
    /// Cache rows, which later tokens overwrite.
    Caches { rope: RopeAngles },
    /// States that cannot be truncated but can be restored from a checkpoint.
    States {
        /// The number of tokens that the states hold; `None` if it is unknown because a step failed
        /// or is in flight.
        held: Option<usize>,
        checkpoint: Option<Checkpoint>,
    },
}

/// The states of a recurrent model after the first `tokens` of its context.
#[derive(Clone, Debug)]
struct Checkpoint {
    tokens: usize,
    states: Vec<StateBytes>,
}

struct Step {
    shape: StepShape,
    plan: Plan,
    graph: StepGraph,
    inputs: Inputs,
}

/// The inputs that are written before each run of a step.
struct Inputs {
    ids: Vec<i32>,
    positions: Vec<i32>,
    rope_table: Vec<f32>,
    rows: Vec<i32>,
}

impl Model {
    /// Loads the model of `file` onto `devices`.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(
        file: impl Into<ModelFile>,
        devices: Vec<Arc<dyn Backend>>,
        options: &ModelOptions,
    ) -> Result<Self, LoadError> {
        let mut model = Self::unloaded(file.into(), devices, options)?;
        let step = model.compile(DECODE)?;
        model.steps.insert(DECODE, step);
        Ok(model)
    }

    /// A model whose weights are not prepared and whose caches are not allocated.
    fn unloaded(
        file: ModelFile,
        devices: Vec<Arc<dyn Backend>>,
        options: &ModelOptions,
    ) -> Result<Self, LoadError> {
        let architecture = read_architecture(&file)?;
        let trained = architecture.trained_context();
        let rows = options.context.unwrap_or(trained.min(DEFAULT_CONTEXT));
        if !(1..=MAX_CONTEXT).contains(&rows) {
            return Err(LoadError::Context { tokens: rows });
        }
        let caches = CacheShape {
            rows,
            dtype: options.cache_dtype,
        };
        let micro_batch = step_within(options.micro_batch);
        let logit_rows = step_within(options.logit_rows).min(micro_batch);
        let mut homes = options.homes.clone();
        if homes.has_budgets() {
            let weights = Weights::new(&file);
            let graph = |shape| architecture.step(&weights, shape, caches);
            let shapes = std::iter::once(DECODE).chain(largest(micro_batch, logit_rows));
            let graphs = shapes.map(|shape| Ok(graph(shape)?.graph));
            let graphs: Vec<Graph> = graphs.collect::<Result<_, StepError>>()?;
            let graphs: Vec<&Graph> = graphs.iter().collect();
            homes =
                place_layers(&graphs, &devices, homes, &options.policy).map_err(StepError::from)?;
        } else if devices.len() > 1 {
            let weights = Weights::new(&file);
            let step = architecture.step(&weights, DECODE, caches);
            let step = step.map_err(StepError::from)?;
            homes = place_states(&step.graph, &devices, homes, &options.policy)
                .map_err(StepError::from)?;
        }
        let (long_steps, has_budgets) = (homes.has_streamed(), homes.has_budgets());
        let session = Session::with_homes(devices, homes)?;
        for tensor in file.tensors() {
            let bytes = tensor.bytes().map_err(|source| LoadError::Tensor {
                name: tensor.name().to_owned(),
                source,
            })?;
            session.add_weight(tensor.name(), tensor.dtype(), tensor.dims(), bytes)?;
        }
        let context = match architecture.memory() {
            Memory::Caches { rope } => Context::Caches {
                rope: rope.angles(),
            },
            Memory::States => Context::States {
                held: Some(0),
                checkpoint: None,
            },
        };
        let mut model = Self {
            file,
            architecture,
            context,
            session,
            steps: HashMap::new(),
            caches,
            policy: options.policy.clone(),
            micro_batch,
            logit_rows: if has_budgets { logit_rows } else { micro_batch },
            long_steps,
            tokens: Vec::new(),
        };
        model.long_steps |= model.streams_by_choice()?;
        Ok(model)
    }

    /// Whether the fastest placement of a prompt's step uploads some of its weights to another
    /// device in every step.
    fn streams_by_choice(&self) -> Result<bool, StepError> {
        if self.session.devices().len() < 2 || self.long_steps {
            return Ok(false);
        }
        let shape = StepShape {
            n_tokens: self.micro_batch,
            n_outputs: 0,
        };
        let graph = self.graph(shape)?.graph;
        // Errors are reported when the steps are compiled.
        let plan = forecast(&graph, &self.session, &self.policy);
        Ok(plan.is_ok_and(|plan| !plan.schedule.uploads.is_empty()))
    }

    /// The file that the model came from.
    pub fn file(&self) -> &ModelFile {
        &self.file
    }

    /// The plans compiled so far.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.steps.values().map(|step| &step.plan)
    }

    /// The session that holds its weights and caches.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The number of tokens in the vocabulary, and of logits per token.
    pub fn vocab_len(&self) -> usize {
        self.architecture.vocab_len()
    }

    /// Tokens that the context holds; `None` for a recurrent model, whose context is unlimited.
    pub fn context_len(&self) -> Option<usize> {
        match self.context {
            Context::Caches { .. } => Some(self.caches.rows),
            Context::States { .. } => None,
        }
    }

    /// The dtype of the keys and values in the context; `None` for a recurrent model.
    pub fn cache_dtype(&self) -> Option<DType> {
        self.context_len().map(|_| self.caches.dtype)
    }

    /// The context length that the model was trained for, in tokens.
    pub fn trained_context(&self) -> usize {
        self.architecture.trained_context()
    }

    /// The tokens in the context.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Drops all tokens after the first `len`, and returns how many remain. A recurrent model can
    /// only return to its last [checkpoint](Self::checkpoint), or else to the beginning.
    pub fn truncate(&mut self, len: usize) -> usize {
        if len < self.tokens.len() {
            self.go_back(len);
        }
        self.tokens.len()
    }

    /// Drops all tokens after the longest prefix of at most `len` tokens to which the context can
    /// return.
    fn go_back(&mut self, len: usize) {
        let left = match &mut self.context {
            Context::Caches { .. } => len,
            Context::States { checkpoint, .. } => {
                // A later checkpoint is invalid: other tokens may replace the dropped ones.
                *checkpoint = checkpoint.take_if(|checkpoint| checkpoint.tokens <= len);
                checkpoint
                    .as_ref()
                    .map_or(0, |checkpoint| checkpoint.tokens)
            }
        };
        self.tokens.truncate(left);
    }

    /// Keeps the common prefix of the context and `tokens`, but never all of `tokens`, so that
    /// evaluating the rest gives logits. Returns how many tokens are kept; for a recurrent model
    /// only those to which [`truncate`](Self::truncate) can return.
    pub fn keep_prefix(&mut self, tokens: &[u32]) -> usize {
        let common = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b);
        let kept = common.count().min(tokens.len().saturating_sub(1));
        self.truncate(kept)
    }

    /// Adds the tokens of finished steps to the context.
    fn finish<E: Into<EvalError>>(
        &mut self,
        tokens: &[u32],
        run: Result<(), E>,
    ) -> Result<(), EvalError> {
        if let Err(error) = run {
            if let Context::States { held, .. } = &mut self.context {
                *held = None;
                self.go_back(self.tokens.len());
            }
            return Err(error.into());
        }
        self.tokens.extend_from_slice(tokens);
        if let Context::States { held, .. } = &mut self.context {
            *held = Some(self.tokens.len());
        }
        Ok(())
    }

    /// Checks whether `tokens` can be evaluated after those in the context.
    ///
    /// # Errors
    /// [`EvalError::Empty`], [`EvalError::Token`], [`EvalError::ContextFull`].
    pub fn check(&self, tokens: &[u32]) -> Result<(), EvalError> {
        let vocab_len = self.vocab_len();
        if tokens.is_empty() {
            return Err(EvalError::Empty);
        }
        if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocab_len) {
            return Err(EvalError::Token { token, vocab_len });
        }
        let used = self.tokens.len();
        match self.context_len() {
            Some(context) if tokens.len() > context.saturating_sub(used) => {
                Err(EvalError::ContextFull {
                    context,
                    used,
                    requested: tokens.len(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Evaluates up to 512 tokens after those in the context in one step, and calls `observer`
    /// after each of its nodes.
    ///
    /// # Errors
    /// See [`EvalError`]. After an error, the context is the same as after an error of
    /// [`eval`](Self::eval).
    pub fn observe(
        &mut self,
        tokens: &[u32],
        observer: &mut Observer<'_>,
    ) -> Result<(), EvalError> {
        self.check(tokens)?;
        self.sync_states()?;
        let shape = StepShape {
            n_tokens: self.next_step(tokens.len()),
            n_outputs: 1,
        };
        let graph = self.graph(shape)?;
        let mut policy = self.policy_of(&graph, shape);
        policy.max_segment_nodes = Some(NonZeroUsize::MIN);
        let mut step = self.compile_with(shape, graph, &policy)?;
        let tokens = tokens.get(..shape.n_tokens).unwrap_or(tokens);
        let now = (self.tokens.len(), tokens);
        let run = self.run(&mut step, now, &mut Vec::new(), Some(observer));
        self.finish(tokens, run)
    }

    fn graph(&self, shape: StepShape) -> Result<StepGraph, StepError> {
        let weights = Weights::new(&self.file);
        Ok(self.architecture.step(&weights, shape, self.caches)?)
    }

    /// The policy for compiling a step: in long steps, each layer of each micro-batch is a segment,
    /// so that the step can be cancelled between layers.
    fn policy_of(&self, graph: &StepGraph, shape: StepShape) -> Policy {
        let mut policy = self.policy.clone();
        if shape.n_tokens >= INTERRUPTED_FROM {
            policy.segment_starts.clone_from(&graph.layer_starts);
        }
        policy
    }

    fn compile(&self, shape: StepShape) -> Result<Step, StepError> {
        let graph = self.graph(shape)?;
        let policy = self.policy_of(&graph, shape);
        self.compile_with(shape, graph, &policy)
    }

    fn compile_with(
        &self,
        shape: StepShape,
        graph: StepGraph,
        policy: &Policy,
    ) -> Result<Step, StepError> {
        let plan = compile(&graph.graph, &self.session, policy)?;
        let (n_positions, row_len) = match &self.context {
            Context::Caches { rope } => (shape.n_tokens, rope.row_len()),
            Context::States { .. } => (0, 0),
        };
        Ok(Step {
            shape,
            plan,
            graph,
            inputs: Inputs {
                ids: vec![0; shape.n_tokens],
                positions: vec![0; n_positions],
                rope_table: vec![0.0; n_positions * row_len],
                rows: (0..shape.n_outputs as i32).collect(),
            },
        })
    }

    /// Queues `step` for `tokens`, which start at position `first` and are at most as many as the
    /// step's shape has. If the step has outputs, waits for it and for all earlier steps on all
    /// devices, and appends the logits.
    fn run(
        &self,
        step: &mut Step,
        (first, tokens): (usize, &[u32]),
        logits: &mut Vec<f32>,
        observer: Option<&mut Observer<'_>>,
    ) -> Result<(), RunError> {
        let Step {
            shape,
            plan,
            graph,
            inputs,
        } = step;
        let valid = tokens.len();
        let ids = tokens.iter().map(|&id| id as i32);
        fill(&mut inputs.ids, ids, 0);
        if let (1, [row]) = (shape.n_outputs, inputs.rows.as_mut_slice()) {
            let last_micro_batch = graph
                .micro_batches
                .last()
                .map_or(0, |micro_batch| micro_batch.start);
            *row = (valid as i32 - 1) - last_micro_batch as i32;
        }
        let micro_batches = graph.micro_batches.iter();
        let scalars: Vec<i32> = micro_batches
            .map(|micro_batch| graph.tokens.scalar(micro_batch, first, valid) as i32)
            .collect();
        let mut given = vec![(graph.ids, HostSlice::i32(&inputs.ids))];
        if let (
            StepTokens::Positions {
                positions,
                rope_table,
            },
            Context::Caches { rope },
        ) = (&graph.tokens, &self.context)
        {
            let places = (first..first + valid).map(|at| at as i32);
            fill(&mut inputs.positions, places, -1);
            rope.fill_table(&inputs.positions, &mut inputs.rope_table);
            given.push((*positions, HostSlice::i32(&inputs.positions)));
            given.push((*rope_table, HostSlice::f32(&inputs.rope_table)));
        }
        let Some(output) = graph.outputs else {
            plan.run_observed(&given, &scalars, observer)?;
            return Ok(());
        };
        given.push((output.rows, HostSlice::i32(&inputs.rows)));
        let outputs = plan.run_observed(&given, &scalars, observer)?;
        // Devices other than the one with the logits write caches too.
        outputs.wait()?;
        let vocab_len = self.vocab_len();
        let start = logits.len();
        logits.resize(start + shape.n_outputs * vocab_len, 0.0);
        outputs.read_f32(output.logits, &mut logits[start..])?;
        logits.truncate(start + valid.min(shape.n_outputs) * vocab_len);
        Ok(())
    }
}

/// Whether a step needs more memory than is available or allowed.
fn is_too_large(error: &CompileError) -> bool {
    matches!(
        error,
        CompileError::OverBudget(_) | CompileError::Device(DeviceError::OutOfMemory { .. })
    )
}

/// Writes `values` to `places`, and `padding` to the remaining ones.
fn fill(places: &mut [i32], values: impl Iterator<Item = i32>, padding: i32) {
    let values = values.chain(std::iter::repeat(padding));
    places
        .iter_mut()
        .zip(values)
        .for_each(|(place, value)| *place = value);
}
