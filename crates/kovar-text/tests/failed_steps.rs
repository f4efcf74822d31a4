//! The context after a step that failed or was cancelled.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use common::{data, exact, load, max_difference};
use kovar_core::backend::Backend;
use kovar_formats::ModelFile;
use kovar_runtime::ObservedSegment;
use kovar_testkit::simulated::{Call, Fault, FaultKind, SimulatedDevice, SimulatedOptions};
use kovar_text::{EvalError, LogitsOf, Model, ModelOptions};

/// A model on a device of which launch `nth` fails.
fn failing(name: &str, nth: usize, deferred: bool) -> Model {
    let fault = Fault {
        call: Call::Launch,
        nth,
        kind: FaultKind::TimedOut,
    };
    let device = SimulatedDevice::new(SimulatedOptions {
        faults: vec![fault],
        deferred,
        ..SimulatedOptions::default()
    });
    let options = ModelOptions {
        context: Some(64),
        ..exact()
    };
    let file = ModelFile::open(data(name)).unwrap();
    Model::load(file, vec![Arc::new(device) as Arc<dyn Backend>], &options).unwrap()
}

/// The logits of the last of `tokens`.
fn expected(name: &str, tokens: &[u32]) -> Vec<f32> {
    let mut logits = Vec::new();
    let mut model = load(&data(name), &exact());
    model.eval(tokens, LogitsOf::Last, &mut logits).unwrap();
    logits
}

#[test]
fn no_tokens_of_steps_in_flight_are_in_the_context_if_one_fails() {
    // One step of 32 tokens without logits, one of 1 with them.
    let tokens: Vec<u32> = (0..33).map(|i| i * 5 % 61).collect();
    for name in ["llama-tiny", "rwkv7-tiny"] {
        let expected = expected(name, &tokens);
        for (nth, deferred) in [(0, false), (0, true), (1, false), (1, true)] {
            let mut model = failing(name, nth, deferred);
            let mut logits = Vec::new();
            let error = model.eval(&tokens, LogitsOf::Last, &mut logits);
            assert!(matches!(error, Err(EvalError::Run(_))), "{name}: {error:?}");
            assert!(model.tokens().is_empty(), "{name}");

            model.eval(&tokens, LogitsOf::Last, &mut logits).unwrap();
            let difference = max_difference(&expected, &logits);
            assert!(difference < 1e-3, "{name}, launch {nth}: {difference}");
        }
    }
}

#[test]
fn a_failed_step_goes_back_to_the_checkpoint_before_it() {
    let tokens: [u32; 8] = [5, 6, 7, 11, 2, 30, 9, 4];
    let expected = expected("rwkv7-tiny", &tokens);
    for deferred in [false, true] {
        let mut model = failing("rwkv7-tiny", 1, deferred);
        let mut logits = Vec::new();
        model
            .eval(&tokens[..4], LogitsOf::Last, &mut logits)
            .unwrap();
        model.checkpoint().unwrap();
        let error = model.eval(&tokens[4..], LogitsOf::Last, &mut logits);
        assert!(matches!(error, Err(EvalError::Run(_))), "{error:?}");
        assert_eq!(model.tokens(), &tokens[..4]);
        model
            .eval(&tokens[4..], LogitsOf::Last, &mut logits)
            .unwrap();
        let difference = max_difference(&expected, &logits);
        assert!(difference < 1e-3, "{difference}");
    }
}

#[test]
fn a_step_that_is_cancelled_goes_back_to_the_checkpoint_before_it() {
    let mut model = load(&data("rwkv7-tiny"), &exact());
    let (mut before, mut after) = (Vec::new(), Vec::new());
    model.eval(&[5, 6, 7], LogitsOf::Last, &mut before).unwrap();
    model.checkpoint().unwrap();
    let mut once = load(&data("rwkv7-tiny"), &exact());
    once.eval(&[5, 6, 7, 8], LogitsOf::Last, &mut before)
        .unwrap();

    let mut observer = |_: &ObservedSegment<'_>| ControlFlow::Break(());
    model.observe(&[8], &mut observer).unwrap_err();
    assert_eq!(model.tokens(), [5, 6, 7]);
    model.eval(&[8], LogitsOf::Last, &mut after).unwrap();
    assert!(max_difference(&before, &after) < 1e-3);
}
