//! Cases of `group_norm`.

use kovar_core::DType;
use kovar_core::ops::GroupNorm;

use super::factors::{Factor, WEIGHT, add_labels, operands};
use super::sweep::hard;
use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Norm {
    dtype: DType,
    dims: Vec<usize>,
    groups: usize,
    eps: f32,
    form: Form,
    target: Target,
    fill: Fill,
    factors: Vec<Factor>,
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        let base = Norm {
            dtype,
            dims: vec![2, 6, 5, 7],
            groups: 3,
            eps: 1e-5,
            form: Form::Contiguous,
            target: Target::Fresh,
            fill: Fill::Gaussian(1.0),
            factors: vec![WEIGHT; 2],
        };
        let shapes: [(&[usize], usize); 14] = [
            (&[3, 5, 64, 2], 1),
            (&[3, 5, 64, 2], 5),
            (&[2, 32, 16, 16], 8),
            (&[2, 32, 16, 16], 32),
            (&[2, 12, 33], 4),
            (&[2, 12], 4),
            (&[2, 12], 1),
            (&[1, 4, 3, 5, 7], 2),
            (&[2, 2, 2, 3, 1, 5], 2),
            (&[1, 2, 130, 130], 1),
            (&[1, 1, 1], 1),
            (&[0, 4, 8], 2),
            (&[2, 0, 8], 2),
            (&[2, 4, 0], 2),
        ];
        for (dims, groups) in shapes {
            for target in [Target::Fresh, Target::InPlace(0)] {
                cases.push(case(Norm {
                    dims: dims.to_vec(),
                    groups,
                    target,
                    ..base.clone()
                }));
            }
        }
        for form in Form::ALL {
            for target in [
                Target::Fresh,
                Target::InPlace(0),
                Target::Into(Form::Gaps),
                Target::Into(Form::Permuted),
                Target::Into(Form::Window),
            ] {
                if form == Form::Repeated && target == Target::InPlace(0) {
                    continue;
                }
                cases.push(case(Norm {
                    form,
                    target,
                    ..base.clone()
                }));
            }
        }
        // Channels of one element: groups are rows.
        for form in Form::ALL {
            for (dims, groups) in [
                (vec![3, 66, 1], 3),
                (vec![2, 6, 1, 1], 2),
                (vec![2, 2100, 1], 2),
            ] {
                cases.push(case(Norm {
                    dims,
                    groups,
                    form,
                    factors: vec![(dtype, Place::Input, Form::Contiguous); 2],
                    ..base.clone()
                }));
            }
        }
        for factor in FLOATS {
            for form in [Form::Contiguous, Form::Gaps, Form::Repeated] {
                for count in [1, 2] {
                    cases.push(case(Norm {
                        factors: vec![(factor, Place::Input, form); count],
                        ..base.clone()
                    }));
                }
            }
        }
        for fill in [Fill::Small, Fill::large(dtype), Fill::Positive] {
            cases.push(case(Norm {
                fill,
                factors: vec![],
                ..base.clone()
            }));
        }
        for eps in [0.0, 1e-12, 1.0] {
            cases.push(case(Norm {
                eps,
                ..base.clone()
            }));
        }
    }
    // A group of 16 Mi elements whose mean is as large as their deviation.
    cases.push(case(Norm {
        dims: vec![1, 4, 2048, 2048],
        groups: 1,
        target: Target::InPlace(0),
        fill: Fill::Positive,
        ..perf_case(&[], 1)
    }));
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let shapes: [(&[usize], usize); 3] = [
        (&[2, 320, 64, 64], 32),
        (&[1, 128, 512, 512], 32),
        (&[1, 4, 2048, 2048], 1),
    ];
    shapes
        .into_iter()
        .map(|(dims, groups)| case(perf_case(dims, groups)))
        .collect()
}

fn perf_case(dims: &[usize], groups: usize) -> Norm {
    Norm {
        dtype: DType::F32,
        dims: dims.to_vec(),
        groups,
        eps: 1e-5,
        form: Form::Contiguous,
        target: Target::Fresh,
        fill: Fill::Gaussian(1.0),
        factors: vec![WEIGHT; 2],
    }
}

fn case(norm: Norm) -> Case {
    let fill = match &norm.fill {
        Fill::Positive => ",positive",
        fill => hard(fill),
    };
    let shape = format!(
        "{},groups={},eps={:e}{fill}",
        sizes(&norm.dims),
        norm.groups,
        norm.eps
    );
    let layout = format!("{}-{}", norm.form.name(), norm.target.name());
    let mut labels = (lower(norm.dtype), shape, layout);
    add_labels(&mut labels, &norm.factors);
    Case::new("group_norm", "group_norm", labels, move |setup| {
        let Norm {
            dtype,
            dims,
            groups,
            eps,
            form,
            target,
            fill,
            factors,
        } = norm.clone();
        let mut inputs = vec![setup.operand("x", Place::Temp, dtype, &dims, form, fill)?];
        inputs.extend(operands(setup, &factors, dims[1])?);
        setup.apply(GroupNorm { groups, eps }, &inputs, target)?;
        Ok(())
    })
}
