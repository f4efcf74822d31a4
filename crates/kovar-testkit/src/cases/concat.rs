//! Cases of `concat`.

use kovar_core::DType;
use kovar_core::ops::Concat;

use super::sweep::{Point, any_bits, moved, moving};
use super::{Case, Form, Place, Target, plain};

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, point) in moving(&plain()).into_iter().enumerate() {
        let dim = i % point.dims.len();
        let size = point.dims[dim];
        cases.push(case(point, dim, vec![size, 1]));
    }
    for dtype in plain() {
        for dim in 0..3 {
            for (sizes, form, target) in [
                (vec![1, 1], Form::Contiguous, Target::Fresh),
                (vec![2, 3, 1, 5, 2, 1, 4], Form::Gaps, Target::Fresh),
                (vec![0, 3, 0], Form::Contiguous, Target::Into(Form::Window)),
                (vec![2, 17], Form::Repeated, Target::Into(Form::Transposed)),
                (vec![1; 40], Form::Transposed, Target::Into(Form::Gaps)),
            ] {
                let point = moved(dtype, &[3, 4, 9]).laid(form, target);
                cases.push(case(point, dim, sizes));
            }
        }
        let wide = moved(dtype, &[2, 5000]);
        cases.push(case(wide, 1, vec![5000, 1, 20_000]));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let of = |dims: &[usize], dim, sizes| case(moved(DType::F32, dims), dim, sizes);
    vec![
        of(&[1024, 1024], 0, vec![1024, 1024]),
        of(&[1024, 1024], 1, vec![1024, 1024]),
        of(&[4096, 64], 1, vec![64, 64]),
    ]
}

/// Operands of the sizes given along `dim`, the first one in the point's form.
fn case(point: Point, dim: usize, sizes: Vec<usize>) -> Case {
    let list = match sizes.len() {
        0..8 => format!("{sizes:?}"),
        n => format!("[{n} operands]"),
    };
    let labels = point.labels(&format!(",dim={dim},sizes={}", list.replace(' ', "")));
    Case::new("concat", "concat", labels, move |setup| {
        let Point {
            dtype,
            form,
            target,
            ..
        } = point.clone();
        let mut operands = Vec::new();
        for (i, &size) in sizes.iter().enumerate() {
            let mut dims = point.dims.clone();
            dims[dim] = size;
            let (place, form) = match i {
                0 => (Place::Temp, form),
                1 => (Place::Weight, Form::Contiguous),
                _ => (Place::State, form),
            };
            let fill = any_bits(dtype, &dims);
            operands.push(setup.operand(&format!("x{i}"), place, dtype, &dims, form, fill)?);
        }
        setup.apply(Concat { dim }, &operands, target)?;
        Ok(())
    })
}
