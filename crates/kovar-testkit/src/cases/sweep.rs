//! Shapes and layouts that operations over any dims are swept through.

use kovar_core::DType;

use super::setup::{Form, Target};
use super::{lower, sizes};
use crate::synthetic::Fill;

/// One point of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub form: Form,
    pub target: Target,
    pub fill: Fill,
}

impl Point {
    /// The last three parts of a case's name; `extra` follows the dims.
    pub(super) fn labels(&self, extra: &str) -> (String, String, String) {
        let hard = match self.fill {
            Fill::Small => ",small",
            Fill::Large(_) => ",large",
            _ => "",
        };
        (
            lower(self.dtype),
            format!("{}{extra}{hard}", sizes(&self.dims)),
            format!("{}-{}", self.form.name(), self.target.name()),
        )
    }

    /// The innermost size.
    pub(super) fn last(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }
}

/// Layouts in use: the operand's form and where the result goes.
const LAYOUTS: [(Form, Target); 17] = [
    (Form::Offset, Target::Fresh),
    (Form::Gaps, Target::Fresh),
    (Form::Permuted, Target::Fresh),
    (Form::Transposed, Target::Fresh),
    (Form::Window, Target::Fresh),
    (Form::Repeated, Target::Fresh),
    (Form::Contiguous, Target::InPlace(0)),
    (Form::Offset, Target::InPlace(0)),
    (Form::Gaps, Target::InPlace(0)),
    (Form::Permuted, Target::InPlace(0)),
    (Form::Transposed, Target::InPlace(0)),
    (Form::Window, Target::InPlace(0)),
    (Form::Contiguous, Target::Into(Form::Offset)),
    (Form::Contiguous, Target::Into(Form::Gaps)),
    (Form::Offset, Target::Into(Form::Permuted)),
    (Form::Permuted, Target::Into(Form::Window)),
    (Form::Transposed, Target::Into(Form::Transposed)),
];

const STRIDED: [&[usize]; 4] = [&[33], &[7, 65], &[3, 5, 32], &[2, 3, 4, 17]];
const DENSE: [&[usize]; 12] = [
    &[1],
    &[5],
    &[33],
    &[1025],
    &[1, 1],
    &[7, 65],
    &[2, 1024],
    &[3, 5, 32],
    &[2, 3, 4, 17],
    &[2, 1, 3, 2, 1, 5],
    &[0],
    &[3, 0, 4],
];

/// The sweep of an elementwise or row-wise operation of one operand that may work in place.
pub(super) fn elementwise(dtypes: &[DType]) -> Vec<Point> {
    let mut points = Vec::new();
    for &dtype in dtypes {
        let mut push = |dims: &[usize], form, target, fill| {
            points.push(Point {
                dtype,
                dims: dims.to_vec(),
                form,
                target,
                fill,
            });
        };
        for dims in DENSE {
            push(dims, Form::Contiguous, Target::Fresh, Fill::Gaussian(1.0));
        }
        for fill in [Fill::Small, Fill::large(dtype)] {
            push(&[9, 40], Form::Contiguous, Target::Fresh, fill);
        }
        for dims in STRIDED {
            for (form, target) in LAYOUTS {
                let into = match target {
                    Target::Into(into) => into,
                    _ => Form::Contiguous,
                };
                let rank = dims.len();
                if form.applies(dtype, rank) && into.applies(dtype, rank) {
                    push(dims, form, target, Fill::Gaussian(1.0));
                }
            }
        }
    }
    points
}

/// Rows that devices share out among several workgroups: of a million elements, and of some
/// thousand in every dtype, strided and in place.
pub(super) fn long_rows() -> Vec<Point> {
    let point = |dtype, dims: &[usize], form, target| Point {
        dtype,
        dims: dims.to_vec(),
        form,
        target,
        fill: Fill::Positive,
    };
    let mut points = vec![
        point(DType::F32, &[1 << 20], Form::Contiguous, Target::Fresh),
        point(
            DType::BF16,
            &[1, 1_000_001],
            Form::Contiguous,
            Target::Fresh,
        ),
    ];
    for dtype in super::FLOATS {
        for (dims, form, target) in [
            (vec![3, 17_000], Form::Contiguous, Target::InPlace(0)),
            (vec![2, 16_385], Form::Contiguous, Target::Fresh),
            (vec![2, 1, 17_002], Form::Gaps, Target::Into(Form::Window)),
            (vec![2, 3, 17_001], Form::Window, Target::InPlace(0)),
            (
                vec![2, 20_000],
                Form::Transposed,
                Target::Into(Form::Transposed),
            ),
        ] {
            points.push(point(dtype, &dims, form, target));
        }
    }
    points
}

/// The sweep of an operation that moves elements and never works in place.
pub(super) fn moving(dtypes: &[DType]) -> Vec<Point> {
    let mut points = elementwise(dtypes);
    points.retain(|point| {
        !matches!(point.target, Target::InPlace(_)) && matches!(point.fill, Fill::Gaussian(_))
    });
    for point in &mut points {
        point.fill = any_bits(point.dtype, &point.dims);
    }
    points
}

/// Elements of a plain dtype all over its range; of 8-bit floats and Bool every byte.
pub(super) fn any_bits(dtype: DType, dims: &[usize]) -> Fill {
    let count: usize = dims.iter().product();
    // The multiples of an odd number, of which the upper bits are all of those in turn.
    let bits = |i: usize| (i as i64).wrapping_mul(0x1e37_79b9_7f4a_7c15);
    let number = |i: usize| match dtype {
        DType::I8 => (bits(i) >> 55) as i8 as i64,
        DType::U8 => (bits(i) >> 55) as u8 as i64,
        DType::I16 => (bits(i) >> 47) as i16 as i64,
        DType::I32 => (bits(i) >> 31) as i32 as i64,
        _ => bits(i),
    };
    match dtype {
        DType::Bool | DType::F8E4M3 | DType::F8E5M2 => Fill::Bytes(
            (0..count)
                .map(|i| (i * 37 + 1) as u8 & 0x8f | i as u8)
                .collect(),
        ),
        dtype if dtype.is_integer() => Fill::Indices((0..count).map(number).collect()),
        _ => Fill::Gaussian(1.0),
    }
}

/// The sweep of an operation that orders elements: distinct ones, many equal ones, and NaN,
/// infinities and both zeros among them.
pub(super) fn ordered() -> Vec<Point> {
    let mut points = elementwise(&super::FLOATS);
    points.retain(|point| !matches!(point.target, Target::InPlace(_)));
    for dtype in super::FLOATS {
        for dims in [[3, 1024], [2, 1500], [5, 128]] {
            for fill in [ties(dims), specials(dims), Fill::Gaussian(1.0)] {
                points.push(Point {
                    dtype,
                    dims: dims.to_vec(),
                    form: Form::Contiguous,
                    target: Target::Fresh,
                    fill,
                });
            }
        }
    }
    points
}

/// Long rows of an operation that orders elements.
pub(super) fn long_orders() -> Vec<Point> {
    let mut points = vec![Point {
        dtype: DType::F32,
        dims: vec![1, 1 << 20],
        form: Form::Contiguous,
        target: Target::Fresh,
        fill: Fill::Gaussian(1.0),
    }];
    for dtype in super::FLOATS {
        for (dims, form, target) in [
            ([3, 2049], Form::Contiguous, Target::Fresh),
            ([2, 17_000], Form::Transposed, Target::Into(Form::Gaps)),
        ] {
            for fill in [ties(dims), specials(dims), Fill::Gaussian(1.0)] {
                points.push(Point {
                    dtype,
                    dims: dims.to_vec(),
                    form,
                    target,
                    fill,
                });
            }
        }
    }
    points
}

fn ties([rows, n]: [usize; 2]) -> Fill {
    Fill::Values((0..rows * n).map(|i| (i * 37 % 11) as f64 - 5.0).collect())
}

fn specials([rows, n]: [usize; 2]) -> Fill {
    const SPECIAL: [f64; 6] = [f64::INFINITY, 0.0, f64::NAN, -0.0, f64::NEG_INFINITY, 1e-7];
    let value = |i: usize| match i % 3 {
        1 => SPECIAL[i / 3 % SPECIAL.len()],
        _ => (i * 61 % 101) as f64 / 8.0 - 6.0,
    };
    // The last row is without NaN.
    let numbers = |i: usize| Some(value(i)).filter(|x| i / n + 1 < rows || !x.is_nan());
    Fill::Values((0..rows * n).map(|i| numbers(i).unwrap_or(2.0)).collect())
}

impl Point {
    /// What [`ordered`] has put there.
    pub(super) fn kind_of_order(&self) -> &'static str {
        match &self.fill {
            Fill::Values(values) if values.iter().any(|x| x.is_nan()) => ",specials",
            Fill::Values(_) => ",ties",
            _ => "",
        }
    }
}
