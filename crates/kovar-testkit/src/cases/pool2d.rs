//! Cases of `pool2d`.

use kovar_core::DType;
use kovar_core::ops::{Pool2d, PoolKind};

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

/// An image, a kernel, a stride and a padding.
type Shape = ([usize; 4], [usize; 2], [usize; 2], [usize; 2]);

const SHAPES: [Shape; 9] = [
    ([1, 3, 8, 8], [2, 2], [2, 2], [0, 0]),
    ([2, 2, 9, 13], [3, 3], [2, 2], [1, 1]),
    ([2, 3, 7, 5], [3, 2], [1, 1], [1, 0]),
    ([1, 2, 5, 40], [1, 4], [1, 3], [0, 2]),
    ([1, 2, 11, 6], [5, 3], [3, 1], [2, 1]),
    ([1, 1, 2, 3], [2, 3], [1, 1], [0, 0]),
    ([1, 4, 1, 1], [3, 3], [1, 1], [1, 1]),
    ([1, 1, 3, 1030], [2, 2], [1, 1], [1, 1]),
    ([2, 0, 4, 4], [2, 2], [2, 2], [0, 0]),
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
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for kind in KINDS {
            for shape in SHAPES {
                let layout = (Form::Contiguous, Target::Fresh);
                cases.push(case(dtype, kind, shape, layout, Fill::Gaussian(1.0)));
            }
            for fill in [Fill::Small, Fill::large(dtype)] {
                let layout = (Form::Contiguous, Target::Fresh);
                cases.push(case(dtype, kind, SHAPES[1], layout, fill));
            }
            for form in Form::ALL {
                if form != Form::Contiguous {
                    let layout = (form, Target::Fresh);
                    cases.push(case(dtype, kind, SHAPES[2], layout, Fill::Gaussian(1.0)));
                }
                if !matches!(form, Form::Contiguous | Form::Repeated) {
                    let layout = (Form::Contiguous, Target::Into(form));
                    cases.push(case(dtype, kind, SHAPES[1], layout, Fill::Gaussian(1.0)));
                }
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let shape = ([1, 256, 64, 64], [2, 2], [2, 2], [0, 0]);
    let layout = (Form::Contiguous, Target::Fresh);
    KINDS
        .into_iter()
        .map(|kind| case(DType::F32, kind, shape, layout, Fill::Gaussian(1.0)))
        .collect()
}

fn case(
    dtype: DType,
    (kind, kind_name): (PoolKind, &str),
    (image, kernel, stride, padding): Shape,
    (form, target): (Form, Target),
    fill: Fill,
) -> Case {
    let mut shape = format!(
        "{},{kind_name},k={},s={},p={}",
        sizes(&image),
        sizes(&kernel),
        sizes(&stride),
        sizes(&padding)
    );
    shape += match fill {
        Fill::Small => ",small",
        Fill::Large(_) => ",large",
        _ => "",
    };
    let layout = format!("{}-{}", form.name(), target.name());
    let labels = (lower(dtype), shape, layout);
    Case::new("pool2d", "pool2d", labels, move |setup| {
        let x = setup.operand("x", Place::Temp, dtype, &image, form, fill.clone())?;
        let op = Pool2d {
            kind,
            kernel,
            stride,
            padding,
        };
        setup.apply(op, &[x], target)?;
        Ok(())
    })
}
