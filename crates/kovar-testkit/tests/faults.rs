//! The harness must notice a backend that is wrong, in whichever way.

mod planted;

use kovar_core::DType;
use kovar_core::Graph;
use kovar_core::error::DeviceError;
use kovar_core::ops::{Matmul, Precision};
use kovar_core::ops::{Scale, SetRows};
use kovar_testkit::cases::{Form, Place, Setup, Target};
use kovar_testkit::harness::{Failure, Outcome, run_setup};
use kovar_testkit::oracle::Activations;
use kovar_testkit::simulated::{Call, Fault, FaultKind, SimulatedDevice, SimulatedOptions};
use kovar_testkit::synthetic::Fill;

use planted::{Planted, PlantedFault};

/// `y = 2 x` of an input, into the given target.
fn scaled(target: Target) -> Setup {
    let mut setup = Setup::default();
    let fill = Fill::Gaussian(1.0);
    let x = setup.operand(
        "x",
        Place::Input,
        DType::F32,
        &[5, 7],
        Form::Contiguous,
        fill,
    );
    setup
        .apply(Scale { scale: 2.0 }, &[x.unwrap()], target)
        .unwrap();
    setup
}

fn failure(fault: PlantedFault, setup: &Setup) -> Failure {
    match run_setup(&Planted::new(fault), setup, "planted") {
        Err(failure) => failure,
        Ok(outcome) => panic!("{fault:?} was not noticed: {outcome:?}"),
    }
}

#[test]
fn a_right_backend_behind_the_wrapper_passes() {
    for target in [Target::Fresh, Target::Into(Form::Window)] {
        let outcome = run_setup(
            &Planted::new(PlantedFault::None),
            &scaled(target),
            "planted",
        );
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
fn a_byte_behind_the_storage_fails() {
    match failure(PlantedFault::WriteBehind, &scaled(Target::Fresh)) {
        Failure::GuardBand {
            storage,
            bytes: 140,
            position: 140,
            ..
        } => assert_eq!(storage, "y"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_byte_before_the_storage_fails() {
    match failure(PlantedFault::WriteBefore, &scaled(Target::Fresh)) {
        Failure::GuardBand {
            storage,
            position: -1,
            ..
        } => assert_eq!(storage, "y"),
        other => panic!("{other}"),
    }
}

#[test]
fn an_element_outside_of_the_window_fails() {
    let found = failure(
        PlantedFault::TouchFirstByte,
        &scaled(Target::Into(Form::Window)),
    );
    assert!(
        matches!(found, Failure::Untouched { position: 0, .. }),
        "{found}"
    );
}

#[test]
fn a_row_that_set_rows_must_leave_fails() {
    let mut setup = Setup::default();
    let fill = Fill::Gaussian(1.0);
    let x = setup.operand(
        "x",
        Place::Input,
        DType::F32,
        &[2, 9],
        Form::Contiguous,
        fill.clone(),
    );
    let into = setup.operand(
        "s",
        Place::State,
        DType::F16,
        &[4, 9],
        Form::Contiguous,
        fill,
    );
    let ids = setup
        .indices("ids", &[2], Form::Contiguous, vec![1, -1])
        .unwrap();
    let (x, into) = (x.unwrap(), into.unwrap());
    setup
        .graph
        .apply_into(SetRows.into(), &[x, ids], into)
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
    let product = |precision| {
        let mut setup = Setup::default();
        let fill = Fill::Gaussian(1.0);
        let form = Form::Contiguous;
        let w = setup.operand(
            "w",
            Place::Weight,
            DType::Q8_0,
            &[33, 96],
            form,
            fill.clone(),
        );
        let x = setup.operand("x", Place::Temp, DType::F32, &[5, 96], form, fill);
        let inputs = [w.unwrap(), x.unwrap()];
        setup
            .apply(Matmul { precision }, &inputs, Target::Fresh)
            .unwrap();
        setup
    };
    let planted = |setup: &Setup| {
        let fault = PlantedFault::AlwaysQuantize;
        run_setup(&Planted::new(fault), setup, "planted")
    };
    let default = planted(&product(Precision::Default));
    assert!(
        matches!(default, Ok(Outcome::Passed { nmse, .. }) if nmse > 1e-7),
        "{default:?}"
    );
    let exact = planted(&product(Precision::F32));
    assert!(matches!(exact, Err(Failure::Error { .. })), "{exact:?}");
}

#[test]
fn another_quantisation_of_activations_fails() {
    // Correct to 8 bits, but not with the codes that the core defines.
    let mut setup = Setup::default();
    let (fill, form) = (Fill::Gaussian(1.0), Form::Contiguous);
    let w = setup.operand(
        "w",
        Place::Weight,
        DType::Q8_0,
        &[33, 96],
        form,
        fill.clone(),
    );
    let x = setup.operand("x", Place::Temp, DType::F32, &[5, 96], form, fill);
    let inputs = [w.unwrap(), x.unwrap()];
    setup
        .apply(Matmul::default(), &inputs, Target::Fresh)
        .unwrap();
    match failure(PlantedFault::AddNoise, &setup) {
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
    let device = SimulatedDevice::new(SimulatedOptions {
        faults: vec![Fault {
            call: Call::Launch,
            nth: 1,
            kind: FaultKind::Lost,
        }],
        activations: Activations::Exact,
        ..SimulatedOptions::default()
    });
    let outcome = run_setup(&device, &scaled(Target::Fresh), "planted");
    assert!(
        matches!(outcome, Err(Failure::Device(DeviceError::Lost { .. }))),
        "{outcome:?}"
    );
}

#[test]
fn a_setup_without_nodes_passes_trivially() {
    let setup = Setup {
        graph: Graph::new(),
        ..Setup::default()
    };
    let outcome = run_setup(&SimulatedDevice::default(), &setup, "empty");
    assert_eq!(
        outcome,
        Ok(Outcome::Passed {
            nmse: 0.0,
            limit_share: 0.0
        })
    );
}
