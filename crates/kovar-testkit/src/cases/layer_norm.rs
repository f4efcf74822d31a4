//! Cases of `layer_norm`.

use kovar_core::DType;
use kovar_core::ops::LayerNorm;

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Form, Place, Target, lower};
use crate::synthetic::Fill;

/// A weight's, and in equal measure a bias', dtype, place and form.
type Factor = (DType, Place, Form);

const WEIGHT: Factor = (DType::F32, Place::Weight, Form::Contiguous);

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .enumerate()
        .map(|(i, point)| {
            let input = (DType::F32, Place::Input, Form::Offset);
            let factors = [
                vec![WEIGHT, WEIGHT],
                vec![],
                vec![input],
                vec![WEIGHT, input],
            ];
            case(point, 1e-5, factors[i % factors.len()].clone())
        })
        .collect();
    for dtype in FLOATS {
        for factor in FLOATS {
            for place in [Place::Weight, Place::Temp] {
                for form in [Form::Contiguous, Form::Gaps, Form::Repeated] {
                    let point = dense(dtype, &[3, 2, 67]);
                    cases.push(case(point, 1e-6, vec![(factor, place, form); 2]));
                }
            }
        }
    }
    for eps in [0.0, 1e-12, 1.0] {
        cases.push(case(dense(DType::F32, &[4, 576]), eps, vec![WEIGHT; 2]));
    }
    // A mean far from zero, beside which the deviations are small; and a long row.
    for fill in [away(100.0, 3 * 1500), away(10_000.0, 3 * 1500)] {
        let point = Point {
            fill,
            ..dense(DType::F32, &[3, 1500])
        };
        cases.push(case(point, 1e-5, vec![WEIGHT; 2]));
    }
    for fill in [
        Fill::Positive,
        away(10_000.0, 300_000),
        Fill::large(DType::F32),
    ] {
        let point = Point {
            fill,
            ..dense(DType::F32, &[1, 300_000])
        };
        cases.push(case(point, 1e-5, vec![]));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 3] = [&[1, 768], &[1, 2048], &[512, 2048]];
    dims.into_iter()
        .map(|dims| case(dense(DType::F32, dims), 1e-5, vec![WEIGHT; 2]))
        .collect()
}

/// Sixteenths from -1 to 1 around `mean`, which f32 holds exactly.
fn away(mean: f64, count: usize) -> Fill {
    let sixteenths = (0..count).map(|i| ((i * 7919) % 33) as f64 / 16.0 - 1.0);
    Fill::Values(sixteenths.map(|x| x + mean).collect())
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

fn case(point: Point, eps: f32, factors: Vec<Factor>) -> Case {
    let extra = match &point.fill {
        Fill::Values(values) => format!(",near={}", values.first().map_or(0.0, |x| x.ceil())),
        Fill::Positive => ",positive".to_owned(),
        _ => String::new(),
    };
    let mut labels = point.labels(&format!(",eps={eps:e}{extra}"));
    for (name, (dtype, place, form)) in ["weight", "bias"].iter().zip(&factors) {
        labels.0 += &format!("x{}", lower(*dtype));
        let place = format!("{place:?}").to_lowercase();
        labels.2 += &format!("-{name}_{place}_{}", form.name());
    }
    Case::new("layer_norm", "layer_norm", labels, move |setup| {
        let n = point.last();
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let mut inputs = vec![setup.operand("x", Place::Temp, dtype, &dims, form, fill)?];
        for (name, &(dtype, place, form)) in ["weight", "bias"].iter().zip(&factors) {
            let fill = Fill::Gaussian(1.0);
            inputs.push(setup.operand(name, place, dtype, &[n], form, fill)?);
        }
        setup.apply(LayerNorm { eps }, &inputs, target)?;
        Ok(())
    })
}
