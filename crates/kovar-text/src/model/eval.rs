//! Evaluating tokens, in steps that are queued one behind another.

use std::ops::ControlFlow;

use kovar_runtime::{ObservedSegment, RunError, forecast};

use super::brake::Brake;
use super::{Context, EvalError, LONGEST_PART, LogitsOf, Model, Step, StepError, is_too_large};
use crate::architecture::StepShape;
use crate::chunks::{LONGEST_STEP, next_long_step, next_step};

impl Model {
    /// Appends `tokens` to the context and replaces `logits` by the logits asked for, row by row,
    /// F32 `[rows, vocab_len]`. Long runs go through in steps of up to 512 tokens, or if weights are
    /// streamed and only the last token's logits are asked for, of up to 4096: then all tokens of
    /// a step go through a layer, 512 together, before they go through the next one, so that
    /// weights cross to their devices once a step. Nobody waits between steps that give no logits.
    ///
    /// # Errors
    /// See [`EvalError`]. If a step fails, the tokens of the steps up to the last one that gave logits
    /// are in the context; of a recurrent model those that [`truncate`](Self::truncate) can go back to.
    pub fn eval(
        &mut self,
        tokens: &[u32],
        logits_of: LogitsOf,
        logits: &mut Vec<f32>,
    ) -> Result<(), EvalError> {
        self.eval_steps(tokens, logits_of, logits, None)
    }

    /// [`eval`](Self::eval) that `go_on` may break off: it is asked before each step, and within steps
    /// of 128 tokens or more on one device, or of several parts, behind each layer of each part that
    /// is queued, of which no more than two are on their way.
    ///
    /// # Errors
    /// Those of [`eval`](Self::eval), and [`RunError::Cancelled`] if it was broken off. Then as many
    /// tokens are in the context as after another error of a step; broken off between two steps, those
    /// of the steps before.
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
        // Not in the context yet, of which those of the first `queued` are in steps on their way.
        let (mut rest, mut queued) = (tokens, 0);
        while !rest.is_empty() {
            let later = rest.get(queued..).unwrap_or_default();
            let shape = self.next_shape(later.len(), logits_of);
            let now = later.get(..shape.n_tokens).unwrap_or(later);
            let ahead = rest.get(..queued).unwrap_or_default();
            if queued == 0 {
                self.bring_states()?;
            }
            if go_on.as_mut().is_some_and(|go_on| go_on().is_break()) {
                return self.stop(ahead, RunError::Cancelled.into());
            }
            let mut step = match self.steps.remove(&shape) {
                Some(step) => step,
                None => match self.compile_in_short(shape) {
                    Ok(Some(step)) => step,
                    Ok(None) => continue,
                    Err(error) => return self.stop(ahead, error.into()),
                },
            };
            if step.graph.parts.len() > 1 {
                // There are as many kinds of long steps as lengths of texts.
                self.steps.retain(|_, kept| kept.graph.parts.len() == 1);
            }
            let first = self.tokens.len() + queued;
            let watched = step.graph.parts.len() > 1 || self.session.devices().len() == 1;
            let run = match go_on.as_mut().filter(|_| watched) {
                None => self.run(&mut step, (first, now), logits, None),
                Some(go_on) => {
                    let mut brake = Brake::new(*go_on);
                    let mut observer = |evaluated: &ObservedSegment<'_>| brake.check(evaluated);
                    let run = self.run(&mut step, (first, now), logits, Some(&mut observer));
                    brake.failure.map_or(run, Err)
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

    /// Compiles what the short steps for `remaining` tokens need: compiling waits for the devices, which
    /// are to have steps to work on all the time.
    fn compile_ahead(&mut self, remaining: usize, logits_of: LogitsOf) -> Result<(), EvalError> {
        let mut rest = remaining;
        while rest > 0 {
            let shape = self.next_shape(rest, logits_of);
            if shape.n_tokens <= LONGEST_PART && !self.steps.contains_key(&shape) {
                let step = self.compile(shape)?;
                self.steps.insert(shape, step);
            }
            rest = rest.saturating_sub(shape.n_tokens);
        }
        Ok(())
    }

    /// Ends an evaluation between two steps, the tokens `queued` being in steps on their way.
    fn stop(&mut self, queued: &[u32], error: EvalError) -> Result<(), EvalError> {
        if !queued.is_empty() {
            // What stopped it counts, unless what went before failed.
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

    /// Compiles a step; `None` if it has several parts for which there is no room, so that
    /// the tokens go in steps of one.
    fn compile_in_short(&mut self, shape: StepShape) -> Result<Option<Step>, StepError> {
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

    /// Whether the devices have room for a step of several parts.
    fn has_room(&self, shape: StepShape) -> Result<bool, StepError> {
        if shape.n_tokens <= LONGEST_PART || !self.session.homes().has_budgets() {
            return Ok(true);
        }
        let graph = self.graph(shape)?;
        let policy = self.policy_of(&graph, shape);
        let plan = forecast(&graph.graph, &self.session, &policy)?;
        Ok(!plan.is_spilled)
    }

    /// The tokens of the next step for `remaining` tokens of which the last one's logits are asked
    /// for.
    pub(super) fn next_step(&self, remaining: usize) -> usize {
        match self.long_steps {
            true => next_long_step(remaining),
            false => self.next_short_step(remaining),
        }
    }

    fn next_short_step(&self, remaining: usize) -> usize {
        next_step(remaining.min(self.micro_batch))
    }

    /// Tokens of a prompt that are best evaluated at once: in a long step, or over several devices
    /// in many short ones between which nobody waits.
    pub(crate) fn prompt_tokens(&self) -> usize {
        let in_micro_batches = self.session.devices().len() > 1 && self.micro_batch < LONGEST_PART;
        match self.long_steps || in_micro_batches {
            true => LONGEST_STEP,
            false => LONGEST_PART,
        }
    }
}
