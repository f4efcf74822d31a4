//! Cases of `argmax`.

use kovar_core::DType;
use kovar_core::ops::Argmax;

use super::sweep::{Point, long_orders, ordered};
use super::{Case, Place, Target};

pub(super) fn tests() -> Vec<Case> {
    let points = ordered().into_iter().chain(long_orders());
    points
        .filter(|point| point.last() > 0)
        .filter(|point| match point.target {
            Target::Into(form) => form.applies(DType::I32, point.dims.len() - 1),
            _ => true,
        })
        .map(case)
        .collect()
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[1, 151_936], &[512, 32_000]];
    dims.into_iter()
        .map(|dims| case(Point::dense(DType::F32, dims)))
        .collect()
}

fn case(point: Point) -> Case {
    let labels = point.labels(point.kind_of_order());
    point.case("argmax", Argmax, Place::Temp, labels)
}
