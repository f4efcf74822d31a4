//! Cases of `scale`.

use kovar_core::ops::Scale;

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Form, Place, Target};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .map(|point| case(point, -1.7, Place::Temp))
        .collect();
    for (factor, place) in [
        (0.0, Place::Input),
        (1.0, Place::State),
        (-0.0001, Place::Weight),
        (3e-8, Place::Temp),
    ] {
        cases.push(case(dense(&[3, 70]), factor, place));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[1, 4096], &[512, 4096]];
    dims.into_iter()
        .map(|dims| case(dense(dims), 0.5, Place::Temp))
        .collect()
}

fn dense(dims: &[usize]) -> Point {
    Point {
        dtype: kovar_core::DType::F32,
        dims: dims.to_vec(),
        form: Form::Contiguous,
        target: Target::Fresh,
        fill: Fill::Gaussian(1.0),
    }
}

fn case(point: Point, scale: f32, place: Place) -> Case {
    let labels = point.labels(&format!(",scale={scale}"));
    Case::new("scale", "scale", labels, move |setup| {
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let x = setup.operand("x", place, dtype, &dims, form, fill)?;
        setup.apply(Scale { scale }, &[x], target)?;
        Ok(())
    })
}
