//! Cases of `argsort` and `top_k`.

use kovar_core::DType;
use kovar_core::ops::{Argsort, SortOrder};

use super::sweep::{Point, long_orders, ordered};
use super::{Case, Place};

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, point) in ordered().into_iter().enumerate() {
        let order = |descending: bool| {
            if descending {
                SortOrder::Descending
            } else {
                SortOrder::Ascending
            }
        };
        let n = point.last();
        let k = [1, n / 2, n, 8, 0][i % 5].min(n);
        cases.push(case(point.clone(), order(i % 2 == 0), None));
        cases.push(case(point, order(i % 3 != 0), Some(k)));
    }
    for (i, point) in long_orders().into_iter().enumerate() {
        let n = point.last();
        let k = [40, 1024, 1025, 1, n][i % 5];
        if n < 100_000 {
            cases.push(case(point.clone(), SortOrder::Ascending, None));
        }
        cases.push(case(point, SortOrder::Descending, Some(k)));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let shapes: [(&[usize], Option<usize>); 3] = [
        (&[512, 128], Some(8)),
        (&[1, 151_936], Some(64)),
        (&[64, 4096], None),
    ];
    shapes
        .into_iter()
        .map(|(dims, k)| case(Point::dense(DType::F32, dims), SortOrder::Descending, k))
        .collect()
}

fn case(point: Point, order: SortOrder, k: Option<usize>) -> Case {
    let op = Argsort { order, k };
    let k = k.map_or(String::new(), |k| format!(",k={k}"));
    let order = format!("{order:?}").to_lowercase();
    let labels = point.labels(&format!(",{order}{k}{}", point.kind_of_order()));
    point.case("argsort", op, Place::Temp, labels)
}
