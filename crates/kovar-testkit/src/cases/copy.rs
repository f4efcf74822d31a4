//! Cases of copies and casts.

use kovar_core::DType;
use kovar_core::ops::Copy;

use super::sweep::{Point, elementwise, moving};
use super::{Case, FLOATS, Form, Place, Target, lower, weights};
use crate::synthetic::Fill;

const TO: [DType; 4] = [DType::F32, DType::F16, DType::BF16, DType::Q8_0];

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    // Among plain dtypes: the whole sweep from each to one other, and every pair on few shapes.
    for (from, to) in FLOATS
        .into_iter()
        .zip([DType::F16, DType::BF16, DType::F32])
    {
        let points = elementwise(&[from]).into_iter();
        let points = points.filter(|point| !matches!(point.target, Target::InPlace(_)));
        cases.extend(points.map(|point| case(point, to, Place::Temp)));
    }
    for point in moving(&[DType::I32]) {
        cases.push(case(point, DType::I32, Place::Input));
    }
    for from in weights() {
        for to in TO {
            let k = from.block_len().max(to.block_len()).max(48) * 2;
            for (i, (form, target)) in [
                (Form::Contiguous, Target::Fresh),
                (Form::Offset, Target::Into(Form::Gaps)),
                (Form::Gaps, Target::Into(Form::Permuted)),
                (Form::Permuted, Target::Fresh),
                (Form::Window, Target::Into(Form::Window)),
                (Form::Repeated, Target::Fresh),
            ]
            .into_iter()
            .enumerate()
            {
                let fill = if from.is_quantized() && i % 2 == 1 {
                    Fill::RandomBlocks
                } else {
                    Fill::Gaussian(1.0)
                };
                let point = Point {
                    dtype: from,
                    dims: vec![3, 2, k],
                    form,
                    target,
                    fill,
                };
                let place = if i == 0 { Place::Weight } else { Place::State };
                cases.push(case(point, to, place));
            }
        }
        if !from.is_quantized() {
            for (dims, fill) in [
                (vec![9, 96], Fill::Small),
                (vec![9, 96], Fill::Large(200.0)),
                (vec![32, 5], Fill::Gaussian(1.0)),
            ] {
                let transposed = dims[0] == 32;
                let point = Point {
                    dtype: from,
                    dims: if transposed { vec![5, 32] } else { dims },
                    form: if transposed {
                        Form::Transposed
                    } else {
                        Form::Contiguous
                    },
                    target: Target::Fresh,
                    fill,
                };
                cases.push(case(point, DType::Q8_0, Place::Temp));
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let pairs = [
        (DType::F32, DType::F16, Form::Contiguous),
        (DType::F32, DType::F32, Form::Permuted),
        (DType::F32, DType::Q8_0, Form::Contiguous),
        (DType::Q4K, DType::F32, Form::Contiguous),
    ];
    pairs
        .into_iter()
        .map(|(dtype, to, form)| {
            let point = Point {
                dtype,
                dims: vec![32, 128, 1024],
                form,
                target: Target::Fresh,
                fill: Fill::Gaussian(1.0),
            };
            case(point, to, Place::Temp)
        })
        .collect()
}

fn case(point: Point, to: DType, place: Place) -> Case {
    let mut labels = point.labels("");
    labels.0 += &format!("-{}", lower(to));
    Case::new("copy", "copy", labels, move |setup| {
        let Point {
            dtype,
            dims,
            form,
            target,
            fill,
        } = point.clone();
        let x = setup.operand("x", place, dtype, &dims, form, fill)?;
        setup.apply(Copy { dtype: to }, &[x], target)?;
        Ok(())
    })
}
