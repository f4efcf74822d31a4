//! Cases of `timestep_embedding`.

use kovar_core::DType;
use kovar_core::ops::TimestepEmbedding;

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

/// The time steps of a case.
#[derive(Clone)]
struct Times {
    dtype: DType,
    dims: Vec<usize>,
    form: Form,
    /// All time steps are below this.
    below: f64,
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    let ddpm = TimestepEmbedding::default();
    let stable_diffusion = TimestepEmbedding {
        dim: 320,
        flip_sin_to_cos: true,
        downscale_freq_shift: 0.0,
        ..ddpm
    };
    let flux = TimestepEmbedding {
        dim: 256,
        scale: 1000.0,
        ..stable_diffusion
    };
    for dtype in FLOATS.into_iter().chain([DType::I32]) {
        for op in [ddpm, stable_diffusion, flux] {
            for below in [1.0, 1000.0, 30_000.0] {
                let times = Times {
                    below,
                    ..times(dtype, &[5], Form::Contiguous)
                };
                cases.push(case(op, times, Target::Fresh));
            }
        }
        for dim in [2, 3, 4, 33, 64] {
            for flip_sin_to_cos in [false, true] {
                for downscale_freq_shift in [0.0, 0.5, -1.0] {
                    let op = TimestepEmbedding {
                        dim,
                        flip_sin_to_cos,
                        downscale_freq_shift,
                        ..ddpm
                    };
                    let times = times(dtype, &[3], Form::Offset);
                    cases.push(case(op, times, Target::Fresh));
                }
            }
        }
        for (dims, form, target) in [
            (vec![], Form::Contiguous, Target::Fresh),
            (vec![0], Form::Contiguous, Target::Fresh),
            (vec![2, 3], Form::Transposed, Target::Into(Form::Gaps)),
            (vec![4], Form::Repeated, Target::Into(Form::Transposed)),
            (vec![2, 3, 2], Form::Window, Target::Into(Form::Permuted)),
            (vec![1, 2, 1, 3, 1], Form::Gaps, Target::Into(Form::Window)),
        ] {
            let op = TimestepEmbedding {
                dim: 34,
                max_period: 100.0,
                scale: -0.5,
                ..ddpm
            };
            cases.push(case(op, times(dtype, &dims, form), target));
        }
    }
    // A period below 2 pi makes the angles grow along the row, to 1e8 here.
    let growing = TimestepEmbedding {
        max_period: 1e-4,
        ..stable_diffusion
    };
    let times = Times {
        below: 10_000.0,
        ..times(DType::F32, &[9], Form::Contiguous)
    };
    cases.push(case(growing, times, Target::Fresh));
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let op = TimestepEmbedding::default();
    let of = |n: usize| case(op, times(DType::F32, &[n], Form::Contiguous), Target::Fresh);
    vec![of(1), of(512)]
}

fn times(dtype: DType, dims: &[usize], form: Form) -> Times {
    Times {
        dtype,
        dims: dims.to_vec(),
        form,
        below: 1000.0,
    }
}

fn case(op: TimestepEmbedding, times: Times, target: Target) -> Case {
    let flip = if op.flip_sin_to_cos {
        "cos_sin"
    } else {
        "sin_cos"
    };
    let labels = (
        lower(times.dtype),
        format!(
            "t={},below={},dim={},{flip},shift={},scale={},max_period={}",
            sizes(&times.dims),
            times.below,
            op.dim,
            op.downscale_freq_shift,
            op.scale,
            op.max_period
        ),
        format!("{}-{}", times.form.name(), target.name()),
    );
    Case::new(
        "timestep_embedding",
        "timestep_embedding",
        labels,
        move |setup| {
            let Times {
                dtype,
                dims,
                form,
                below,
            } = times.clone();
            let count: usize = dims.iter().product();
            let time = |i: usize| below * (1.0 - (i as f64 * 0.37).fract()) - below / 1024.0;
            let fill = match dtype {
                DType::I32 => Fill::Indices((0..count).map(|i| time(i) as i64).collect()),
                _ => Fill::Values((0..count).map(time).collect()),
            };
            let t = setup.operand("t", Place::Input, dtype, &dims, form, fill)?;
            setup.apply(op, &[t], target)?;
            Ok(())
        },
    )
}
