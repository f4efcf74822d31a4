//! Cases of copies and casts.

use kovar_core::DType;
use kovar_core::ops::Copy;
use kovar_core::ops::dtypes::ENCODED;

use super::sweep::{Point, any_bits, elementwise, moving};
use super::{Case, FLOATS, Form, Place, Target, lower, plain, stored, weights};
use crate::synthetic::Fill;

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    // Plain dtypes: the whole sweep from each to one other, and every pair on few shapes.
    for (from, to) in FLOATS
        .into_iter()
        .zip([DType::F16, DType::BF16, DType::F32])
    {
        let points = elementwise(&[from]).into_iter();
        let points = points.filter(|point| !matches!(point.target, Target::InPlace(_)));
        cases.extend(points.map(|point| case(point, to, Place::Temp)));
    }
    for dtype in stored() {
        let points = moving(&[dtype]).into_iter();
        cases.extend(points.map(|point| case(point, dtype, Place::Input)));
    }
    for from in plain() {
        for to in plain().into_iter().filter(|&to| to != from) {
            cases.extend(casts(from).map(|point| case(point, to, Place::State)));
        }
    }
    for from in weights() {
        for &to in ENCODED {
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

/// Numbers at and near the ends of the ranges of all dtypes, and between their elements.
fn casts(from: DType) -> impl Iterator<Item = Point> {
    [
        (vec![700], Form::Contiguous, Target::Fresh),
        (vec![5, 67], Form::Gaps, Target::Into(Form::Transposed)),
        (vec![2, 3, 45], Form::Window, Target::Into(Form::Window)),
        (vec![3, 41], Form::Repeated, Target::Fresh),
    ]
    .into_iter()
    .map(move |(dims, form, target)| {
        let count = dims.iter().product();
        let fill = if from.is_integer() {
            Fill::Indices((0..count).map(|i| whole(i, from)).collect())
        } else {
            Fill::Values((0..count).map(float).collect())
        };
        Point {
            dtype: from,
            dims,
            form,
            target,
            fill,
        }
    })
}

const POWERS: [u32; 12] = [0, 1, 3, 7, 8, 15, 16, 24, 31, 32, 53, 62];

/// Integers near powers of two, of either sign, or small ones if the dtype doesn't hold them.
fn whole(i: usize, dtype: DType) -> i64 {
    let near = (1i64 << POWERS[i % 12]) + (i / 24 % 5) as i64 - 2;
    let signed = if (i / 12).is_multiple_of(2) {
        near
    } else {
        -near
    };
    let (least, greatest) = match dtype {
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        DType::I16 => (-32768, 32767),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::Bool => (0, 1),
        _ => (i64::MIN, i64::MAX),
    };
    match signed {
        held if (least..=greatest).contains(&held) => held,
        beyond if i.is_multiple_of(2) => beyond.signum().max(0) * greatest,
        _ => (i % 2) as i64,
    }
}

/// Floats near powers of two and halfway between such, of either sign, and specials.
fn float(i: usize) -> f64 {
    const SPECIAL: [f64; 12] = [
        0.0,
        f64::INFINITY,
        f64::NAN,
        448.0,
        464.0,
        465.0,
        57344.0,
        61440.0,
        65520.0,
        3.4e38,
        1e-9,
        1e300,
    ];
    let near = match i % 4 {
        0 => SPECIAL[i / 4 % 12],
        1 => 2f64.powi(POWERS[i / 4 % 12] as i32) + (i / 48) as f64 / 2.0 - 2.0,
        2 => (1.0 + (i % 37) as f64 / 32.0) * 2f64.powi(i as i32 % 40 - 20),
        _ => (i as f64).sqrt() / 3.0,
    };
    if i % 7 < 3 { -near } else { near }
}

pub(super) fn perf() -> Vec<Case> {
    let pairs = [
        (DType::F32, DType::F16, Form::Contiguous),
        (DType::F32, DType::F32, Form::Permuted),
        (DType::F32, DType::Q8_0, Form::Contiguous),
        (DType::Q4K, DType::F32, Form::Contiguous),
        (DType::F8E4M3, DType::F32, Form::Contiguous),
        (DType::F64, DType::F16, Form::Contiguous),
        (DType::I64, DType::I32, Form::Contiguous),
    ];
    pairs
        .into_iter()
        .map(|(dtype, to, form)| {
            let point = Point {
                dtype,
                dims: vec![32, 128, 1024],
                form,
                target: Target::Fresh,
                fill: if dtype.is_integer() {
                    any_bits(dtype, &[32, 128, 1024])
                } else {
                    Fill::Gaussian(1.0)
                },
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
