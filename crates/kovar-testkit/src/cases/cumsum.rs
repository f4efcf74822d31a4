//! Cases of `cumsum`.

use kovar_core::DType;
use kovar_core::ops::Cumsum;

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Form, Place, Target};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .map(|point| case(point, Place::Temp))
        .collect();
    for dtype in FLOATS {
        for (dims, place) in [
            (vec![3, 1024], Place::Weight),
            (vec![2, 1025], Place::Input),
            (vec![1, 20_001], Place::State),
            (vec![100, 7], Place::Temp),
        ] {
            let point = Point {
                fill: Fill::Positive,
                ..dense(dtype, &dims)
            };
            cases.push(case(point, place));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[512, 4096], &[65536, 32]];
    dims.into_iter()
        .map(|dims| case(dense(DType::F32, dims), Place::Temp))
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

fn case(point: Point, place: Place) -> Case {
    let sign = match point.fill {
        Fill::Positive => ",positive",
        _ => "",
    };
    let mut labels = point.labels(sign);
    labels.2 += &format!("-{}", format!("{place:?}").to_lowercase());
    Case::new("cumsum", "cumsum", labels, move |setup| {
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let x = setup.operand("x", place, dtype, &dims, form, fill)?;
        setup.apply(Cumsum, &[x], target)?;
        Ok(())
    })
}
