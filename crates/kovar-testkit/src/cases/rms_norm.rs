//! Cases of `rms_norm`.

use kovar_core::DType;
use kovar_core::ops::RmsNorm;

use super::factors::{self, Factor, WEIGHT, operands};
use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Form, Place, lower};

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .enumerate()
        .map(|(i, point)| {
            let weight = [
                Some(WEIGHT),
                None,
                Some((DType::F32, Place::Input, Form::Offset)),
            ];
            case(point, 1e-5, weight[i % weight.len()])
        })
        .collect();
    for (point, weight) in factors::sweep([Form::Contiguous, Form::Offset, Form::Repeated]) {
        cases.push(case(point, 1e-6, Some(weight)));
    }
    for eps in [0.0, 1e-12, 1.0] {
        let point = Point::dense(DType::F32, &[4, 576]);
        cases.push(case(point, eps, Some(WEIGHT)));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 3] = [&[1, 576], &[1, 4096], &[512, 4096]];
    dims.into_iter()
        .map(|dims| case(Point::dense(DType::F32, dims), 1e-5, Some(WEIGHT)))
        .collect()
}

fn case(point: Point, eps: f32, weight: Option<Factor>) -> Case {
    let mut labels = point.labels(&format!(",eps={eps:e}"));
    match weight {
        Some((dtype, place, form)) => {
            labels.0 += &format!("x{}", lower(dtype));
            labels.2 += &format!("-{}_{}", place.name(), form.name());
        }
        None => labels.2 += "-no_weight",
    }
    Case::new("rms_norm", "rms_norm", labels, move |setup| {
        let mut inputs = vec![point.operand(setup, "x", Place::Temp)?];
        inputs.extend(operands(setup, weight.as_slice(), point.last())?);
        setup.apply(RmsNorm { eps }, &inputs, point.target)?;
        Ok(())
    })
}
