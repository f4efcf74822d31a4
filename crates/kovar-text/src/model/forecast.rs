//! The memory, plan and copies of a model, computed before anything is loaded.

use std::sync::Arc;

use kovar_core::Graph;
use kovar_core::backend::Backend;
use kovar_formats::ModelFile;
use kovar_runtime::{DeviceUsage, Forecast, Forecaster};

use super::{DECODE, LoadError, LogitsOf, Model, ModelOptions, StepError, is_too_large};
use crate::architecture::StepShape;

/// What a model requires of its devices.
#[derive(Clone, Debug)]
pub struct ModelForecast {
    /// The first step of the evaluation.
    pub shape: StepShape,
    /// Its graph.
    pub graph: Graph,
    /// Its plan.
    pub plan: Forecast,
    /// The memory of all steps together, by device, without the programs' own memory.
    pub held: Vec<DeviceUsage>,
    /// The lower bound of the activation memory of the steps, in bytes, by device.
    pub arena_lower_bounds: Vec<usize>,
    /// The estimated memory of the programs themselves, in bytes, by device.
    pub programs: Vec<usize>,
    /// The maximum number of output bytes that the host reads after a step.
    pub output_bytes: usize,
    /// Bytes copied between devices in the first step: if the context is empty before it, and if
    /// the context is full after it.
    pub copied_bytes: [usize; 2],
}

impl Model {
    /// What [`load`](Self::load) and an evaluation of `n_tokens` tokens would require of the
    /// devices: with the logits of the last token and, if `logit_rows` of the options is above 1,
    /// with the logits of that many tokens. Nothing is loaded.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn forecast(
        file: impl Into<ModelFile>,
        devices: Vec<Arc<dyn Backend>>,
        options: &ModelOptions,
        n_tokens: usize,
    ) -> Result<ModelForecast, LoadError> {
        let mut model = Self::unloaded(file.into(), devices, options)?;
        let n_tokens = n_tokens.max(1);
        if let Some(context) = model.context_len().filter(|&context| n_tokens > context) {
            return Err(LoadError::StepTokens {
                tokens: n_tokens,
                context,
            });
        }
        model.forecast_steps(n_tokens, options.logit_rows)
    }

    /// The forecast of the first step of `n_tokens` tokens, with the memory of all steps.
    fn forecast_steps(
        &mut self,
        n_tokens: usize,
        logit_rows: usize,
    ) -> Result<ModelForecast, LoadError> {
        let mut shapes = vec![DECODE];
        let mut add = |shape| {
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        };
        let mut rest = n_tokens;
        let mut first = None;
        while rest > 0 {
            let shape = self.next_shape(rest, LogitsOf::Last);
            first.get_or_insert(shape);
            add(shape);
            rest = rest.saturating_sub(shape.n_tokens);
        }
        let mut rest = if logit_rows > 1 {
            logit_rows.min(n_tokens)
        } else {
            0
        };
        while rest > 0 {
            let shape = self.next_shape(rest, LogitsOf::All);
            add(shape);
            rest = rest.saturating_sub(shape.n_tokens);
        }
        let first = first.unwrap_or(DECODE);
        let mut forecaster = Forecaster::new(&self.session).map_err(StepError::from)?;
        let mut found = None;
        let mut held = Vec::new();
        let mut arena_lower_bounds = vec![0; self.session.devices().len()];
        let mut programs = arena_lower_bounds.clone();
        let mut output_bytes = 0;
        for shape in shapes {
            let graph = self.graph(shape)?;
            let plan = match forecaster.add(&graph.graph, &self.policy_of(&graph, shape)) {
                Ok(plan) if !(plan.is_spilled && graph.micro_batches.len() > 1) => plan,
                Err(error) if graph.micro_batches.len() <= 1 || !is_too_large(&error) => {
                    return Err(StepError::from(error).into());
                }
                _ => {
                    self.long_steps = false;
                    return self.forecast_steps(n_tokens, logit_rows);
                }
            };
            held.clone_from(&plan.held);
            let bounds = arena_lower_bounds.iter_mut().zip(&mut programs);
            for ((bound, programs), memory) in bounds.zip(&plan.memory) {
                *bound = memory.arena_lower_bound.max(*bound);
                *programs = memory.programs.max(*programs);
            }
            let outputs = plan.memory.iter().map(|memory| memory.outputs).sum();
            output_bytes = output_bytes.max(outputs);
            if shape == first {
                found = Some((graph, plan));
            }
        }
        let (graph, plan) = found.ok_or(LoadError::StepTokens {
            tokens: n_tokens,
            context: 0,
        })?;
        let valid = n_tokens.min(first.n_tokens);
        let full = self.context_len().map_or(0, |context| context - valid);
        let copied_bytes = [0, full].map(|before| {
            let micro_batches = graph.micro_batches.iter();
            let scalars = micro_batches
                .map(|micro_batch| graph.tokens.scalar(micro_batch, before, valid) as i32);
            plan.schedule.copied_bytes(&scalars.collect::<Vec<i32>>())
        });
        Ok(ModelForecast {
            shape: first,
            graph: graph.graph,
            plan,
            held,
            arena_lower_bounds,
            programs,
            output_bytes,
            copied_bytes,
        })
    }
}
