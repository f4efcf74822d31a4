//! Cases of elementwise operations on one operand.

use kovar_core::DType;
use kovar_core::ops::{Unary, UnaryKind};

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Form, Place, Target};
use crate::synthetic::Fill;

/// Numbers at the edges between the functions' branches.
const EDGES: [f64; 17] = [
    f64::NEG_INFINITY,
    -5.25,
    -1.0,
    -0.625,
    -1e-4,
    -0.0,
    0.0,
    1e-7,
    0.001,
    0.6249,
    0.625,
    1.0,
    4.0,
    12.5,
    80.0,
    f64::INFINITY,
    f64::NAN,
];

/// Angles in radians: close to multiples of pi / 2, where a remainder is small, and large ones.
const ANGLES: [f64; 10] = [
    std::f32::consts::FRAC_PI_4 as f64,
    -std::f32::consts::FRAC_PI_2 as f64,
    std::f32::consts::PI as f64,
    -std::f32::consts::TAU as f64,
    33.0,
    31_415.926,
    -16_777_216.0,
    5.0e9,
    -1.0e22,
    3.0e38,
];

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = UnaryKind::ALL.iter().copied().flat_map(of_kind).collect();
    for kind in [
        UnaryKind::LeakyRelu { slope: -1.5 },
        UnaryKind::LeakyRelu { slope: 0.0 },
        UnaryKind::Clamp {
            min: f32::NEG_INFINITY,
            max: 0.0,
        },
        UnaryKind::Clamp { min: 1.0, max: 1.0 },
    ] {
        for dtype in FLOATS {
            let (form, target) = (Form::Gaps, Target::InPlace(0));
            let point = Point::dense(dtype, &[5, 37]).laid(form, target);
            cases.push(case(kind, point, Place::Temp));
        }
    }
    cases
}

fn of_kind(kind: UnaryKind) -> Vec<Case> {
    let mut cases = Vec::new();
    for mut point in elementwise(&FLOATS) {
        if matches!(point.fill, Fill::Large(_)) && point.dtype == DType::F16 {
            // Powers of 200 leave the range of F16.
            point.fill = Fill::Large(if kind == UnaryKind::Exp { 9.0 } else { 200.0 });
        }
        let takes_positive = matches!(kind, UnaryKind::Sqrt | UnaryKind::Log);
        if takes_positive && matches!(point.fill, Fill::Gaussian(_)) {
            point.fill = Fill::Positive;
        }
        cases.push(case(kind, point, Place::Temp));
    }
    for (place, form) in [
        (Place::Weight, Form::Contiguous),
        (Place::Input, Form::Transposed),
        (Place::State, Form::Window),
    ] {
        let point = Point::dense(DType::F32, &[3, 70]).laid(form, Target::Fresh);
        cases.push(case(kind, point, place));
    }
    let wide = Point::dense(DType::F32, &[7, 1030]).filled(Fill::Gaussian(6.0));
    let wide = wide.laid(Form::Contiguous, Target::InPlace(0));
    cases.push(case(kind, wide, Place::Temp));
    let angles: &[f64] = match kind {
        UnaryKind::Sin | UnaryKind::Cos => &ANGLES,
        _ => &[],
    };
    // Each edge in a tensor of its own, so that no other element hides its error.
    for &edge in EDGES.iter().chain(angles) {
        let point = Point::dense(DType::F32, &[1]).filled(Fill::Values(vec![edge]));
        cases.push(case(kind, point, Place::Temp));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let mut cases = Vec::new();
    for &kind in UnaryKind::ALL {
        // Not in place, where run after run would end in denormals or infinities.
        let point = Point::dense(DType::F32, &[512, 4096]);
        cases.push(case(kind, point, Place::Temp));
    }
    cases
}

fn case(kind: UnaryKind, point: Point, place: Place) -> Case {
    let attributes = match kind {
        UnaryKind::LeakyRelu { slope } => format!(",slope={slope}"),
        UnaryKind::Clamp { min, max } => format!(",min={min},max={max}"),
        _ => String::new(),
    };
    let fill = match &point.fill {
        Fill::Values(values) => format!(",x={values:?}"),
        Fill::Gaussian(6.0) => ",wide".to_owned(),
        _ => String::new(),
    };
    let labels = point.labels_in(place, &format!("{attributes}{fill}"));
    point.case("unary", Unary { kind }, place, labels)
}
