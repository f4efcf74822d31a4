//! Cases of `row_scales`.

use kovar_core::DType;
use kovar_core::ops::RowScales;

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Form, Place, Target};
use crate::synthetic::Fill;

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
                        cases.push(case(Point {
                            form,
                            target: Target::Into(into),
                            ..dense(dtype, &dims)
                        }));
                    }
                }
            }
        }
        cases.push(case(dense(dtype, &[3, 0])));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 4096], [512, 4096]]
        .into_iter()
        .map(|dims| case(dense(DType::F32, &dims)))
        .collect()
}

fn dense(dtype: DType, dims: &[usize]) -> Point {
    Point {
        dtype,
        dims: dims.to_vec(),
        form: Form::Contiguous,
        target: Target::Fresh,
        fill: Fill::Gaussian(1.0),
    }
}

fn case(point: Point) -> Case {
    Case::new("row_scales", "row_scales", point.labels(""), move |setup| {
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let x = setup.operand("x", Place::Temp, dtype, &dims, form, fill)?;
        setup.apply(RowScales, &[x], target)?;
        Ok(())
    })
}
