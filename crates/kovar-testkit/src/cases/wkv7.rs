//! Cases of `wkv7`.

use kovar_core::DType;
use kovar_core::error::GraphError;
use kovar_core::ops::{Op, Wkv7};

use super::{Case, FLOATS, Form, Place, Setup, Target, lower, sizes};
use crate::synthetic::{Fill, Random};

/// The number of valid tokens.
#[derive(Clone, Copy)]
enum Valid {
    All,
    /// A run-time scalar of this value.
    Scalar(i32),
}

#[derive(Clone)]
struct Recurrence {
    dtype: DType,
    dims: [usize; 3],
    form: Form,
    state_form: Form,
    target: Target,
    valid: Valid,
    /// Nodes that update the same state, one after another.
    nodes: usize,
    /// Whether the vectors are as a model makes them, or normally distributed with deviation 0.3.
    model: bool,
}

const NAMES: [&str; 6] = ["r", "w", "k", "v", "a", "b"];

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        let base = Recurrence {
            dtype,
            dims: [5, 3, 32],
            form: Form::Contiguous,
            state_form: Form::Contiguous,
            target: Target::Fresh,
            valid: Valid::All,
            nodes: 1,
            model: true,
        };
        let shapes = [
            [1, 1, 1],
            [1, 2, 64],
            [1, 12, 64],
            [37, 2, 64],
            [1, 3, 5],
            [9, 2, 17],
            [4, 3, 33],
            [3, 1, 128],
            [3, 1, 256],
            [2, 2, 301],
            [6, 5, 8],
            [0, 2, 16],
            [2, 0, 16],
        ];
        for dims in shapes {
            for model in [true, false] {
                cases.push(case(Recurrence {
                    dims,
                    model,
                    ..base.clone()
                }));
            }
        }
        for form in [
            Form::Offset,
            Form::Gaps,
            Form::Permuted,
            Form::Transposed,
            Form::Window,
            Form::Repeated,
        ] {
            for target in [Target::Fresh, Target::Into(form)] {
                if form == Form::Repeated && target != Target::Fresh {
                    continue;
                }
                cases.push(case(Recurrence {
                    form,
                    target,
                    ..base.clone()
                }));
            }
            if form != Form::Repeated {
                cases.push(case(Recurrence {
                    state_form: form,
                    ..base.clone()
                }));
            }
        }
        for valid in [0, 1, 4, 5, 7] {
            for form in [Form::Contiguous, Form::Permuted] {
                cases.push(case(Recurrence {
                    valid: Valid::Scalar(valid),
                    form,
                    ..base.clone()
                }));
            }
        }
        for (nodes, dims) in [(2, [3, 2, 64]), (6, [1, 3, 32]), (3, [2, 2, 7])] {
            cases.push(case(Recurrence {
                nodes,
                dims,
                ..base.clone()
            }));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [[1, 16, 64], [1, 32, 64], [64, 32, 64], [512, 32, 64]]
        .into_iter()
        .map(|dims| {
            case(Recurrence {
                dtype: DType::F32,
                dims,
                form: Form::Contiguous,
                state_form: Form::Contiguous,
                target: Target::Fresh,
                valid: Valid::All,
                nodes: 1,
                model: true,
            })
        })
        .collect()
}

/// Vectors as the model makes them: decays between exp(-0.61) and 1, a removal key of length 1,
/// and a rate between 0 and 1.
fn model_vectors(random: &mut Random, count: usize, n: usize) -> [Vec<f64>; 6] {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut normal = || (0..count).map(|_| random.gaussian()).collect::<Vec<f64>>();
    let [r, decays, k, v, mut removal, rates] = std::array::from_fn(|_| normal());
    for head in removal.chunks_exact_mut(n.max(1)) {
        let length = head.iter().map(|x| x * x).sum::<f64>().sqrt();
        head.iter_mut().for_each(|x| *x /= length);
    }
    let b = removal
        .iter()
        .zip(&rates)
        .map(|(kk, rate)| kk * sigmoid(*rate));
    let b = b.collect();
    let w = decays.iter().map(|x| (-0.606531 * sigmoid(2.0 * x)).exp());
    let w = w.collect();
    removal.iter_mut().for_each(|x| *x = -*x);
    [r, w, k, v, removal, b]
}

fn case(recurrence: Recurrence) -> Case {
    let Recurrence {
        dtype, dims, nodes, ..
    } = recurrence;
    let valid = match recurrence.valid {
        Valid::All => String::new(),
        Valid::Scalar(valid) => format!(",valid={valid}"),
    };
    let kind = if recurrence.model { "" } else { ",gaussian" };
    let shape = format!("{},nodes={nodes}{valid}{kind}", sizes(&dims));
    let layout = format!(
        "{}-state_{}-{}",
        recurrence.form.name(),
        recurrence.state_form.name(),
        recurrence.target.name()
    );
    Case::new(
        "wkv7",
        "wkv7",
        (lower(dtype), shape, layout),
        move |setup| build(setup, &recurrence),
    )
}

fn build(setup: &mut Setup, recurrence: &Recurrence) -> Result<(), GraphError> {
    let Recurrence {
        dtype, dims, form, ..
    } = *recurrence;
    let [_, heads, n] = dims;
    let n_valid = match recurrence.valid {
        Valid::All => None,
        Valid::Scalar(valid) => Some(setup.scalar("n_valid", 512, valid)?),
    };
    let state = setup.operand(
        "state",
        Place::State,
        DType::F32,
        &[heads, n, n],
        recurrence.state_form,
        Fill::Gaussian(1.0),
    )?;
    let mut random = Random::new(7);
    for node in 0..recurrence.nodes {
        let vectors = model_vectors(&mut random, dims.iter().product(), n);
        let mut inputs = Vec::new();
        for (name, values) in NAMES.iter().zip(vectors) {
            let fill = if recurrence.model && form != Form::Repeated {
                Fill::Values(values)
            } else {
                Fill::Gaussian(0.3)
            };
            let name = format!("{name}{node}");
            inputs.push(setup.operand(&name, Place::Temp, dtype, &dims, form, fill)?);
        }
        inputs.push(state);
        let op = Op::from(Wkv7 { n_valid });
        match recurrence.target {
            Target::Fresh => {
                let y = setup.graph.apply(op, &inputs)?;
                setup.graph.set_output(y, &format!("y{node}"))?;
            }
            target => {
                setup.apply(op, &inputs, target)?;
            }
        }
    }
    Ok(())
}
