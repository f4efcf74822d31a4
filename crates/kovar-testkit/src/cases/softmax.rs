//! Cases of `softmax`.

use kovar_core::DType;
use kovar_core::ops::Softmax;

use super::sweep::{Point, elementwise, long_rows};
use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

/// A mask's dtype, dims, form and share of excluded elements.
type Mask = (DType, Vec<usize>, Form, f64);

pub(super) fn tests() -> Vec<Case> {
    let mut cases: Vec<Case> = elementwise(&FLOATS)
        .into_iter()
        .chain(long_rows())
        .map(|point| case(point, Softmax::new(0.7), None))
        .collect();
    for dtype in FLOATS {
        for mask_dtype in [DType::F32, DType::F16] {
            let masks: [(&[usize], Form, f64); 8] = [
                (&[2, 3, 5, 33], Form::Contiguous, 0.3),
                (&[2, 3, 5, 33], Form::Window, 0.3),
                (&[2, 3, 5, 33], Form::Transposed, 0.3),
                (&[2, 3, 5, 33], Form::Contiguous, 1.0),
                (&[2, 3, 5, 33], Form::Contiguous, 0.97),
                (&[5, 33], Form::Offset, 0.5),
                (&[2, 1, 5, 33], Form::Contiguous, 0.5),
                (&[3, 1, 1], Form::Contiguous, 0.3),
            ];
            for (i, (mask_dims, form, share)) in masks.into_iter().enumerate() {
                let (x_form, target) = match i % 3 {
                    0 => (Form::Contiguous, Target::InPlace(0)),
                    1 => (Form::Permuted, Target::Fresh),
                    _ => (Form::Gaps, Target::Into(Form::Offset)),
                };
                let mask = (mask_dtype, mask_dims.to_vec(), form, share);
                cases.push(case(
                    Point::dense(dtype, &[2, 3, 5, 33]).laid(x_form, target),
                    Softmax::new(1.0),
                    Some(mask),
                ));
            }
        }
    }
    for scale in [0.0, -1.0, 40.0] {
        let point = Point::dense(DType::F32, &[5, 100]);
        cases.push(case(point, Softmax::new(scale), None));
    }
    cases.extend(alibi());
    for (dtype, mask_dtype) in [(DType::F32, DType::F16), (DType::BF16, DType::F32)] {
        let long = [2, 3, 2, 17_000];
        for (dims, max_bias, share) in [
            (&[17_000][..], 0.0, 0.3),
            (&[3, 1, 17_000], 8.0, 0.9),
            (&[2, 17_000], 0.0, 1.0),
        ] {
            let op = Softmax {
                scale: 1.0,
                max_bias,
            };
            let mask = (mask_dtype, dims.to_vec(), Form::Contiguous, share);
            let point = Point::dense(dtype, &long).laid(Form::Permuted, Target::InPlace(0));
            cases.push(case(point, op, Some(mask)));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dims: [&[usize]; 2] = [&[32, 1, 2048], &[32, 64, 2048]];
    dims.into_iter()
        .map(|dims| Point::dense(DType::F32, dims).laid(Form::Contiguous, Target::InPlace(0)))
        .map(|point| case(point, Softmax::new(0.125), None))
        .collect()
}

/// Heads of every kind of number, distances and random masks.
fn alibi() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for mask_dtype in [DType::F32, DType::F16] {
            for (heads, max_bias) in [(1, 8.0), (3, 8.0), (8, 8.0), (12, 8.0), (32, 16.0)] {
                for (dims, form) in [
                    (vec![2, heads, 5, 33], Form::Permuted),
                    (vec![5, 33], Form::Contiguous),
                    (vec![1, 33], Form::Offset),
                ] {
                    let op = Softmax {
                        scale: 0.5,
                        max_bias,
                    };
                    let mask = (mask_dtype, dims, form, 0.3);
                    let target = match heads % 4 {
                        0 => Target::InPlace(0),
                        _ => Target::Fresh,
                    };
                    let point =
                        Point::dense(dtype, &[2, heads, 5, 33]).laid(Form::Contiguous, target);
                    cases.push(case(point, op, Some(mask)));
                }
            }
        }
    }
    let op = Softmax {
        scale: 1.0,
        max_bias: 8.0,
    };
    let point = Point::dense(DType::F32, &[6, 4, 17]);
    cases.push(case(
        point,
        op,
        Some((DType::F32, vec![4, 17], Form::Contiguous, 1.0)),
    ));
    cases
}

fn case(point: Point, op: Softmax, mask: Option<Mask>) -> Case {
    let alibi = match op.max_bias {
        0.0 => String::new(),
        max_bias => format!(",max_bias={max_bias}"),
    };
    let mut labels = point.labels(&format!(",scale={}{alibi}", op.scale));
    if let Some((dtype, dims, form, share)) = &mask {
        labels.0 += &format!("x{}", lower(*dtype));
        labels.1 += &format!(",mask={},excluded={share}", sizes(dims));
        labels.2 += &format!("-mask_{}", form.name());
    }
    Case::new("softmax", "softmax", labels, move |setup| {
        let mut inputs = vec![point.operand(setup, "x", Place::Temp)?];
        if let Some((dtype, dims, form, share)) = mask.clone() {
            let fill = Fill::Mask(share);
            inputs.push(setup.operand("mask", Place::Input, dtype, &dims, form, fill)?);
        }
        setup.apply(op, &inputs, point.target)?;
        Ok(())
    })
}
