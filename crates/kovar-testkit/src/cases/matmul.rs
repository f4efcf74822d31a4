//! Cases of `matmul`.

use kovar_core::DType;
use kovar_core::ops::{Matmul, Precision};

use super::{Case, FLOATS, Form, Place, Target, lower, sizes, weights};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Product {
    w: DType,
    x: DType,
    n: usize,
    k: usize,
    m: usize,
    /// Batch sizes of `w` and of `x`.
    batches: (Vec<usize>, Vec<usize>),
    place: Place,
    w_form: Form,
    x_form: Form,
    target: Target,
    precision: Precision,
    w_fill: Fill,
    x_fill: Fill,
}

impl Product {
    fn new(w: DType, x: DType, [n, k, m]: [usize; 3]) -> Self {
        // A single sum may cancel, which makes its relative error meaningless.
        let fill = match n * m {
            1 => Fill::Positive,
            _ => Fill::Gaussian(1.0),
        };
        Self {
            w,
            x,
            n,
            k,
            m,
            batches: (vec![], vec![]),
            place: Place::Weight,
            w_form: Form::Contiguous,
            x_form: Form::Contiguous,
            target: Target::Fresh,
            precision: Precision::Default,
            w_fill: fill.clone(),
            x_fill: fill,
        }
    }
}

/// `[n, k, m]` with `k` in whole blocks.
fn shapes(w: DType) -> &'static [[usize; 3]] {
    match w.block_len() {
        1 => &[
            [33, 97, 5],
            [1, 1, 1],
            [64, 129, 1],
            [17, 31, 33],
            [100, 64, 8],
            [16, 256, 16],
            [5, 577, 2],
        ],
        32 => &[
            [33, 96, 5],
            [1, 32, 1],
            [64, 256, 1],
            [17, 160, 33],
            [100, 64, 8],
            [16, 512, 16],
            [5, 576, 2],
        ],
        _ => &[
            [33, 256, 5],
            [1, 256, 1],
            [64, 512, 1],
            [17, 768, 33],
            [100, 256, 8],
            [16, 512, 16],
            [5, 1280, 2],
        ],
    }
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for w in weights() {
        for x in FLOATS {
            for &shape in shapes(w) {
                cases.push(case(Product::new(w, x, shape)));
            }
        }
        let shape = shapes(w)[0];
        let base = Product::new(w, DType::F32, shape);
        let [n, k, _] = shape;
        for m in [3, 4, 6, 7, 9, 17, 64] {
            cases.push(case(Product { m, ..base.clone() }));
        }
        cases.push(case(Product::new(w, DType::F32, [n, k, 0])));
        cases.push(case(Product::new(w, DType::F32, [0, k, 3])));
        for place in [Place::Input, Place::State, Place::Temp] {
            for m in [1, 5] {
                cases.push(case(Product {
                    place,
                    m,
                    ..base.clone()
                }));
            }
        }
        for m in [1, 19] {
            cases.push(case(Product {
                m,
                precision: Precision::F32,
                ..base.clone()
            }));
        }
        cases.extend(views(&base));
        cases.extend(batched(&base));
        for (w_fill, x_fill) in [
            (Fill::RandomBlocks, Fill::Gaussian(1.0)),
            (Fill::Small, Fill::Small),
            (Fill::Gaussian(1.0), Fill::large(DType::F32)),
            (Fill::large(w), Fill::Gaussian(1.0)),
        ] {
            if w_fill == Fill::RandomBlocks && !w.is_quantized() {
                continue;
            }
            for m in [1, 9] {
                cases.push(case(Product {
                    m,
                    w_fill: w_fill.clone(),
                    x_fill: x_fill.clone(),
                    ..base.clone()
                }));
            }
        }
    }
    // An empty sum.
    let empty = Product::new(DType::F32, DType::F32, [3, 0, 2]);
    cases.push(case(Product {
        place: Place::Temp,
        ..empty
    }));
    cases
}

/// Operands that are views of larger storages, and results that go into views.
fn views(base: &Product) -> Vec<Case> {
    let mut cases = Vec::new();
    let w_forms = [Form::Offset, Form::Gaps, Form::Window, Form::Transposed];
    for w_form in w_forms.into_iter().filter(|form| form.applies(base.w, 2)) {
        for place in [Place::Weight, Place::State, Place::Temp] {
            for m in [1, 5] {
                cases.push(case(Product {
                    w_form,
                    place,
                    m,
                    ..base.clone()
                }));
            }
        }
    }
    for x_form in [
        Form::Offset,
        Form::Gaps,
        Form::Window,
        Form::Transposed,
        Form::Repeated,
    ] {
        for x in FLOATS {
            cases.push(case(Product {
                x,
                x_form,
                ..base.clone()
            }));
        }
    }
    for into in [Form::Offset, Form::Gaps, Form::Window, Form::Transposed] {
        for m in [1, 5] {
            cases.push(case(Product {
                target: Target::Into(into),
                m,
                ..base.clone()
            }));
        }
    }
    cases
}

/// Several products at once, some of them with one weight.
fn batched(base: &Product) -> Vec<Case> {
    let batches: [(&[usize], &[usize]); 6] = [
        (&[], &[3]),
        (&[3], &[3]),
        (&[2], &[6]),
        (&[1], &[4]),
        (&[2, 3], &[2, 6]),
        (&[2], &[3, 4]),
    ];
    let mut cases = Vec::new();
    for (i, (w, x)) in batches.into_iter().enumerate() {
        let batches = (w.to_vec(), x.to_vec());
        for m in [1, 5] {
            cases.push(case(Product {
                batches: batches.clone(),
                n: 9,
                m,
                place: if i % 2 == 0 {
                    Place::Weight
                } else {
                    Place::State
                },
                ..base.clone()
            }));
        }
        if w.is_empty() {
            continue;
        }
        cases.push(case(Product {
            batches,
            n: 9,
            place: Place::State,
            w_form: Form::Permuted,
            x_form: Form::Permuted,
            target: Target::Into(Form::Permuted),
            ..base.clone()
        }));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let mut cases = Vec::new();
    for w in weights() {
        let mut push = |shape| {
            cases.push(case(Product {
                w_fill: Fill::RandomBlocks,
                ..Product::new(w, DType::F32, shape)
            }));
        };
        push([2048, 2048, 1]);
        push([4096, 4096, 1]);
        push([2048, 2048, 128]);
    }
    cases
}

fn case(product: Product) -> Case {
    let Product { n, k, m, place, .. } = product;
    let mut shape = format!("n={n},k={k},m={m}");
    let (w_batch, x_batch) = &product.batches;
    if !x_batch.is_empty() {
        shape += &format!(",batch={}to{}", sizes(w_batch), sizes(x_batch));
    }
    for (operand, fill) in [("w", &product.w_fill), ("x", &product.x_fill)] {
        shape += &match fill {
            Fill::RandomBlocks => ",random_blocks".to_owned(),
            Fill::Small => format!(",small_{operand}"),
            Fill::Large(_) => format!(",large_{operand}"),
            _ => String::new(),
        };
    }
    if product.precision == Precision::F32 {
        shape += ",f32";
    }
    let layout = format!(
        "{}_{}-x_{}-{}",
        place.name(),
        product.w_form.name(),
        product.x_form.name(),
        product.target.name()
    );
    let dtypes = format!("{}x{}", lower(product.w), lower(product.x));
    Case::new("matmul", "matmul", (dtypes, shape, layout), move |setup| {
        let p = product.clone();
        let (w_batch, x_batch) = p.batches;
        let w_dims = [w_batch.as_slice(), &[n, k]].concat();
        let x_dims = [x_batch.as_slice(), &[m, k]].concat();
        let w = setup.operand("w", place, p.w, &w_dims, p.w_form, p.w_fill)?;
        let x = setup.operand("x", Place::Temp, p.x, &x_dims, p.x_form, p.x_fill)?;
        let precision = p.precision;
        setup.apply(Matmul { precision }, &[w, x], p.target)?;
        Ok(())
    })
}
