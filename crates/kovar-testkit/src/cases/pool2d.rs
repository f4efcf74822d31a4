//! Cases of `pool2d`.

use kovar_core::DType;
use kovar_core::ops::{Pool2d, PoolKind};

use super::images::sweep;
use super::sweep::Point;
use super::{Case, Place, sizes};

/// A kernel, a stride and a padding.
type Window = [[usize; 2]; 3];

/// Images and windows.
const SHAPES: [([usize; 4], Window); 9] = [
    ([1, 3, 8, 8], [[2, 2], [2, 2], [0, 0]]),
    ([2, 2, 9, 13], [[3, 3], [2, 2], [1, 1]]),
    ([2, 3, 7, 5], [[3, 2], [1, 1], [1, 0]]),
    ([1, 2, 5, 40], [[1, 4], [1, 3], [0, 2]]),
    ([1, 2, 11, 6], [[5, 3], [3, 1], [2, 1]]),
    ([1, 1, 2, 3], [[2, 3], [1, 1], [0, 0]]),
    ([1, 4, 1, 1], [[3, 3], [1, 1], [1, 1]]),
    ([1, 1, 3, 1030], [[2, 2], [1, 1], [1, 1]]),
    ([2, 0, 4, 4], [[2, 2], [2, 2], [0, 0]]),
];

const KINDS: [(PoolKind, &str); 3] = [
    (PoolKind::Max, "max"),
    (
        PoolKind::Average {
            count_include_pad: true,
        },
        "average_with_pad",
    ),
    (
        PoolKind::Average {
            count_include_pad: false,
        },
        "average",
    ),
];

pub(super) fn tests() -> Vec<Case> {
    sweep(&KINDS, &SHAPES, case)
}

pub(super) fn perf() -> Vec<Case> {
    let window = [[2, 2], [2, 2], [0, 0]];
    KINDS
        .into_iter()
        .map(|kind| case(Point::dense(DType::F32, &[1, 256, 64, 64]), kind, window))
        .collect()
}

fn case(image: Point, (kind, kind_name): (PoolKind, &str), window: Window) -> Case {
    let [kernel, stride, padding] = window;
    let [k, s, p] = window.map(|size| sizes(&size));
    let labels = image.labels(&format!(",{kind_name},k={k},s={s},p={p}"));
    let op = Pool2d {
        kind,
        kernel,
        stride,
        padding,
    };
    image.case("pool2d", op, Place::Temp, labels)
}
