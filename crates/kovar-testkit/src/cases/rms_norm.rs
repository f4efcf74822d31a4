//! Cases of `rms_norm`.

use kovar_core::DType;
use kovar_core::ops::RmsNorm;

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Form, Place, Target, lower};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .enumerate()
        .map(|(i, point)| {
            let weight = [
                Some((DType::F32, Place::Weight, Form::Contiguous)),
                None,
                Some((DType::F32, Place::Input, Form::Offset)),
            ];
            case(point, 1e-5, weight[i % weight.len()])
        })
        .collect();
    for dtype in FLOATS {
        for weight in FLOATS {
            for place in [Place::Weight, Place::Temp] {
                for form in [Form::Contiguous, Form::Offset, Form::Repeated] {
                    let point = dense(dtype, &[3, 2, 67]);
                    cases.push(case(point, 1e-6, Some((weight, place, form))));
                }
            }
        }
    }
    for eps in [0.0, 1e-12, 1.0] {
        let weight = Some((DType::F32, Place::Weight, Form::Contiguous));
        cases.push(case(dense(DType::F32, &[4, 576]), eps, weight));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 3] = [&[1, 576], &[1, 4096], &[512, 4096]];
    let weight = Some((DType::F32, Place::Weight, Form::Contiguous));
    dims.into_iter()
        .map(|dims| case(dense(DType::F32, dims), 1e-5, weight))
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

fn case(point: Point, eps: f32, weight: Option<(DType, Place, Form)>) -> Case {
    let mut labels = point.labels(&format!(",eps={eps:e}"));
    match weight {
        Some((dtype, place, form)) => {
            labels.0 += &format!("x{}", lower(dtype));
            let place = format!("{place:?}").to_lowercase();
            labels.2 += &format!("-{place}_{}", form.name());
        }
        None => labels.2 += "-no_weight",
    }
    Case::new("rms_norm", "rms_norm", labels, move |setup| {
        let n = point.last();
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let mut inputs = vec![setup.operand("x", Place::Temp, dtype, &dims, form, fill)?];
        if let Some((dtype, place, form)) = weight {
            let fill = Fill::Gaussian(1.0);
            inputs.push(setup.operand("weight", place, dtype, &[n], form, fill)?);
        }
        setup.apply(RmsNorm { eps }, &inputs, target)?;
        Ok(())
    })
}
