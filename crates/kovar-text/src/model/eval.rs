//! Evaluation of tokens, in steps that are queued one after another.

use std::ops::ControlFlow;

use kovar_runtime::{ObservedSegment, RunError, forecast};

use super::cancellation::Cancellation;
use super::{
    Context, EvalError, LONGEST_MICRO_BATCH, LogitsOf, Model, Step, StepError, is_too_large,
};
use crate::architecture::StepShape;
use crate::chunks::{LONGEST_STEP, next_long_step, next_step};

impl Model {
    /// Appends `tokens` to the context and replaces `logits` by the requested logits, row by row,
    /// F32 `[rows, vocab_len]`. Long inputs are evaluated in steps of up to 512 tokens. If weights
    /// are streamed and only the last token's logits are requested, steps have up to 4096 tokens:
    /// all tokens of a step go through a layer, 512 at a time, before the next layer, so that
    /// weights are uploaded once per step. Steps without logits are queued without waiting.
    ///
    /// # Errors
    /// See [`EvalError`]. If a step fails, the context holds the tokens of the steps up to the last
    /// one with logits; for a recurrent model, only those to which [`truncate`](Self::truncate) can
    /// return.
    pub fn eval(
        &mut self,
        tokens: &[u32],
        logits_of: LogitsOf,
        logits: &mut Vec<f32>,
    ) -> Result<(), EvalError> {
        self.eval_steps(tokens, logits_of, logits, None)
    }

    /// [`eval`](Self::eval) that `go_on` may cancel. It is called before each step. In steps of 128
    /// tokens or more on one device, and in steps of several micro-batches, it is also called after
    /// each queued layer of each micro-batch, of which at most two are in flight.
    ///
    /// # Errors
    /// Those of [`eval`](Self::eval), and [`RunError::Cancelled`] if it was cancelled. The context
    /// is then the same as after a failed step; if it was cancelled between two steps, it holds the
    /// tokens of the earlier steps.
    pub fn eval_while(
        &mut self,
        tokens: &[u32],
        logits_of: LogitsOf,
        logits: &mut Vec<f32>,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), EvalError> {
        self.eval_steps(tokens, logits_of, logits, Some(go_on))
    }

    fn eval_steps(
        &mut self,
        tokens: &[u32],
        logits_of: LogitsOf,
        logits: &mut Vec<f32>,
        mut go_on: Option<&mut (dyn FnMut() -> ControlFlow<()> + '_)>,
    ) -> Result<(), EvalError> {
        self.check(tokens)?;
        logits.clear();
        self.compile_ahead(tokens.len(), logits_of)?;
        // `rest` is not in the context yet; its first `queued` tokens are in steps in flight.
        let (mut rest, mut queued) = (tokens, 0);
        while !rest.is_empty() {
            let later = rest.get(queued..).unwrap_or_default();
            let shape = self.next_shape(later.len(), logits_of);
            let now = later.get(..shape.n_tokens).unwrap_or(later);
            let ahead = rest.get(..queued).unwrap_or_default();
            if queued == 0 {
                self.sync_states()?;
            }
            if go_on.as_mut().is_some_and(|go_on| go_on().is_break()) {
                return self.stop(ahead, RunError::Cancelled.into());
            }
            let mut step = match self.steps.remove(&shape) {
                Some(step) => step,
                None => match self.compile_or_shorten(shape) {
                    Ok(Some(step)) => step,
                    Ok(None) => continue,
                    Err(error) => return self.stop(ahead, error.into()),
                },
            };
            if step.graph.micro_batches.len() > 1 {
                // Almost every text length has its own long step, so only one is kept.
                self.steps
                    .retain(|_, kept| kept.graph.micro_batches.len() == 1);
            }
            let first = self.tokens.len() + queued;
            let watched = step.graph.micro_batches.len() > 1 || self.session.devices().len() == 1;
            let run = match go_on.as_mut().filter(|_| watched) {
                None => self.run(&mut step, (first, now), logits, None),
                Some(go_on) => {
                    let mut cancellation = Cancellation::new(*go_on);
                    let mut observer =
                        |evaluated: &ObservedSegment<'_>| cancellation.check(evaluated);
                    let run = self.run(&mut step, (first, now), logits, Some(&mut observer));
                    cancellation.failure.map_or(run, Err)
                }
            };
            self.steps.insert(shape, step);
            queued += now.len();
            if run.is_err() || shape.n_outputs > 0 {
                let (done, left) = rest.split_at(queued);
                self.finish(done, run)?;
                (rest, queued) = (left, 0);
            } else if let Context::States { held, .. } = &mut self.context {
                *held = None;
            }
        }
        Ok(())
    }

    /// Compiles the short steps for `remaining` tokens in advance: compiling waits for the devices,
    /// which should always have queued work.
    fn compile_ahead(&mut self, remaining: usize, logits_of: LogitsOf) -> Result<(), EvalError> {
        let mut rest = remaining;
        while rest > 0 {
            let shape = self.next_shape(rest, logits_of);
            if shape.n_tokens <= LONGEST_MICRO_BATCH && !self.steps.contains_key(&shape) {
                let step = self.compile(shape)?;
                self.steps.insert(shape, step);
            }
            rest = rest.saturating_sub(shape.n_tokens);
        }
        Ok(())
    }

    /// Ends an evaluation between two steps, while the tokens `queued` are in steps in flight.
    fn stop(&mut self, queued: &[u32], error: EvalError) -> Result<(), EvalError> {
        if !queued.is_empty() {
            // An error of the queued steps takes precedence over `error`.
            self.finish(queued, self.session.wait().map_err(EvalError::from))?;
        }
        Err(error)
    }

    /// The next step for `remaining` tokens.
    pub(super) fn next_shape(&self, remaining: usize, logits_of: LogitsOf) -> StepShape {
        let n_tokens = match logits_of {
            LogitsOf::Last => self.next_step(remaining),
            LogitsOf::All => next_step(remaining.min(self.logit_rows)),
        };
        let n_outputs = match logits_of {
            LogitsOf::All => n_tokens,
            LogitsOf::Last if n_tokens >= remaining => 1,
            LogitsOf::Last => 0,
        };
        StepShape {
            n_tokens,
            n_outputs,
        }
    }

    /// Compiles a step. `None` if it has several micro-batches and does not fit into memory; from
    /// then on, steps have one micro-batch.
    fn compile_or_shorten(&mut self, shape: StepShape) -> Result<Option<Step>, StepError> {
        let error = match self.has_room(shape) {
            Ok(true) => match self.compile(shape) {
                Err(StepError::Compile(error)) if is_too_large(&error) => error,
                compiled => return compiled.map(Some),
            },
            Ok(false) => {
                tracing::debug!("steps of at most 512 tokens: a device is over its budget");
                self.long_steps = false;
                return Ok(None);
            }
            Err(StepError::Compile(error)) => error,
            Err(error) => return Err(error),
        };
        if !self.long_steps || shape.n_tokens <= self.micro_batch || !is_too_large(&error) {
            return Err(error.into());
        }
        tracing::debug!("steps of at most 512 tokens: {error}");
        self.long_steps = false;
        Ok(None)
    }

    /// Whether a step of several micro-batches fits into the budgets of the devices.
    fn has_room(&self, shape: StepShape) -> Result<bool, StepError> {
        if shape.n_tokens <= LONGEST_MICRO_BATCH || !self.session.homes().has_budgets() {
            return Ok(true);
        }
        let graph = self.graph(shape)?;
        let policy = self.policy_of(&graph, shape);
        let plan = forecast(&graph.graph, &self.session, &policy)?;
        Ok(!plan.is_spilled)
    }

    /// The size of the next step for `remaining` tokens of which the logits of the last are
    /// requested.
    pub(super) fn next_step(&self, remaining: usize) -> usize {
        if self.long_steps {
            next_long_step(remaining)
        } else {
            next_step(remaining.min(self.micro_batch))
        }
    }

    /// The number of tokens of a prompt to evaluate in one call: one long step, or many short steps
    /// that are queued without waiting on several devices.
    pub(crate) fn prompt_tokens(&self) -> usize {
        let in_micro_batches =
            self.session.devices().len() > 1 && self.micro_batch < LONGEST_MICRO_BATCH;
        if self.long_steps || in_micro_batches {
            LONGEST_STEP
        } else {
            LONGEST_MICRO_BATCH
        }
    }
}
