//! Cases of `set_rows`.

use kovar_core::DType;
use kovar_core::ops::dtypes::ENCODED;

use super::sweep::{any_bits, hard};
use super::{Case, FLOATS, Form, Place, lower, sizes, stored};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Write {
    x: DType,
    destination: DType,
    /// The destination's rows and each row's dims.
    rows: usize,
    row: Vec<usize>,
    ids: Ids,
    x_form: Form,
    form: Form,
    place: Place,
    /// What the destination holds before the run.
    before: Option<Fill>,
    x_fill: Fill,
}

#[derive(Clone, Copy)]
enum Ids {
    /// Consecutive rows from this one on.
    From(i64, usize),
    /// Rows in no order, some of them masked (-1) or outside.
    Scattered(usize),
    /// All of them masked.
    Masked(usize),
    /// Every row, the last first.
    Reversed,
}

impl Ids {
    fn label(self) -> String {
        match self {
            Ids::From(from, n) => format!("{n}_from_{from}"),
            Ids::Scattered(n) => format!("{n}_scattered"),
            Ids::Masked(n) => format!("{n}_masked"),
            Ids::Reversed => "reversed".to_owned(),
        }
    }

    fn list(self, rows: usize) -> Vec<i64> {
        let rows = rows as i64;
        match self {
            Ids::From(from, n) => (from..from + n as i64).collect(),
            // 5 and the row counts in use have no common factor, so the valid ones differ.
            Ids::Scattered(n) => (0..n as i64)
                .map(|i| match i % 4 {
                    1 => [-1, rows, i32::MIN.into(), i32::MAX.into()][i as usize / 4 % 4],
                    _ => (i * 5 + 3) % rows,
                })
                .collect(),
            Ids::Masked(n) => vec![-1; n],
            Ids::Reversed => (0..rows).rev().collect(),
        }
    }
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for x in FLOATS {
        for &destination in ENCODED {
            let blocks = destination.is_quantized();
            let base = Write {
                x,
                destination,
                rows: 13,
                row: if blocks { vec![3, 64] } else { vec![3, 37] },
                ids: Ids::Scattered(9),
                x_form: Form::Contiguous,
                form: Form::Contiguous,
                place: Place::State,
                before: Some(Fill::Gaussian(1.0)),
                x_fill: Fill::Gaussian(1.0),
            };
            let ids = [
                Ids::From(0, 1),
                Ids::From(12, 1),
                Ids::From(4, 5),
                Ids::From(-2, 4),
                Ids::From(11, 4),
                Ids::Masked(3),
                Ids::Reversed,
                Ids::From(0, 0),
            ];
            cases.extend(ids.map(|ids| {
                case(Write {
                    ids,
                    ..base.clone()
                })
            }));
            let rows: [&[usize]; 3] = if blocks {
                [&[32], &[288], &[2, 3, 32]]
            } else {
                [&[1], &[257], &[2, 3, 5]]
            };
            cases.extend(rows.map(|row| {
                case(Write {
                    row: row.to_vec(),
                    ..base.clone()
                })
            }));
            for form in [Form::Offset, Form::Gaps, Form::Permuted, Form::Window] {
                for x_form in [Form::Contiguous, Form::Window, Form::Transposed] {
                    cases.push(case(Write {
                        form,
                        x_form,
                        ..base.clone()
                    }));
                }
            }
            for place in [Place::State, Place::Temp] {
                cases.push(case(Write {
                    place,
                    before: None,
                    ..base.clone()
                }));
            }
            let large = if blocks {
                Fill::Large(200.0)
            } else {
                Fill::large(x)
            };
            for x_fill in [Fill::Small, large] {
                cases.push(case(Write {
                    x_fill,
                    ..base.clone()
                }));
            }
        }
    }
    for dtype in stored() {
        for (form, x_form) in [
            (Form::Contiguous, Form::Contiguous),
            (Form::Gaps, Form::Window),
            (Form::Window, Form::Transposed),
            (Form::Permuted, Form::Repeated),
        ] {
            for (ids, n) in [
                (Ids::Scattered(9), 9),
                (Ids::From(-2, 4), 4),
                (Ids::Reversed, 13),
            ] {
                cases.push(case(Write {
                    x: dtype,
                    destination: dtype,
                    rows: 13,
                    row: vec![3, 37],
                    ids,
                    x_form,
                    form,
                    place: Place::State,
                    before: Some(any_bits(dtype, &[13, 3, 37])),
                    x_fill: any_bits(dtype, &[n, 3, 37]),
                }));
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let shapes = [(1, DType::F16), (512, DType::F16), (512, DType::Q8_0)];
    shapes
        .into_iter()
        .map(|(n, destination)| {
            case(Write {
                x: DType::F32,
                destination,
                rows: 4096,
                row: vec![8, 128],
                ids: Ids::From(1000, n),
                x_form: Form::Contiguous,
                form: Form::Contiguous,
                place: Place::State,
                before: None,
                x_fill: Fill::Gaussian(1.0),
            })
        })
        .collect()
}

fn case(write: Write) -> Case {
    let hard = hard(&write.x_fill);
    let before = if write.before.is_some() {
        ""
    } else {
        "-over_nan"
    };
    let labels = (
        format!("{}-{}", lower(write.x), lower(write.destination)),
        format!(
            "rows={},row={},ids={}{hard}",
            write.rows,
            sizes(&write.row),
            write.ids.label()
        ),
        format!(
            "{}-into_{}_{}{before}",
            write.x_form.name(),
            write.place.name(),
            write.form.name()
        ),
    );
    Case::new("set_rows", "set_rows", labels, move |setup| {
        let Write {
            x,
            destination,
            rows,
            row,
            ids,
            x_form,
            form,
            place,
            before,
            x_fill,
        } = write.clone();
        let ids = ids.list(rows);
        let with_row = |n: usize| [&[n], row.as_slice()].concat();
        let x = setup.operand("x", Place::Temp, x, &with_row(ids.len()), x_form, x_fill)?;
        let into = setup.window("cache", place, destination, &with_row(rows), form)?;
        if let Some(before) = before {
            setup.fill(into, before);
        }
        let ids = setup.indices("ids", &[ids.len()], Form::Contiguous, ids)?;
        setup.graph.set_rows(into, x, ids)?;
        Ok(())
    })
}
