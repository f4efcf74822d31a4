//! Cases of `rope_apply`.

use kovar_core::DType;
use kovar_core::ops::{Op, Pairing, RopeApply, RopeSpec};

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

/// What the table's matrices are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Matrices {
    /// Rotations by the angles of positions from this one on.
    Rotations(i32),
    /// Four unrelated numbers: nothing may follow from one entry for another.
    Any,
}

#[derive(Clone)]
struct Turn {
    dtype: DType,
    dims: [usize; 4],
    pairing: Pairing,
    form: Form,
    table_form: Form,
    /// In place means the window of `x` with tokens and heads swapped.
    target: Target,
    matrices: Matrices,
    fill: Fill,
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for pairing in [Pairing::Normal, Pairing::Neox] {
            let base = Turn {
                dtype,
                dims: [2, 5, 3, 64],
                pairing,
                form: Form::Contiguous,
                table_form: Form::Contiguous,
                target: Target::Fresh,
                matrices: Matrices::Rotations(7),
                fill: Fill::Gaussian(1.0),
            };
            let shapes = [
                [1, 1, 1, 2],
                [1, 9, 1, 64],
                [2, 1, 7, 32],
                [1, 7, 2, 128],
                [3, 5, 4, 80],
                [2, 11, 3, 34],
                [2, 3, 2, 6],
                [1, 0, 2, 64],
                [2, 3, 2, 0],
            ];
            for dims in shapes {
                for target in [Target::Fresh, Target::InPlace(0)] {
                    cases.push(case(Turn {
                        dims,
                        target,
                        ..base.clone()
                    }));
                }
            }
            for form in Form::ALL {
                let targets = [
                    Target::Fresh,
                    Target::InPlace(0),
                    Target::Into(Form::Permuted),
                    Target::Into(Form::Window),
                ];
                for target in targets {
                    if form == Form::Repeated && target == Target::InPlace(0) {
                        continue;
                    }
                    cases.push(case(Turn {
                        form,
                        target,
                        matrices: Matrices::Any,
                        ..base.clone()
                    }));
                }
            }
            for table_form in [
                Form::Offset,
                Form::Gaps,
                Form::Permuted,
                Form::Transposed,
                Form::Repeated,
            ] {
                cases.push(case(Turn {
                    table_form,
                    matrices: Matrices::Any,
                    ..base.clone()
                }));
            }
            for from in [0, 100_000] {
                cases.push(case(Turn {
                    matrices: Matrices::Rotations(from),
                    ..base.clone()
                }));
            }
            for fill in [Fill::Small, Fill::large(dtype)] {
                cases.push(case(Turn {
                    fill,
                    ..base.clone()
                }));
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 1, 32, 128], [2, 4096, 24, 64]]
        .into_iter()
        .map(|dims| {
            case(Turn {
                dtype: DType::F32,
                dims,
                pairing: Pairing::Normal,
                form: Form::Contiguous,
                table_form: Form::Contiguous,
                target: Target::Fresh,
                matrices: Matrices::Rotations(0),
                fill: Fill::Gaussian(1.0),
            })
        })
        .collect()
}

/// `cos, -sin, sin, cos` of every pair for each position.
fn rotations(from: i32, tokens: usize, d: usize) -> Fill {
    let spec = RopeSpec::new(d, 10_000.0);
    let mut angles = vec![0.0; tokens * spec.row_len()];
    let positions: Vec<i32> = (from..).take(tokens).collect();
    spec.angles().fill_table(&positions, &mut angles);
    let matrices = angles.as_chunks::<2>().0.iter();
    let matrices = matrices.flat_map(|&[cos, sin]| [cos, -sin, sin, cos]);
    Fill::Values(matrices.map(f64::from).collect())
}

fn case(turn: Turn) -> Case {
    let pairing = format!("{:?}", turn.pairing).to_lowercase();
    let hard = match turn.fill {
        Fill::Small => ",small",
        Fill::Large(_) => ",large",
        _ => "",
    };
    let matrices = match turn.matrices {
        Matrices::Rotations(from) => format!("from={from}"),
        Matrices::Any => "any".to_owned(),
    };
    let shape = format!("{},{pairing},{matrices}{hard}", sizes(&turn.dims));
    let layout = format!(
        "{}-table_{}-{}",
        turn.form.name(),
        turn.table_form.name(),
        turn.target.name()
    );
    let labels = (lower(turn.dtype), shape, layout);
    Case::new("rope_apply", "rope_apply", labels, move |setup| {
        let Turn {
            dtype,
            dims,
            pairing,
            form,
            table_form,
            target,
            matrices,
            fill,
        } = turn.clone();
        let [_, tokens, _, d] = dims;
        let matrices = match matrices {
            Matrices::Rotations(from) => rotations(from, tokens, d),
            Matrices::Any => Fill::Gaussian(1.0),
        };
        let matrices = match (table_form, matrices) {
            // One row for all tokens.
            (Form::Repeated, _) => Fill::Gaussian(1.0),
            (_, matrices) => matrices,
        };
        let x = setup.operand("x", Place::Temp, dtype, &dims, form, fill)?;
        let table = setup.operand(
            "table",
            Place::Input,
            DType::F32,
            &[tokens, d / 2, 2, 2],
            table_form,
            matrices,
        )?;
        match target {
            Target::InPlace(_) => setup.graph.rope_apply_in_place(x, table, pairing)?,
            target => setup.apply(Op::from(RopeApply { pairing }), &[x, table], target)?,
        };
        Ok(())
    })
}
