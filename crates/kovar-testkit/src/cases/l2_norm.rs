//! Cases of `l2_norm`.

use kovar_core::DType;
use kovar_core::ops::L2Norm;

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Place};

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .map(|point| case(point, 1e-12))
        .collect();
    // The last eps is longer than any row.
    for eps in [1e-6, 1.0, 1e6] {
        cases.push(case(Point::dense(DType::F32, &[4, 576]), eps));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[1, 32, 64], &[512, 32, 64]];
    dims.into_iter()
        .map(|dims| case(Point::dense(DType::F32, dims), 1e-12))
        .collect()
}

fn case(point: Point, eps: f32) -> Case {
    let labels = point.labels(&format!(",eps={eps:e}"));
    point.case("l2_norm", L2Norm { eps }, Place::Temp, labels)
}
