//! The harness must notice every way in which a backend can be wrong.

mod planted;

use kovar_core::error::DeviceError;
use kovar_core::ops::{Matmul, Precision, Scale, SetRows};
use kovar_core::{DType, ValueId};
use kovar_testkit::cases::{Form, Place, Setup, Target};
use kovar_testkit::harness::{Failure, Outcome, run_setup};
use kovar_testkit::simulated::{Call, FaultKind, SimulatedDevice, SimulatedOptions};
use kovar_testkit::synthetic::Fill;

use planted::{PlantedFault, planted};

fn operand(setup: &mut Setup, name: &str, place: Place, dtype: DType, dims: &[usize]) -> ValueId {
    let fill = Fill::Gaussian(1.0);
    let operand = setup.operand(name, place, dtype, dims, Form::Contiguous, fill);
    operand.unwrap()
}

/// `y = 2 x` of an input, into the given target.
fn scaled(target: Target) -> Setup {
    let mut setup = Setup::default();
    let x = operand(&mut setup, "x", Place::Input, DType::F32, &[5, 7]);
    setup.apply(Scale { scale: 2.0 }, &[x], target).unwrap();
    setup
}

/// `y = w x` with a quantised weight.
fn product(precision: Precision) -> Setup {
    let mut setup = Setup::default();
    let w = operand(&mut setup, "w", Place::Weight, DType::Q8_0, &[33, 96]);
    let x = operand(&mut setup, "x", Place::Temp, DType::F32, &[5, 96]);
    let product = Matmul { precision };
    setup.apply(product, &[w, x], Target::Fresh).unwrap();
    setup
}

fn run(fault: PlantedFault, setup: &Setup) -> Result<Outcome, Failure> {
    run_setup(&planted(fault), setup, "planted")
}

fn failure(fault: PlantedFault, setup: &Setup) -> Failure {
    match run(fault, setup) {
        Err(failure) => failure,
        Ok(outcome) => panic!("{fault:?} was not noticed: {outcome:?}"),
    }
}

#[test]
fn a_device_that_spoils_nothing_passes() {
    for target in [Target::Fresh, Target::Into(Form::Window)] {
        let outcome = run(PlantedFault::None, &scaled(target));
        assert!(
            matches!(outcome, Ok(Outcome::Passed { nmse, .. }) if nmse == 0.0),
            "{outcome:?}"
        );
    }
}

#[test]
fn one_wrong_element_fails_and_is_named() {
    match failure(PlantedFault::WrongElement, &scaled(Target::Fresh)) {
        Failure::Error { comparison, .. } => assert_eq!(comparison.worst_absolute.index, [0, 1]),
        other => panic!("{other}"),
    }
}

#[test]
fn a_byte_next_to_the_storage_fails() {
    for (fault, at) in [
        (PlantedFault::WriteAfter, 140),
        (PlantedFault::WriteBefore, -1),
    ] {
        let found = failure(fault, &scaled(Target::Fresh));
        let Failure::GuardBand {
            storage,
            bytes,
            position,
            ..
        } = found
        else {
            panic!("{found}");
        };
        assert_eq!((storage.as_str(), bytes, position), ("y", 140, at));
    }
}

#[test]
fn an_element_outside_of_the_window_fails() {
    let setup = scaled(Target::Into(Form::Window));
    let found = failure(PlantedFault::TouchFirstByte, &setup);
    assert!(
        matches!(found, Failure::Untouched { position: 0, .. }),
        "{found}"
    );
}

#[test]
fn a_row_that_set_rows_must_leave_fails() {
    let mut setup = Setup::default();
    let x = operand(&mut setup, "x", Place::Input, DType::F32, &[2, 9]);
    let into = operand(&mut setup, "s", Place::State, DType::F16, &[4, 9]);
    let ids = setup.indices("ids", &[2], Form::Contiguous, vec![1, -1]);
    let operands = [x, ids.unwrap()];
    setup
        .graph
        .apply_into(SetRows.into(), &operands, into)
        .unwrap();
    let found = failure(PlantedFault::TouchFirstByte, &setup);
    assert!(
        matches!(found, Failure::Untouched { position: 0, .. }),
        "{found}"
    );
}

#[test]
fn an_element_left_unwritten_fails() {
    for target in [Target::Fresh, Target::Into(Form::Gaps)] {
        let found = failure(PlantedFault::LeaveElement, &scaled(target));
        assert!(matches!(found, Failure::Error { .. }), "{found}");
    }
}

#[test]
fn a_launch_that_does_nothing_fails() {
    let found = failure(PlantedFault::DoNothing, &scaled(Target::Fresh));
    assert!(matches!(found, Failure::Error { .. }), "{found}");
}

#[test]
fn a_changed_input_fails() {
    match failure(PlantedFault::ChangeInput, &scaled(Target::Fresh)) {
        Failure::InputChanged { storage, .. } => assert_eq!(storage, "x"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_second_run_that_differs_by_one_bit_fails() {
    let found = failure(PlantedFault::DifferOnReplay, &scaled(Target::Fresh));
    assert!(matches!(found, Failure::Replay { .. }), "{found}");
}

#[test]
fn quantised_activations_fail_where_f32_is_asked_for() {
    let default = run(PlantedFault::AlwaysQuantize, &product(Precision::Default));
    assert!(
        matches!(default, Ok(Outcome::Passed { nmse, .. }) if nmse > 1e-7),
        "{default:?}"
    );
    let exact = run(PlantedFault::AlwaysQuantize, &product(Precision::F32));
    assert!(matches!(exact, Err(Failure::Error { .. })), "{exact:?}");
}

#[test]
fn another_quantisation_of_activations_fails() {
    // Correct to 8 bits, but not with the codes that the core defines.
    match failure(PlantedFault::AddNoise, &product(Precision::Default)) {
        Failure::Error {
            comparison,
            same_activations,
            ..
        } => {
            assert!(comparison.nmse < 5e-4, "{comparison:?}");
            assert!(same_activations.is_some_and(|nmse| nmse > 1e-7));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn an_error_of_the_device_is_the_cases_failure() {
    let options = SimulatedOptions::default().failing(Call::Launch, 1, FaultKind::Lost);
    let device = SimulatedDevice::new(options);
    let outcome = run_setup(&device, &scaled(Target::Fresh), "planted");
    assert!(
        matches!(outcome, Err(Failure::Device(DeviceError::Lost { .. }))),
        "{outcome:?}"
    );
}

#[test]
fn a_setup_without_nodes_passes_trivially() {
    let outcome = run_setup(&SimulatedDevice::default(), &Setup::default(), "empty");
    assert_eq!(
        outcome,
        Ok(Outcome::Passed {
            nmse: 0.0,
            limit_share: 0.0
        })
    );
}
