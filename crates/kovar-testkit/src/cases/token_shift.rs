//! Cases of `token_shift`.

use kovar_core::DType;
use kovar_core::ops::{Op, TokenShift};

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Shift {
    dtype: DType,
    dims: [usize; 2],
    form: Form,
    state_form: Form,
    target: Target,
    /// The run-time scalar with the number of valid tokens; if `None`, all are valid.
    valid: Option<i32>,
    /// Nodes that update the same state, one after another.
    nodes: usize,
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        let base = Shift {
            dtype,
            dims: [7, 65],
            form: Form::Contiguous,
            state_form: Form::Contiguous,
            target: Target::Fresh,
            valid: None,
            nodes: 1,
        };
        for dims in [
            [1, 1],
            [1, 768],
            [2, 1025],
            [5, 4096],
            [64, 33],
            [0, 8],
            [3, 0],
        ] {
            for valid in [None, Some(1)] {
                cases.push(case(Shift {
                    dims,
                    valid,
                    ..base.clone()
                }));
            }
        }
        for form in [
            Form::Offset,
            Form::Gaps,
            Form::Transposed,
            Form::Window,
            Form::Repeated,
        ] {
            for target in [
                Target::Fresh,
                Target::Into(Form::Gaps),
                Target::Into(Form::Transposed),
            ] {
                cases.push(case(Shift {
                    form,
                    target,
                    ..base.clone()
                }));
            }
        }
        for state_form in [Form::Offset, Form::Gaps] {
            for form in [Form::Contiguous, Form::Transposed] {
                cases.push(case(Shift {
                    state_form,
                    form,
                    ..base.clone()
                }));
            }
        }
        for valid in [0, 1, 6, 7, 9] {
            for target in [Target::Fresh, Target::Into(Form::Window)] {
                cases.push(case(Shift {
                    valid: Some(valid),
                    target,
                    ..base.clone()
                }));
            }
        }
        for (nodes, dims) in [(2, [3, 32]), (5, [1, 40])] {
            cases.push(case(Shift {
                nodes,
                dims,
                ..base.clone()
            }));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 2048], [512, 2048]]
        .into_iter()
        .map(|dims| {
            case(Shift {
                dtype: DType::F32,
                dims,
                form: Form::Contiguous,
                state_form: Form::Contiguous,
                target: Target::Fresh,
                valid: None,
                nodes: 1,
            })
        })
        .collect()
}

fn case(shift: Shift) -> Case {
    let valid = shift.valid.map(|valid| format!(",valid={valid}"));
    let shape = format!(
        "{},nodes={}{}",
        sizes(&shift.dims),
        shift.nodes,
        valid.unwrap_or_default()
    );
    let layout = format!(
        "{}-state_{}-{}",
        shift.form.name(),
        shift.state_form.name(),
        shift.target.name()
    );
    let labels = (lower(shift.dtype), shape, layout);
    Case::new("token_shift", "token_shift", labels, move |setup| {
        let Shift {
            dtype, dims, form, ..
        } = shift;
        let n_valid = match shift.valid {
            Some(valid) => Some(setup.scalar("n_valid", 512, valid)?),
            None => None,
        };
        let normal = || Fill::Gaussian(1.0);
        let (place, state_form) = (Place::State, shift.state_form);
        let state = setup.operand("state", place, DType::F32, &dims[1..], state_form, normal())?;
        for node in 0..shift.nodes {
            let name = format!("x{node}");
            let x = setup.operand(&name, Place::Temp, dtype, &dims, form, normal())?;
            let op = Op::from(TokenShift { n_valid });
            if shift.target == Target::Fresh {
                let y = setup.graph.apply(op, &[x, state])?;
                setup.graph.set_output(y, &format!("y{node}"))?;
            } else {
                setup.apply(op, &[x, state], shift.target)?;
            }
        }
        Ok(())
    })
}
