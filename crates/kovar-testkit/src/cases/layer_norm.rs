//! Cases of `layer_norm`.

use kovar_core::DType;
use kovar_core::ops::LayerNorm;

use super::factors::{self, Factor, WEIGHT, add_labels, operands};
use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Form, Place};
use crate::synthetic::Fill;

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
    for (point, factor) in factors::sweep([Form::Contiguous, Form::Gaps, Form::Repeated]) {
        cases.push(case(point, 1e-6, vec![factor; 2]));
    }
    for eps in [0.0, 1e-12, 1.0] {
        cases.push(case(
            Point::dense(DType::F32, &[4, 576]),
            eps,
            vec![WEIGHT; 2],
        ));
    }
    // A mean that is large against the deviations; and a long row.
    for fill in [away(100.0, 3 * 1500), away(10_000.0, 3 * 1500)] {
        let point = Point::dense(DType::F32, &[3, 1500]).filled(fill);
        cases.push(case(point, 1e-5, vec![WEIGHT; 2]));
    }
    for fill in [
        Fill::Positive,
        away(10_000.0, 300_000),
        Fill::large(DType::F32),
    ] {
        let point = Point::dense(DType::F32, &[1, 300_000]).filled(fill);
        cases.push(case(point, 1e-5, vec![]));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 3] = [&[1, 768], &[1, 2048], &[512, 2048]];
    dims.into_iter()
        .map(|dims| case(Point::dense(DType::F32, dims), 1e-5, vec![WEIGHT; 2]))
        .collect()
}

/// Sixteenths from -1 to 1 around `mean`, which f32 holds exactly.
fn away(mean: f64, count: usize) -> Fill {
    let sixteenths = (0..count).map(|i| ((i * 7919) % 33) as f64 / 16.0 - 1.0);
    Fill::Values(sixteenths.map(|x| x + mean).collect())
}

fn case(point: Point, eps: f32, factors: Vec<Factor>) -> Case {
    let extra = match &point.fill {
        Fill::Values(values) => format!(",near={}", values.first().map_or(0.0, |x| x.ceil())),
        Fill::Positive => ",positive".to_owned(),
        _ => String::new(),
    };
    let mut labels = point.labels(&format!(",eps={eps:e}{extra}"));
    add_labels(&mut labels, &factors);
    Case::new("layer_norm", "layer_norm", labels, move |setup| {
        let mut inputs = vec![point.operand(setup, "x", Place::Temp)?];
        inputs.extend(operands(setup, &factors, point.last())?);
        setup.apply(LayerNorm { eps }, &inputs, point.target)?;
        Ok(())
    })
}
