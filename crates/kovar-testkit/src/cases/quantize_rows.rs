//! Cases of `quantize_rows`.

use kovar_core::DType;
use kovar_core::ops::{QuantizeRows, RowScales};

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Form, Place, Target};
use crate::synthetic::Fill;

/// Where the scales come from.
#[derive(Clone, Copy)]
enum Scales {
    /// The rows' own.
    Own,
    /// A window of any numbers.
    Given(Form),
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for point in elementwise(&FLOATS) {
        if !matches!(point.target, Target::InPlace(_)) {
            cases.push(case(point, Scales::Own));
        }
    }
    for dtype in FLOATS {
        for form in Form::ALL {
            for dims in [vec![5, 33], vec![2, 3, 17], vec![2, 3, 4, 1030]] {
                let rank = dims.len() - 1;
                if form.applies(DType::F32, rank) {
                    let point = Point::dense(dtype, &dims).filled(Fill::Gaussian(2.0));
                    cases.push(case(point, Scales::Given(form)));
                }
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 4096], [512, 4096]]
        .into_iter()
        .map(|dims| {
            let point = Point::dense(DType::F32, &dims);
            case(point, Scales::Given(Form::Contiguous))
        })
        .collect()
}

fn case(point: Point, scales: Scales) -> Case {
    let mut labels = point.labels("");
    if let Scales::Given(form) = scales {
        labels.2 += &format!("-scales_{}", form.name());
    }
    let op = "quantize_rows";
    Case::new(op, op, labels, move |setup| {
        let x = point.operand(setup, "x", Place::Temp)?;
        let scales = match scales {
            Scales::Own => setup.graph.apply(RowScales.into(), &[x])?,
            Scales::Given(form) => {
                let rows = &point.dims[..point.dims.len() - 1];
                // Small enough that codes are clamped, too.
                let fill = Fill::Gaussian(0.03);
                setup.operand("scales", Place::Temp, DType::F32, rows, form, fill)?
            }
        };
        setup.apply(QuantizeRows, &[x, scales], point.target)?;
        Ok(())
    })
}
