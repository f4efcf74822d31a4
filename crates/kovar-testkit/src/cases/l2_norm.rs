//! Cases of `l2_norm`.

use kovar_core::DType;
use kovar_core::ops::L2Norm;

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Form, Place, Target};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .map(|point| case(point, 1e-12))
        .collect();
    // The last is longer than any row.
    for eps in [1e-6, 1.0, 1e6] {
        cases.push(case(dense(&[4, 576]), eps));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[1, 32, 64], &[512, 32, 64]];
    dims.into_iter()
        .map(|dims| case(dense(dims), 1e-12))
        .collect()
}

fn dense(dims: &[usize]) -> Point {
    Point {
        dtype: DType::F32,
        dims: dims.to_vec(),
        form: Form::Contiguous,
        target: Target::Fresh,
        fill: Fill::Gaussian(1.0),
    }
}

fn case(point: Point, eps: f32) -> Case {
    let labels = point.labels(&format!(",eps={eps:e}"));
    Case::new("l2_norm", "l2_norm", labels, move |setup| {
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let x = setup.operand("x", Place::Temp, dtype, &dims, form, fill)?;
        setup.apply(L2Norm { eps }, &[x], target)?;
        Ok(())
    })
}
