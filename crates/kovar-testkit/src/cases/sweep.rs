//! Shapes and layouts that operations over any dims are swept through.

use kovar_core::error::GraphError;
use kovar_core::ops::Op;
use kovar_core::{DType, ValueId};

use super::setup::{Form, Place, Setup, Target};
use super::{Case, lower, sizes};
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

/// The last three parts of a case's name.
pub(super) type Labels = (String, String, String);

impl Point {
    /// A contiguous operand of normal numbers, and a fresh result.
    pub(super) fn dense(dtype: DType, dims: &[usize]) -> Self {
        Self {
            dtype,
            dims: dims.to_vec(),
            form: Form::Contiguous,
            target: Target::Fresh,
            fill: Fill::Gaussian(1.0),
        }
    }

    /// The same with another form of the operand and another target.
    pub(super) fn laid(self, form: Form, target: Target) -> Self {
        Self {
            form,
            target,
            ..self
        }
    }

    /// The same with other elements.
    pub(super) fn filled(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }

    /// The labels of a case; `extra` follows the dims.
    pub(super) fn labels(&self, extra: &str) -> Labels {
        (
            lower(self.dtype),
            format!("{}{extra}{}", sizes(&self.dims), hard(&self.fill)),
            format!("{}-{}", self.form.name(), self.target.name()),
        )
    }

    /// The same with the operand's place.
    pub(super) fn labels_in(&self, place: Place, extra: &str) -> Labels {
        let (dtypes, shape, layout) = self.labels(extra);
        (dtypes, shape, format!("{layout}-{}", place.name()))
    }

    /// The operand.
    pub(super) fn operand(
        &self,
        setup: &mut Setup,
        name: &str,
        place: Place,
    ) -> Result<ValueId, GraphError> {
        let fill = self.fill.clone();
        setup.operand(name, place, self.dtype, &self.dims, self.form, fill)
    }

    /// The case of an operation on this operand alone.
    pub(super) fn case(
        self,
        family: &'static str,
        op: impl Into<Op>,
        place: Place,
        labels: Labels,
    ) -> Case {
        let op = op.into();
        Case::new(family, op.name(), labels, move |setup| {
            let x = self.operand(setup, "x", place)?;
            setup.apply(op.clone(), &[x], self.target)?;
            Ok(())
        })
    }

    /// How labels say that no element is negative.
    pub(super) fn sign(&self) -> &'static str {
        if self.fill == Fill::Positive {
            ",positive"
        } else {
            ""
        }
    }

    /// The innermost size.
    pub(super) fn last(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }
}

/// How the labels of a case name elements that are hard to compute with.
pub(super) fn hard(fill: &Fill) -> &'static str {
    match fill {
        Fill::Small => ",small",
        Fill::Large(_) => ",large",
        _ => "",
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
            points.push(Point::dense(dtype, dims).laid(form, target).filled(fill));
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

/// Rows that devices split over several workgroups: of a million elements, and of some
/// thousand in every dtype, strided and in place.
pub(super) fn long_rows() -> Vec<Point> {
    let mut points = vec![
        Point::dense(DType::F32, &[1 << 20]),
        Point::dense(DType::BF16, &[1, 1_000_001]),
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
            points.push(Point::dense(dtype, &dims).laid(form, target));
        }
    }
    let points = points.into_iter();
    points.map(|point| point.filled(Fill::Positive)).collect()
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

/// A contiguous operand as in [`moving`].
pub(super) fn moved(dtype: DType, dims: &[usize]) -> Point {
    Point::dense(dtype, dims).filled(any_bits(dtype, dims))
}

/// Elements over the whole range of a plain dtype; for 8-bit floats and Bool, every byte.
pub(super) fn any_bits(dtype: DType, dims: &[usize]) -> Fill {
    let count: usize = dims.iter().product();
    // The upper bits of the multiples of an odd number go through all values.
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
            points.extend(orders(dtype, dims));
        }
    }
    points
}

fn orders(dtype: DType, dims: [usize; 2]) -> [Point; 3] {
    [ties(dims), specials(dims), Fill::Gaussian(1.0)]
        .map(|fill| Point::dense(dtype, &dims).filled(fill))
}

/// Long rows of an operation that orders elements.
pub(super) fn long_orders() -> Vec<Point> {
    let mut points = vec![Point::dense(DType::F32, &[1, 1 << 20])];
    for dtype in super::FLOATS {
        for (dims, form, target) in [
            ([3, 2049], Form::Contiguous, Target::Fresh),
            ([2, 17_000], Form::Transposed, Target::Into(Form::Gaps)),
        ] {
            points.extend(orders(dtype, dims).map(|point| point.laid(form, target)));
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
    /// How the labels of a case name the elements of [`ordered`].
    pub(super) fn kind_of_order(&self) -> &'static str {
        match &self.fill {
            Fill::Values(values) if values.iter().any(|x| x.is_nan()) => ",specials",
            Fill::Values(_) => ",ties",
            _ => "",
        }
    }
}
