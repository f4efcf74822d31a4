//! Cases of gated activations.

use kovar_core::DType;
use kovar_core::ops::{Glu, GluKind, Op};

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Form, Place, Target, lower};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    GluKind::ALL.iter().copied().flat_map(of_kind).collect()
}

fn of_kind(kind: GluKind) -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .map(|point| case(kind, point.clone(), point.dtype, point.form))
        .collect();
    for gate in FLOATS {
        for up in FLOATS {
            for up_form in [
                Form::Contiguous,
                Form::Gaps,
                Form::Transposed,
                Form::Repeated,
            ] {
                let point = point(gate, &[3, 4, 37]);
                cases.push(case(kind, point, up, up_form));
            }
        }
        for form in [Form::Contiguous, Form::Gaps, Form::Window] {
            let point = point(gate, &[3, 4, 37]).laid(form, Target::InPlace(1));
            cases.push(case(kind, point, gate, form));
        }
        // The halves of one fused product.
        cases.push(fused(kind, gate));
    }
    let wide = point(DType::F32, &[4, 300]).filled(Fill::Gaussian(40.0));
    cases.push(case(kind, wide, DType::F16, Form::Contiguous));
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[1, 11008], &[512, 11008]];
    // Not in place, where run after run would end in denormals.
    dims.into_iter()
        .map(|dims| point(DType::F32, dims))
        .flat_map(|point| {
            let of = move |kind| case(kind, point.clone(), DType::F32, Form::Contiguous);
            GluKind::ALL.iter().copied().map(of)
        })
        .collect()
}

fn point(dtype: DType, dims: &[usize]) -> Point {
    Point::dense(dtype, dims).filled(Fill::Gaussian(2.0))
}

fn case(kind: GluKind, point: Point, up_dtype: DType, up_form: Form) -> Case {
    let mut labels = point.labels("");
    labels.0 += &format!("x{}", lower(up_dtype));
    labels.2 += &format!("-up_{}", up_form.name());
    if point.fill == Fill::Gaussian(40.0) {
        labels.1 += ",wide";
    }
    Case::new("glu", Op::from(Glu { kind }).name(), labels, move |setup| {
        let gate = point.operand(setup, "gate", Place::Temp)?;
        let up = Point {
            dtype: up_dtype,
            form: up_form,
            ..point.clone()
        };
        let up = up.operand(setup, "up", Place::Temp)?;
        setup.apply(Glu { kind }, &[gate, up], point.target)?;
        Ok(())
    })
}

fn fused(kind: GluKind, dtype: DType) -> Case {
    let labels = (lower(dtype), "5x2x33".to_owned(), "halves-fresh".to_owned());
    Case::new("glu", Op::from(Glu { kind }).name(), labels, move |setup| {
        let both = setup.operand(
            "gate_up",
            Place::Temp,
            dtype,
            &[5, 66],
            Form::Contiguous,
            Fill::Gaussian(1.0),
        )?;
        let gate = setup.graph.slice(both, 1, 0..33)?;
        let up = setup.graph.slice(both, 1, 33..66)?;
        setup.apply(Glu { kind }, &[gate, up], Target::Fresh)?;
        Ok(())
    })
}
