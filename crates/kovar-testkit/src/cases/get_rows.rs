//! Cases of `get_rows`.

use kovar_core::DType;
use kovar_core::ops::GetRows;

use super::sweep::any_bits;
use super::{Case, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

/// The table of a case.
#[derive(Clone)]
struct Lookup {
    dtype: DType,
    rows: usize,
    n: usize,
    form: Form,
    place: Place,
    fill: Fill,
    /// Dims and form of the indices.
    ids: (Vec<usize>, Form),
    target: Target,
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in DType::ALL {
        let block = dtype.block_len();
        let lengths = match block {
            1 => vec![1, 33, 64, 577],
            32 => vec![32, 96, 576],
            _ => vec![256, 768],
        };
        let fill = |n: usize| {
            if dtype.is_integer() {
                any_bits(dtype, &[11, n])
            } else {
                Fill::Gaussian(1.0)
            }
        };
        let base = Lookup {
            dtype,
            rows: 11,
            n: lengths[1],
            form: Form::Contiguous,
            place: Place::Weight,
            fill: fill(lengths[1]),
            ids: (vec![7], Form::Contiguous),
            target: Target::Fresh,
        };
        for &n in &lengths {
            for place in [Place::Weight, Place::State] {
                cases.push(case(Lookup {
                    n,
                    fill: fill(n),
                    place,
                    ..base.clone()
                }));
            }
        }
        let other_ids = [
            (vec![], Form::Contiguous),
            (vec![1], Form::Contiguous),
            (vec![0], Form::Contiguous),
            (vec![33], Form::Offset),
            (vec![3, 5], Form::Transposed),
            (vec![2, 3, 4], Form::Window),
            (vec![4, 3], Form::Repeated),
            (vec![1, 2, 1, 2, 3], Form::Contiguous),
        ];
        for ids in other_ids {
            cases.push(case(Lookup {
                ids,
                ..base.clone()
            }));
        }
        let forms = [Form::Offset, Form::Gaps, Form::Window, Form::Transposed];
        for form in forms.into_iter().filter(|form| form.applies(dtype, 2)) {
            for place in [Place::Weight, Place::Input, Place::Temp] {
                cases.push(case(Lookup {
                    form,
                    place,
                    ..base.clone()
                }));
            }
        }
        for into in [Form::Offset, Form::Gaps, Form::Window, Form::Transposed] {
            cases.push(case(Lookup {
                target: Target::Into(into),
                ids: (vec![2, 3], Form::Contiguous),
                ..base.clone()
            }));
        }
        if dtype.is_integer() {
            continue;
        }
        for fill in [Fill::RandomBlocks, Fill::Small, Fill::large(dtype)] {
            cases.push(case(Lookup {
                fill,
                ids: (vec![13], Form::Contiguous),
                ..base.clone()
            }));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let dtypes = [DType::F16, DType::Q8_0, DType::Q4K];
    dtypes
        .into_iter()
        .map(|dtype| {
            case(Lookup {
                dtype,
                rows: 4096,
                n: 2048,
                form: Form::Contiguous,
                place: Place::Weight,
                fill: Fill::RandomBlocks,
                ids: (vec![512], Form::Contiguous),
                target: Target::Fresh,
            })
        })
        .collect()
}

/// Indices over the whole table, with one before it, one after it and the extremes of i32 if there
/// are enough indices.
fn ids(count: usize, rows: usize) -> Vec<i64> {
    let outside = [-1, rows as i64, i32::MIN.into(), i32::MAX.into()];
    let id = |i: usize| match i % 5 {
        3 => outside[i / 5 % outside.len()],
        _ => (i * 7 + rows - 1) as i64 % rows as i64,
    };
    (0..count).map(id).collect()
}

fn case(lookup: Lookup) -> Case {
    let Lookup {
        dtype,
        rows,
        n,
        form,
        place,
        fill,
        ids: (id_dims, id_form),
        target,
    } = lookup;
    let hard = match fill {
        Fill::Gaussian(_) | Fill::Indices(_) | Fill::Bytes(_) => "",
        Fill::Small => ",small",
        Fill::Large(_) => ",large",
        _ => ",random_blocks",
    };
    let labels = (
        lower(dtype),
        format!("rows={rows},n={n},ids={}{hard}", sizes(&id_dims)),
        format!(
            "{}_{}-ids_{}-{}",
            place.name(),
            form.name(),
            id_form.name(),
            target.name()
        ),
    );
    Case::new("get_rows", "get_rows", labels, move |setup| {
        let table = setup.operand("table", place, dtype, &[rows, n], form, fill.clone())?;
        let count = id_dims.iter().product();
        let ids = setup.indices("ids", &id_dims, id_form, ids(count, rows))?;
        setup.apply(GetRows, &[table, ids], target)?;
        Ok(())
    })
}
