//! Cases of `cumsum`.

use kovar_core::DType;
use kovar_core::ops::Cumsum;

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Place};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .map(|point| case(point, Place::Temp))
        .collect();
    for dtype in FLOATS {
        for (dims, place) in [
            (vec![3, 1024], Place::Weight),
            (vec![2, 1025], Place::Input),
            (vec![1, 20_001], Place::State),
            (vec![100, 7], Place::Temp),
        ] {
            let point = Point::dense(dtype, &dims).filled(Fill::Positive);
            cases.push(case(point, place));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[512, 4096], &[65536, 32]];
    dims.into_iter()
        .map(|dims| case(Point::dense(DType::F32, dims), Place::Temp))
        .collect()
}

fn case(point: Point, place: Place) -> Case {
    let labels = point.labels_in(place, point.sign());
    point.case("cumsum", Cumsum, place, labels)
}
