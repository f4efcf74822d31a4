//! Cases of elementwise operations on two operands.

use kovar_core::DType;
use kovar_core::ops::{Binary, BinaryKind, Op};

use super::sweep::{Point, elementwise};
use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

/// The second operand.
#[derive(Clone)]
struct Other {
    dtype: DType,
    dims: Vec<usize>,
    form: Form,
    place: Place,
}

pub(super) fn tests() -> Vec<Case> {
    BinaryKind::ALL.iter().copied().flat_map(of_kind).collect()
}

fn of_kind(kind: BinaryKind) -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .map(|point| {
            let other = Other {
                dtype: point.dtype,
                dims: point.dims.clone(),
                form: point.form,
                place: Place::Temp,
            };
            case(kind, point, other)
        })
        .collect();
    for a in FLOATS {
        for b in FLOATS {
            for (b_dims, form) in broadcasts() {
                let target = match b_dims.len() {
                    1 => Target::InPlace(0),
                    2 => Target::Into(Form::Window),
                    _ => Target::Fresh,
                };
                let place = if b_dims.len() < 3 {
                    Place::Weight
                } else {
                    Place::Temp
                };
                let other = Other {
                    dtype: b,
                    dims: b_dims,
                    form,
                    place,
                };
                cases.push(case(
                    kind,
                    point(a, &[2, 3, 5, 33], Form::Contiguous, target),
                    other,
                ));
            }
        }
        for form in [Form::Contiguous, Form::Gaps, Form::Window, Form::Transposed] {
            let other = Other {
                dtype: a,
                dims: vec![3, 4, 37],
                form,
                place: Place::Temp,
            };
            cases.push(case(
                kind,
                point(a, &[3, 4, 37], Form::Contiguous, Target::InPlace(1)),
                other,
            ));
        }
        cases.push(with_itself(kind, a, Target::Fresh));
        cases.push(with_itself(kind, a, Target::InPlace(0)));
    }
    cases
}

fn broadcasts() -> Vec<(Vec<usize>, Form)> {
    vec![
        (vec![2, 3, 5, 33], Form::Permuted),
        (vec![2, 3, 5, 33], Form::Transposed),
        (vec![2, 3, 5, 33], Form::Repeated),
        (vec![33], Form::Contiguous),
        (vec![33], Form::Offset),
        (vec![5, 33], Form::Contiguous),
        (vec![3, 1, 33], Form::Contiguous),
        (vec![2, 1, 5, 1], Form::Contiguous),
        (vec![2, 1, 1, 33], Form::Gaps),
        (vec![1], Form::Contiguous),
        (vec![], Form::Contiguous),
    ]
}

pub(super) fn perf() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dims, b_dims) in [
        (vec![1, 4096], vec![1, 4096]),
        (vec![512, 4096], vec![512, 4096]),
        (vec![512, 4096], vec![4096]),
    ] {
        let other = Other {
            dtype: DType::F32,
            dims: b_dims,
            form: Form::Contiguous,
            place: Place::Temp,
        };
        let point = point(DType::F32, &dims, Form::Contiguous, Target::InPlace(0));
        cases.push(case(BinaryKind::Add, point, other));
    }
    cases
}

fn point(dtype: DType, dims: &[usize], form: Form, target: Target) -> Point {
    Point {
        dtype,
        dims: dims.to_vec(),
        form,
        target,
        fill: Fill::Gaussian(1.0),
    }
}

fn name(kind: BinaryKind) -> &'static str {
    Op::from(Binary { kind }).name()
}

fn case(kind: BinaryKind, point: Point, other: Other) -> Case {
    let mut labels = point.labels(&format!(",b={}", sizes(&other.dims)));
    labels.0 += &format!("x{}", lower(other.dtype));
    labels.2 += &format!("-b_{}", other.form.name());
    Case::new("binary", name(kind), labels, move |setup| {
        let (a, b) = (point.clone(), other.clone());
        let a_id = setup.operand("a", Place::Temp, a.dtype, &a.dims, a.form, a.fill.clone())?;
        let b_id = setup.operand("b", b.place, b.dtype, &b.dims, b.form, a.fill)?;
        setup.apply(Binary { kind }, &[a_id, b_id], a.target)?;
        Ok(())
    })
}

fn with_itself(kind: BinaryKind, dtype: DType, target: Target) -> Case {
    let labels = (
        lower(dtype),
        "4x35".to_owned(),
        format!("itself-{}", target.name()),
    );
    Case::new("binary", name(kind), labels, move |setup| {
        let fill = Fill::Gaussian(1.0);
        let a = setup.operand("a", Place::State, dtype, &[4, 35], Form::Contiguous, fill)?;
        setup.apply(Binary { kind }, &[a, a], target)?;
        Ok(())
    })
}
