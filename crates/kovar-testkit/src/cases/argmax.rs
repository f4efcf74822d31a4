//! Cases of `argmax`.

use kovar_core::DType;
use kovar_core::ops::Argmax;

use super::sweep::{Point, long_orders, ordered};
use super::{Case, Form, Place, Target};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    let points = ordered().into_iter().chain(long_orders());
    points
        .filter(|point| point.last() > 0)
        .filter(|point| match point.target {
            Target::Into(form) => form.applies(DType::I32, point.dims.len() - 1),
            _ => true,
        })
        .map(|point| case(point, Place::Temp))
        .collect()
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[1, 151_936], &[512, 32_000]];
    dims.into_iter()
        .map(|dims| {
            let point = Point {
                dtype: DType::F32,
                dims: dims.to_vec(),
                form: Form::Contiguous,
                target: Target::Fresh,
                fill: Fill::Gaussian(1.0),
            };
            case(point, Place::Temp)
        })
        .collect()
}

fn case(point: Point, place: Place) -> Case {
    let labels = point.labels(point.kind_of_order());
    Case::new("argmax", "argmax", labels, move |setup| {
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let x = setup.operand("x", place, dtype, &dims, form, fill)?;
        setup.apply(Argmax, &[x], target)?;
        Ok(())
    })
}
