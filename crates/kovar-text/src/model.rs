//! A language model that is ready to run: weights, caches and compiled steps on one session.

use std::collections::HashMap;
use std::sync::Arc;

use kovar_core::DType;
use kovar_core::backend::Backend;
use kovar_core::error::GraphError;
use kovar_core::ops::RopeAngles;
use kovar_formats::Gguf;
use kovar_runtime::{
    CompileError, DeviceId, Homes, HostSlice, Plan, Policy, RunError, Session, SessionError,
    compile,
};

use crate::architecture::{
    Architecture, ArchitectureError, StepGraph, StepShape, Weights, read_architecture,
};
use crate::chunks::next_step;

/// How a model is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOptions {
    /// Tokens that the context holds; at most [`DEFAULT_CONTEXT`] of the trained ones if not given.
    pub context: Option<usize>,
    /// The dtype of the keys and values in the context: F32, F16, BF16 or Q8_0.
    pub cache_dtype: DType,
    /// Which devices the weights and caches are on: those of a layer have names like
    /// `blk.3.ffn_up.weight` and `blk.3.cache.k`.
    pub homes: Homes,
}

/// The largest context that a model gets without being asked to, in tokens.
pub const DEFAULT_CONTEXT: usize = 4096;

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            context: None,
            cache_dtype: DType::F16,
            homes: Homes::all_on(DeviceId::FIRST),
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
    /// A context of no tokens, or of more than the positions can count.
    #[error(
        "a context of {tokens} tokens is not possible; it must be between 1 and {}",
        MAX_CONTEXT
    )]
    Context {
        /// Tokens asked for.
        tokens: usize,
    },
    /// A session without devices, or that does not take the weights.
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

/// Why tokens could not be evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The tokens do not fit into what is left of the context. Nothing was evaluated.
    #[error("{}", describe_full(*context, *used, *requested))]
    ContextFull {
        /// Tokens that the context holds.
        context: usize,
        /// Tokens that are in it.
        used: usize,
        /// Tokens that were to be added.
        requested: usize,
    },
    /// A token that the model does not have. Nothing was evaluated.
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

/// Which tokens' logits an evaluation gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogitsOf {
    /// Only the last token's.
    Last,
    /// Every token's, in order.
    All,
}

/// A language model with one context.
pub struct Model {
    file: Gguf,
    architecture: Box<dyn Architecture>,
    rope: RopeAngles,
    session: Session,
    steps: HashMap<StepShape, Step>,
    context: usize,
    cache_dtype: DType,
    /// The tokens in the context.
    tokens: Vec<u32>,
    inputs: Inputs,
}

struct Step {
    plan: Plan,
    graph: StepGraph,
}

/// What is written before a run, kept so that a run allocates nothing.
#[derive(Default)]
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
        file: Gguf,
        devices: Vec<Arc<dyn Backend>>,
        options: &ModelOptions,
    ) -> Result<Self, LoadError> {
        let architecture = read_architecture(&file)?;
        let trained = architecture.trained_context();
        let context = options.context.unwrap_or(trained.min(DEFAULT_CONTEXT));
        if !(1..=MAX_CONTEXT).contains(&context) {
            return Err(LoadError::Context { tokens: context });
        }
        let session = Session::with_homes(devices, options.homes.clone())?;
        for tensor in file.tensors() {
            session.add_weight(tensor.name(), tensor.dtype(), tensor.dims(), tensor.bytes())?;
        }
        let mut model = Self {
            file,
            rope: architecture.rope().angles(),
            architecture,
            session,
            steps: HashMap::new(),
            context,
            cache_dtype: options.cache_dtype,
            tokens: Vec::new(),
            inputs: Inputs::default(),
        };
        // The step that every text ends in; compiling it prepares the weights.
        model.step(StepShape {
            n_tokens: 1,
            n_outputs: 1,
        })?;
        Ok(model)
    }

    /// The file that the model came from.
    pub fn file(&self) -> &Gguf {
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

    /// The number of tokens that it knows, and of logits that it gives for each.
    pub fn vocab_len(&self) -> usize {
        self.architecture.vocab_len()
    }

    /// Tokens that the context holds.
    pub fn context_len(&self) -> usize {
        self.context
    }

    /// Tokens that the model was trained to hold in a context.
    pub fn trained_context(&self) -> usize {
        self.architecture.trained_context()
    }

    /// The tokens in the context.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Forgets all tokens but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }

    /// Forgets the tokens that are not a prefix of `tokens`, and at least the last of `tokens`, so
    /// that evaluating the rest gives its logits. Returns how many are kept.
    pub fn keep_prefix(&mut self, tokens: &[u32]) -> usize {
        let common = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b);
        let kept = common.count().min(tokens.len().saturating_sub(1));
        self.truncate(kept);
        kept
    }

    /// Appends `tokens` to the context and replaces `logits` by the logits asked for, row by row,
    /// F32 `[rows, vocab_len]`. Long runs go through in steps of up to 512 tokens.
    ///
    /// # Errors
    /// See [`EvalError`]. If a step fails, the tokens of the steps before it are in the context.
    pub fn eval(
        &mut self,
        tokens: &[u32],
        logits_of: LogitsOf,
        logits: &mut Vec<f32>,
    ) -> Result<(), EvalError> {
        let vocab_len = self.vocab_len();
        if tokens.is_empty() {
            return Err(EvalError::Empty);
        }
        if let Some(&token) = tokens.iter().find(|&&token| token as usize >= vocab_len) {
            return Err(EvalError::Token { token, vocab_len });
        }
        if tokens.len() > self.context - self.tokens.len() {
            return Err(EvalError::ContextFull {
                context: self.context,
                used: self.tokens.len(),
                requested: tokens.len(),
            });
        }
        logits.clear();
        let mut rest = tokens;
        while !rest.is_empty() {
            let n_tokens = next_step(rest.len());
            let (now, later) = rest.split_at(n_tokens.min(rest.len()));
            let n_outputs = match logits_of {
                LogitsOf::All => n_tokens,
                LogitsOf::Last if later.is_empty() => 1,
                LogitsOf::Last => 0,
            };
            let shape = StepShape {
                n_tokens,
                n_outputs,
            };
            self.run(shape, now, logits)?;
            self.tokens.extend_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    fn step(&mut self, shape: StepShape) -> Result<&Step, StepError> {
        if !self.steps.contains_key(&shape) {
            let weights = Weights::new(&self.file);
            let graph = self
                .architecture
                .step(&weights, shape, self.context, self.cache_dtype)?;
            let plan = compile(&graph.graph, &self.session, &Policy::default())?;
            self.steps.insert(shape, Step { plan, graph });
        }
        Ok(&self.steps[&shape])
    }

    /// Runs one step over `tokens`, at most as many as its shape has, and appends its logits.
    fn run(
        &mut self,
        shape: StepShape,
        tokens: &[u32],
        logits: &mut Vec<f32>,
    ) -> Result<(), EvalError> {
        self.step(shape)?;
        let first = self.tokens.len();
        let valid = tokens.len();
        let vocab_len = self.vocab_len();
        let rope = &self.rope;
        let inputs = &mut self.inputs;
        let step = &self.steps[&shape];

        let padding = shape.n_tokens - valid;
        inputs.ids.clear();
        inputs.ids.extend(tokens.iter().map(|&id| id as i32));
        inputs.ids.extend(std::iter::repeat_n(0, padding));
        inputs.positions.clear();
        inputs
            .positions
            .extend((first..first + valid).map(|at| at as i32));
        inputs.positions.extend(std::iter::repeat_n(-1, padding));
        inputs
            .rope_table
            .resize(shape.n_tokens * rope.row_len(), 0.0);
        rope.fill_table(&inputs.positions, &mut inputs.rope_table);
        let last = valid as i32 - 1;
        let rows =
            (0..shape.n_outputs as i32).map(|row| if shape.n_outputs == 1 { last } else { row });
        inputs.rows.clear();
        inputs.rows.extend(rows);

        let graph = &step.graph;
        let ids = (graph.ids, HostSlice::i32(&inputs.ids));
        let positions = (graph.positions, HostSlice::i32(&inputs.positions));
        let table = (graph.rope_table, HostSlice::f32(&inputs.rope_table));
        let kv_len = [(first + valid) as i32];
        let Some(output) = graph.outputs else {
            step.plan.run(&[ids, positions, table], &kv_len)?;
            return Ok(());
        };
        let rows = (output.rows, HostSlice::i32(&inputs.rows));
        let outputs = step.plan.run(&[ids, positions, table, rows], &kv_len)?;
        let start = logits.len();
        logits.resize(start + shape.n_outputs * vocab_len, 0.0);
        outputs.read_f32(output.logits, &mut logits[start..])?;
        logits.truncate(start + valid.min(shape.n_outputs) * vocab_len);
        Ok(())
    }
}
