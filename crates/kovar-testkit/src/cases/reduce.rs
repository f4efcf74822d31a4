//! Cases of sums and means over the last dimension.

use kovar_core::DType;
use kovar_core::ops::{Reduce, ReduceKind};

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Place, Target};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    ReduceKind::ALL.iter().copied().flat_map(of_kind).collect()
}

fn of_kind(kind: ReduceKind) -> Vec<Case> {
    let mut cases = Vec::new();
    for point in elementwise(&FLOATS).into_iter().chain(long_rows()) {
        if matches!(point.target, Target::InPlace(_)) {
            continue;
        }
        cases.push(case(kind, point, Place::Temp));
    }
    for dtype in FLOATS {
        for (dims, place) in [
            (vec![3, 1], Place::Weight),
            (vec![3, 1024], Place::Input),
            (vec![2, 1025], Place::State),
            (vec![1, 9001], Place::Temp),
            (vec![100, 7], Place::Temp),
            (vec![3, 0], Place::Temp),
            (vec![0, 3], Place::Temp),
        ] {
            let point = Point::dense(dtype, &dims).filled(Fill::Positive);
            cases.push(case(kind, point, place));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 3] = [&[1, 65536], &[512, 4096], &[65536, 32]];
    dims.into_iter()
        .map(|dims| case(ReduceKind::Sum, Point::dense(DType::F32, dims), Place::Temp))
        .collect()
}

fn case(kind: ReduceKind, point: Point, place: Place) -> Case {
    let labels = point.labels_in(place, point.sign());
    point.case("reduce", Reduce { kind }, place, labels)
}
