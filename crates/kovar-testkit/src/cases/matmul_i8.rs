//! Cases of `matmul_i8`.

use kovar_core::DType;
use kovar_core::ops::MatmulI8;

use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::{Fill, Random};

#[derive(Clone)]
struct Product {
    x: DType,
    n: usize,
    /// Dims of `x`.
    dims: Vec<usize>,
    place: Place,
    w_form: Form,
    scales_form: Form,
    x_form: Form,
    target: Target,
}

impl Product {
    fn new(x: DType, n: usize, dims: &[usize]) -> Self {
        Self {
            x,
            n,
            dims: dims.to_vec(),
            place: Place::Weight,
            w_form: Form::Contiguous,
            scales_form: Form::Contiguous,
            x_form: Form::Contiguous,
            target: Target::Fresh,
        }
    }
}

const SHAPES: [(usize, &[usize]); 16] = [
    (33, &[97]),
    (64, &[1, 129]),
    (5, &[2, 577]),
    (33, &[5, 96]),
    (17, &[7, 31]),
    (16, &[8, 64]),
    (17, &[9, 65]),
    (200, &[33, 300]),
    (7, &[2, 3, 40]),
    (7, &[2, 2, 5, 40]),
    (1, &[20, 64]),
    (12, &[3, 0]),
    (0, &[3, 8]),
    (4, &[0, 8]),
    (3, &[70, 513]),
    (3, &[1, 70_000]),
];

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for x in FLOATS.into_iter().chain([DType::I8]) {
        for (n, dims) in SHAPES {
            let place = match n * dims.iter().product::<usize>() {
                0 => Place::Temp,
                _ => Place::Weight,
            };
            cases.push(case(Product {
                place,
                ..Product::new(x, n, dims)
            }));
        }
        for dims in [vec![2, 3, 33], vec![3, 5, 65]] {
            let base = Product::new(x, 19, &dims);
            for form in Form::ALL {
                if form.applies(DType::I8, 2) {
                    for place in [Place::Weight, Place::State] {
                        cases.push(case(Product {
                            w_form: form,
                            place,
                            ..base.clone()
                        }));
                    }
                }
                if form != Form::Contiguous && form.applies(x, 3) {
                    cases.push(case(Product {
                        x_form: form,
                        ..base.clone()
                    }));
                }
                if form != Form::Contiguous && form.applies(DType::F32, 1) {
                    cases.push(case(Product {
                        scales_form: form,
                        ..base.clone()
                    }));
                }
                if !matches!(form, Form::Contiguous | Form::Repeated) {
                    cases.push(case(Product {
                        target: Target::Into(form),
                        ..base.clone()
                    }));
                }
            }
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let mut cases = Vec::new();
    for x in [DType::F32, DType::I8] {
        for m in [1, 128] {
            cases.push(case(Product::new(x, 2048, &[m, 2048])));
        }
    }
    cases
}

/// Every code from -128 to 127.
fn codes(count: usize, name: &str) -> Fill {
    let mut random = Random::of_name(name);
    let code = |_| random.below(256) as i64 - 128;
    Fill::Indices((0..count).map(code).collect())
}

fn case(product: Product) -> Case {
    let Product {
        n,
        place,
        x_form,
        target,
        ..
    } = product;
    let shape = format!("n={n},x={}", sizes(&product.dims));
    let layout = format!(
        "{}_{}-scales_{}-x_{}-{}",
        place.name(),
        product.w_form.name(),
        product.scales_form.name(),
        x_form.name(),
        target.name()
    );
    let labels = (format!("i8x{}", lower(product.x)), shape, layout);
    Case::new("matmul_i8", "matmul_i8", labels, move |setup| {
        let p = product.clone();
        let (outer, k) = (&p.dims[..p.dims.len() - 1], p.dims[p.dims.len() - 1]);
        let w_fill = codes(n * k, "w");
        let w = setup.operand("w", place, DType::I8, &[n, k], p.w_form, w_fill)?;
        let fill_scales = Fill::Gaussian(0.01);
        let scales = setup.operand(
            "scales",
            place,
            DType::F32,
            &[n],
            p.scales_form,
            fill_scales.clone(),
        )?;
        let x_fill = match p.x {
            DType::I8 => codes(p.dims.iter().product(), "x"),
            _ => Fill::Gaussian(1.0),
        };
        let x = setup.operand("x", Place::Temp, p.x, &p.dims, x_form, x_fill)?;
        let mut inputs = vec![w, scales, x];
        if p.x == DType::I8 {
            let form = match outer.len() {
                0 => Form::Contiguous,
                _ => Form::Gaps,
            };
            let (f32, fill) = (DType::F32, fill_scales);
            inputs.push(setup.operand("x_scale", Place::Temp, f32, outer, form, fill)?);
        }
        setup.apply(MatmulI8, &inputs, target)?;
        Ok(())
    })
}
