//! Cases of `upscale`.

use kovar_core::DType;
use kovar_core::ops::{Upscale, UpscaleMode};

use super::images::sweep;
use super::sweep::Point;
use super::{Case, Place, sizes};

/// Images and sizes of results.
const SHAPES: [([usize; 4], [usize; 2]); 10] = [
    ([1, 3, 4, 5], [8, 10]),
    ([2, 2, 5, 7], [15, 21]),
    ([1, 2, 3, 4], [7, 9]),
    ([1, 2, 7, 9], [3, 4]),
    ([2, 1, 1, 1], [4, 3]),
    ([1, 3, 6, 5], [1, 1]),
    ([1, 2, 4, 6], [4, 6]),
    ([1, 1, 2, 700], [3, 1400]),
    ([1, 1, 5, 3], [1, 8]),
    ([0, 3, 4, 4], [8, 8]),
];

const MODES: [(UpscaleMode, &str); 3] = [
    (UpscaleMode::Nearest, "nearest"),
    (
        UpscaleMode::Bilinear {
            align_corners: false,
        },
        "bilinear",
    ),
    (
        UpscaleMode::Bilinear {
            align_corners: true,
        },
        "bilinear_corners",
    ),
];

pub(super) fn tests() -> Vec<Case> {
    sweep(&MODES, &SHAPES, case)
}

pub(super) fn perf() -> Vec<Case> {
    MODES
        .into_iter()
        .map(|mode| {
            case(
                Point::dense(DType::F32, &[1, 256, 64, 64]),
                mode,
                [128, 128],
            )
        })
        .collect()
}

fn case(image: Point, (mode, mode_name): (UpscaleMode, &str), size: [usize; 2]) -> Case {
    let labels = image.labels(&format!("to{},{mode_name}", sizes(&size)));
    image.case("upscale", Upscale { size, mode }, Place::Temp, labels)
}
