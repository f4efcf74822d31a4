//! Cases of `scale`.

use kovar_core::DType;
use kovar_core::ops::Scale;

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Place};

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .map(|point| case(point, -1.7, Place::Temp))
        .collect();
    for (factor, place) in [
        (0.0, Place::Input),
        (1.0, Place::State),
        (-0.0001, Place::Weight),
        (3e-8, Place::Temp),
    ] {
        cases.push(case(Point::dense(DType::F32, &[3, 70]), factor, place));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[1, 4096], &[512, 4096]];
    dims.into_iter()
        .map(|dims| case(Point::dense(DType::F32, dims), 0.5, Place::Temp))
        .collect()
}

fn case(point: Point, scale: f32, place: Place) -> Case {
    let labels = point.labels(&format!(",scale={scale}"));
    point.case("scale", Scale { scale }, place, labels)
}
