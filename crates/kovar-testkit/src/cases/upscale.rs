//! Cases of `upscale`.

use kovar_core::DType;
use kovar_core::ops::{Upscale, UpscaleMode};

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

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
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for mode in MODES {
            for shape in SHAPES {
                let layout = (Form::Contiguous, Target::Fresh);
                cases.push(case(dtype, mode, shape, layout, Fill::Gaussian(1.0)));
            }
            for fill in [Fill::Small, Fill::large(dtype)] {
                let layout = (Form::Contiguous, Target::Fresh);
                cases.push(case(dtype, mode, SHAPES[1], layout, fill));
            }
            for form in Form::ALL {
                if form != Form::Contiguous {
                    let layout = (form, Target::Fresh);
                    cases.push(case(dtype, mode, SHAPES[1], layout, Fill::Gaussian(1.0)));
                }
                if !matches!(form, Form::Contiguous | Form::Repeated) {
                    let layout = (Form::Contiguous, Target::Into(form));
                    cases.push(case(dtype, mode, SHAPES[2], layout, Fill::Gaussian(1.0)));
                }
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let shape = ([1, 256, 64, 64], [128, 128]);
    let layout = (Form::Contiguous, Target::Fresh);
    MODES
        .into_iter()
        .map(|mode| case(DType::F32, mode, shape, layout, Fill::Gaussian(1.0)))
        .collect()
}

fn case(
    dtype: DType,
    (mode, mode_name): (UpscaleMode, &str),
    (image, size): ([usize; 4], [usize; 2]),
    (form, target): (Form, Target),
    fill: Fill,
) -> Case {
    let mut shape = format!("{}to{},{mode_name}", sizes(&image), sizes(&size));
    shape += match fill {
        Fill::Small => ",small",
        Fill::Large(_) => ",large",
        _ => "",
    };
    let layout = format!("{}-{}", form.name(), target.name());
    let labels = (lower(dtype), shape, layout);
    Case::new("upscale", "upscale", labels, move |setup| {
        let x = setup.operand("x", Place::Temp, dtype, &image, form, fill.clone())?;
        setup.apply(Upscale { size, mode }, &[x], target)?;
        Ok(())
    })
}
