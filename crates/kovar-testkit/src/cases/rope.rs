//! Cases of `rope`.

use kovar_core::DType;
use kovar_core::ops::{Pairing, Rope, RopeSpec};

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Turn {
    dtype: DType,
    dims: Vec<usize>,
    n_rot: usize,
    pairing: Pairing,
    form: Form,
    table_form: Form,
    target: Target,
    /// The first token's position.
    from: i32,
    fill: Fill,
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for pairing in [Pairing::Normal, Pairing::Neox] {
            let base = Turn {
                dtype,
                dims: vec![2, 5, 3, 64],
                n_rot: 64,
                pairing,
                form: Form::Contiguous,
                table_form: Form::Contiguous,
                target: Target::InPlace(0),
                from: 7,
                fill: Fill::Gaussian(1.0),
            };
            let shapes: [(&[usize], usize); 9] = [
                (&[1, 1, 2], 2),
                (&[1, 9, 64], 64),
                (&[7, 2, 128], 128),
                (&[7, 2, 128], 32),
                (&[3, 5, 4, 80], 20),
                (&[2, 1, 3, 33], 32),
                (&[2, 3, 2, 96], 0),
                (&[0, 2, 64], 64),
                (&[1, 2, 1, 3, 2, 16], 16),
            ];
            for (dims, n_rot) in shapes {
                for target in [Target::InPlace(0), Target::Fresh] {
                    cases.push(case(Turn {
                        dims: dims.to_vec(),
                        n_rot,
                        target,
                        ..base.clone()
                    }));
                }
            }
            for form in Form::ALL {
                let targets = [
                    Target::InPlace(0),
                    Target::Fresh,
                    Target::Into(Form::Window),
                ];
                for target in targets {
                    if form == Form::Repeated && target == Target::InPlace(0) {
                        continue;
                    }
                    cases.push(case(Turn {
                        form,
                        target,
                        n_rot: 48,
                        ..base.clone()
                    }));
                }
            }
            for table_form in [Form::Offset, Form::Gaps, Form::Permuted, Form::Repeated] {
                cases.push(case(Turn {
                    table_form,
                    ..base.clone()
                }));
            }
            for from in [0, 100_000] {
                cases.push(case(Turn {
                    from,
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
    let dims: [&[usize]; 2] = [&[1, 32, 128], &[512, 32, 128]];
    dims.into_iter()
        .map(|dims| {
            case(Turn {
                dtype: DType::F32,
                dims: dims.to_vec(),
                n_rot: 128,
                pairing: Pairing::Normal,
                form: Form::Contiguous,
                table_form: Form::Contiguous,
                target: Target::InPlace(0),
                from: 0,
                fill: Fill::Gaussian(1.0),
            })
        })
        .collect()
}

fn case(turn: Turn) -> Case {
    let pairing = format!("{:?}", turn.pairing).to_lowercase();
    let hard = match turn.fill {
        Fill::Small => ",small",
        Fill::Large(_) => ",large",
        _ => "",
    };
    let shape = format!(
        "{},n_rot={},{pairing},from={}{hard}",
        sizes(&turn.dims),
        turn.n_rot,
        turn.from
    );
    let layout = format!(
        "{}-table_{}-{}",
        turn.form.name(),
        turn.table_form.name(),
        turn.target.name()
    );
    Case::new(
        "rope",
        "rope",
        (lower(turn.dtype), shape, layout),
        move |setup| {
            let Turn {
                dtype,
                dims,
                n_rot,
                pairing,
                form,
                table_form,
                target,
                from,
                fill,
            } = turn.clone();
            let tokens = dims[dims.len() - 3];
            let spec = RopeSpec::new(n_rot, 10_000.0);
            let mut table = vec![0.0; tokens * spec.row_len()];
            let positions: Vec<i32> = (from..).take(tokens).collect();
            if n_rot > 0 {
                spec.angles().fill_table(&positions, &mut table);
            }
            let angles = Fill::Values(table.into_iter().map(f64::from).collect());
            let x = setup.operand("x", Place::Temp, dtype, &dims, form, fill)?;
            let table_dims = [tokens, n_rot / 2, 2];
            let table = setup.operand(
                "table",
                Place::Input,
                DType::F32,
                &table_dims,
                table_form,
                angles,
            )?;
            setup.apply(Rope { pairing }, &[x, table], target)?;
            Ok(())
        },
    )
}
