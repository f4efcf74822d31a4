//! Cases of `pad`.

use kovar_core::ops::Pad;
use kovar_core::{DType, Dims};

use super::sweep::{Point, moved, moving};
use super::{Case, Form, Place, Target, plain};

/// Sizes of padding before and after each dimension.
type Around = Vec<(usize, usize)>;

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, point) in moving(&plain()).into_iter().enumerate() {
        let around = (0..point.dims.len()).map(|at| ((i + at) % 3, (i + 2 * at) % 2));
        let around = around.collect();
        let value = held(point.dtype, -3.0);
        cases.push(case(point, around, value, Place::Temp));
    }
    for dtype in plain() {
        for (dims, around) in [
            (vec![], vec![]),
            (vec![5], vec![(0, 1)]),
            (vec![5], vec![(3, 0)]),
            (vec![0, 4], vec![(2, 1), (0, 3)]),
            (vec![3, 4], vec![(0, 0), (0, 0)]),
            (vec![2, 7, 9], vec![(0, 0), (1, 1), (1, 1)]),
            (vec![2, 3, 4, 5], vec![(1, 2), (0, 4), (3, 0), (2, 1)]),
            (vec![3, 1000], vec![(20, 20), (500, 30)]),
        ] {
            for value in [0.0, held(dtype, 7.0)] {
                let point = moved(dtype, &dims);
                cases.push(case(point, around.clone(), value, Place::Weight));
            }
        }
        if !dtype.is_integer() {
            for value in [0.1, -1e-5, f32::NEG_INFINITY, f32::NAN] {
                let point = moved(dtype, &[4, 6]);
                let point = point.laid(Form::Transposed, Target::Into(Form::Gaps));
                cases.push(case(point, vec![(1, 0), (2, 1)], value, Place::Input));
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [
        (vec![64, 128, 128], vec![(0, 0), (1, 1), (1, 1)]),
        (vec![1024, 1000], vec![(0, 0), (0, 24)]),
    ]
    .into_iter()
    .map(|(dims, around)| case(moved(DType::F32, &dims), around, 0.0, Place::Temp))
    .collect()
}

/// `value`, if the dtype holds it, else 1.
fn held(dtype: DType, value: f32) -> f32 {
    match dtype {
        DType::Bool => 1.0,
        DType::U8 if value < 0.0 => 1.0,
        _ => value,
    }
}

fn case(point: Point, around: Around, value: f32, place: Place) -> Case {
    let list: Vec<String> = around.iter().map(|(a, b)| format!("{a}+{b}")).collect();
    let extra = format!(",around=[{}],value={value}", list.join(","));
    let labels = point.labels_in(place, &extra);
    let (before, after): (Vec<usize>, Vec<usize>) = around.into_iter().unzip();
    let op = Pad {
        before: Dims::new(&before).unwrap_or_default(),
        after: Dims::new(&after).unwrap_or_default(),
        value,
    };
    point.case("pad", op, place, labels)
}
