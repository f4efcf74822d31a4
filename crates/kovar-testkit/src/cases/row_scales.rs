//! Cases of `row_scales`.

use kovar_core::DType;
use kovar_core::ops::RowScales;

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Form, Place, Target};

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .filter(|point| point.target == Target::Fresh)
        .map(case)
        .collect();
    for dtype in FLOATS {
        for dims in [vec![3, 5, 33], vec![2, 3, 4, 17], vec![7, 1030]] {
            for into in [Form::Offset, Form::Gaps, Form::Window, Form::Transposed] {
                for form in [Form::Contiguous, Form::Window] {
                    if into.applies(DType::F32, dims.len() - 1) {
                        let point = Point::dense(dtype, &dims);
                        cases.push(case(point.laid(form, Target::Into(into))));
                    }
                }
            }
        }
        cases.push(case(Point::dense(dtype, &[3, 0])));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 4096], [512, 4096]]
        .into_iter()
        .map(|dims| case(Point::dense(DType::F32, &dims)))
        .collect()
}

fn case(point: Point) -> Case {
    let labels = point.labels("");
    point.case("row_scales", RowScales, Place::Temp, labels)
}
