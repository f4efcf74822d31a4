//! Cases of `repeat`.

use kovar_core::ops::Repeat;
use kovar_core::{DType, Dims};

use super::sweep::{Point, moved, moving};
use super::{Case, Place, plain};

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, point) in moving(&plain()).into_iter().enumerate() {
        let repeated = i % point.dims.len();
        let counts = (0..point.dims.len()).map(|at| if at == repeated { 3 } else { 1 + i % 2 });
        let counts = counts.collect();
        cases.push(case(point, counts, Place::Temp));
    }
    for dtype in plain() {
        for (dims, counts) in [
            (vec![], vec![]),
            (vec![1], vec![1000]),
            (vec![7, 1], vec![1, 33]),
            (vec![1, 7], vec![33, 1]),
            (vec![3, 1, 5], vec![2, 4, 1]),
            (vec![3, 4, 5], vec![1, 1, 1]),
            (vec![3, 4], vec![0, 2]),
            (vec![2, 1, 2, 1, 2, 1], vec![1, 2, 3, 1, 2, 3]),
            (vec![2, 300], vec![20, 7]),
        ] {
            for place in [Place::Weight, Place::Input] {
                cases.push(case(moved(dtype, &dims), counts.clone(), place));
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [
        (vec![1, 4096], vec![512, 1]),
        (vec![4096, 1], vec![1, 512]),
        (vec![8, 64, 64], vec![2, 4, 2]),
    ]
    .into_iter()
    .map(|(dims, counts)| case(moved(DType::F32, &dims), counts, Place::Temp))
    .collect()
}

fn case(point: Point, counts: Vec<usize>, place: Place) -> Case {
    let list = format!("{counts:?}").replace(' ', "");
    let labels = point.labels_in(place, &format!(",counts={list}"));
    let counts = Dims::new(&counts).unwrap_or_default();
    point.case("repeat", Repeat { counts }, place, labels)
}
