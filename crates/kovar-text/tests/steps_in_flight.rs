//! Steps of a prompt that are queued without waiting: on several devices, failing, and cancelled.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use common::{cpu, data, exact, repository};
use kovar_core::backend::Backend;
use kovar_formats::ModelFile;
use kovar_runtime::{DeviceId, Homes, RunError};
use kovar_testkit::simulated::{
    Call, Event, Events, Fault, FaultKind, SimulatedDevice, SimulatedOptions, Stage,
};
use kovar_text::{
    EvalError, FinishReason, GenerateOptions, LogitsOf, Model, ModelOptions, Progress, Sampler,
    SamplerParams, Tokenizer, TokenizerSpec, generate,
};

const MODELS: [&str; 2] = ["llama-tiny", "rwkv7-tiny"];
/// Seven steps of eight tokens and one of four, the last.
const PROMPT: usize = 60;
const STEPS: usize = 8;

fn prompt() -> Vec<u32> {
    (0..PROMPT as u32).map(|i| i * 5 % 61).collect()
}

fn device(n: usize) -> DeviceId {
    DeviceId::all(2).nth(n).unwrap()
}

/// Simulated devices that run their work late, with one layer of the model each, and the events on
/// their queues.
fn model(name: &str, n_devices: usize, faults: &[(usize, Fault)]) -> (Model, Events) {
    let events = Events::new();
    let devices = ["one", "two"].into_iter().take(n_devices).enumerate();
    let devices = devices.map(|(at, id)| {
        let faults = faults.iter().filter(|(on, _)| *on == at);
        let device = SimulatedDevice::new(SimulatedOptions {
            id: id.to_owned(),
            deferred: true,
            events: Some(events.clone()),
            faults: faults.map(|(_, fault)| *fault).collect(),
            ..SimulatedOptions::default()
        });
        Arc::new(device) as Arc<dyn Backend>
    });
    let homes = match n_devices {
        1 => Homes::all_on(device(0)),
        _ => Homes::all_on(device(0))
            .pin("blk.1.*", device(1))
            .pin("blk.2.*", device(1))
            .pin("output*", device(1)),
    };
    let options = ModelOptions {
        context: Some(2 * PROMPT),
        homes,
        micro_batch: 8,
        ..exact()
    };
    let file = ModelFile::open(data(name)).unwrap();
    let model = Model::load(file, devices.collect(), &options).unwrap();
    (model, events)
}

/// The logits of the last of `tokens`.
fn evaluated(model: &mut Model, tokens: &[u32]) -> Vec<f32> {
    let mut logits = Vec::new();
    model.eval(tokens, LogitsOf::Last, &mut logits).unwrap();
    logits
}

/// The index of an event of the launch of a step.
fn launch(events: &[Event], device: &str, stage: Stage, step: usize) -> usize {
    let alike = |event: &Event| {
        event.device == device && event.call == Call::Launch && event.stage == stage
    };
    let found = events
        .iter()
        .position(|event| alike(event) && event.nth == step);
    found.unwrap()
}

#[test]
fn micro_batches_of_different_devices_overlap() {
    for name in MODELS {
        let (mut model, events) = model(name, 2, &[]);
        let found = evaluated(&mut model, &prompt());
        let events = events.all();
        for step in 0..STEPS - 1 {
            let next = launch(&events, "one", Stage::Queued, step + 1);
            let this = launch(&events, "two", Stage::Done, step);
            assert!(next < this, "{name}, step {step}");
        }
        let (mut alone, _) = self::model(name, 1, &[]);
        assert_eq!(found, evaluated(&mut alone, &prompt()), "{name}");
        assert_eq!(model.tokens(), prompt());
    }
}

#[test]
fn a_fault_between_micro_batches_leaves_the_context_as_it_was() {
    let prompt = prompt();
    let (before, tokens) = prompt.split_at(4);
    for name in MODELS {
        let (mut alone, _) = model(name, 1, &[]);
        evaluated(&mut alone, before);
        let expected = evaluated(&mut alone, tokens);
        for at in 0..2 {
            for nth in [0, 1, 3, 6] {
                let fault = Fault {
                    call: Call::Launch,
                    nth: nth + 1,
                    kind: FaultKind::TimedOut,
                };
                let (mut model, _) = model(name, 2, &[(at, fault)]);
                evaluated(&mut model, before);
                model.checkpoint().unwrap();
                let mut logits = Vec::new();
                let error = model.eval(tokens, LogitsOf::Last, &mut logits);
                assert!(matches!(error, Err(EvalError::Run(_))), "{error:?}");
                assert_eq!(model.tokens(), before, "{name}, launch {nth} of {at}");
                let again = evaluated(&mut model, tokens);
                assert_eq!(again, expected, "{name}, launch {nth} of {at}");
            }
        }
    }
}

/// A prompt of several micro-batches with streamed weights.
fn streamed(name: &str) -> (Model, Events) {
    let events = Events::new();
    let device = SimulatedDevice::new(SimulatedOptions {
        deferred: true,
        events: Some(events.clone()),
        ..SimulatedOptions::default()
    });
    let options = ModelOptions {
        context: Some(1024),
        homes: Homes::all_on(DeviceId::FIRST).stream("blk.*"),
        ..exact()
    };
    let file = ModelFile::open(data(name)).unwrap();
    let device = Arc::new(device) as Arc<dyn Backend>;
    (Model::load(file, vec![device], &options).unwrap(), events)
}

#[test]
fn a_streamed_prompt_is_cancelled_within_a_layer_of_a_micro_batch() {
    let tokens: Vec<u32> = (0..170).map(|i| i * 5 % 61).collect();
    for name in MODELS {
        let (mut model, events) = streamed(name);
        let count = |stage| {
            let events = events.all().into_iter();
            let launches = events.filter(|e| e.call == Call::Launch && e.stage == stage);
            launches.count()
        };
        let mut logits = Vec::new();
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            let ahead = count(Stage::Queued) - count(Stage::Done);
            assert!(ahead <= 2, "{ahead} segments in flight");
            match asked {
                4 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        let error = model.eval_while(&tokens, LogitsOf::Last, &mut logits, &mut go_on);
        let cancelled = matches!(error, Err(EvalError::Run(RunError::Cancelled)));
        assert!(cancelled, "{name}: {error:?}");
        // Called once before the step, then after each segment.
        assert_eq!(count(Stage::Queued), 3, "{name}");
        assert!(model.tokens().is_empty(), "{name}");
        let plan = model.plans().find(|plan| plan.graph().scalars().len() > 1);
        let segments = &plan.unwrap().schedule().segments;
        // Two layers of three micro-batches, and what comes before and after.
        assert!(segments.len() >= 6, "{name}: {}", segments.len());

        // Nothing of it is left, and the same plan then runs to the end.
        let mut go_on = || ControlFlow::Continue(());
        let done = model.eval_while(&tokens, LogitsOf::Last, &mut logits, &mut go_on);
        done.unwrap();
        let (mut other, _) = streamed(name);
        assert_eq!(logits, evaluated(&mut other, &tokens), "{name}");
    }
}

#[test]
fn the_caller_can_cancel_within_a_layer_of_the_prompt() {
    let path = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let file = ModelFile::open(path).unwrap();
    let spec = TokenizerSpec::from_metadata(file.metadata()).unwrap();
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    for streamed in [false, true] {
        let homes = Homes::all_on(DeviceId::FIRST);
        let options = ModelOptions {
            homes: if streamed {
                homes.stream("blk.*")
            } else {
                homes
            },
            ..ModelOptions::default()
        };
        let mut model = Model::load(file.clone(), cpu(), &options).unwrap();
        let mut sampler = Sampler::new(&SamplerParams::default()).unwrap();
        let prompt: Vec<u32> = (0..200).map(|i| i * 37 % 251).collect();
        let mut asked = 0;
        let mut on_progress = |progress: Progress<'_>| {
            assert_eq!(
                progress,
                Progress::Prompt {
                    done: 0,
                    total: 200
                }
            );
            asked += 1;
            match asked {
                5 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        let generated = generate(
            &mut model,
            &tokenizer,
            &mut sampler,
            &prompt,
            &GenerateOptions::default(),
            &mut on_progress,
        );
        let generated = generated.unwrap();
        assert_eq!(generated.finish, FinishReason::Cancelled);
        assert_eq!((generated.prompt_evaluated, asked), (0, 5));
        assert!(generated.tokens.is_empty() && model.tokens().is_empty());
    }
}

#[test]
fn a_prompt_that_is_cancelled_between_steps_keeps_those_before() {
    for name in MODELS {
        let (mut model, _) = model(name, 2, &[]);
        let mut logits = Vec::new();
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            match asked {
                4 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        let error = model.eval_while(&prompt(), LogitsOf::Last, &mut logits, &mut go_on);
        let cancelled = matches!(error, Err(EvalError::Run(RunError::Cancelled)));
        assert!(cancelled, "{name}: {error:?}");
        assert_eq!(model.tokens(), &prompt()[..24], "{name}");
        let found = evaluated(&mut model, &prompt()[24..]);
        let (mut alone, _) = self::model(name, 1, &[]);
        assert_eq!(found, evaluated(&mut alone, &prompt()), "{name}");
    }
}
