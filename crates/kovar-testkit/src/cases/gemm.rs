//! Cases of `gemm`.

use kovar_core::DType;
use kovar_core::ops::dtypes::FACTORS;
use kovar_core::ops::{Gemm, Precision};

use super::sweep::hard;
use super::{Case, FLOATS, Form, Place, Target, lower, sizes};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Product {
    dtypes: [DType; 2],
    /// `[m, n, k]`
    size: [usize; 3],
    /// Batch sizes of `a` and `b`.
    batches: [Vec<usize>; 2],
    /// Dtype, dims and form of `c`.
    c: Option<(DType, Vec<usize>, Form)>,
    attributes: Gemm,
    forms: [Form; 2],
    target: Target,
    fill: Fill,
}

const SIZES: [[usize; 3]; 7] = [
    [5, 33, 97],
    [1, 1, 1],
    [1, 64, 129],
    [33, 17, 31],
    [9, 100, 64],
    [70, 16, 256],
    [2, 5, 577],
];

/// Every way to transpose.
fn transposes(attributes: Gemm) -> [Gemm; 4] {
    [(false, false), (false, true), (true, false), (true, true)].map(|(a, b)| Gemm {
        transpose_a: a,
        transpose_b: b,
        ..attributes
    })
}

impl Product {
    fn new(dtypes: [DType; 2], size: [usize; 3]) -> Self {
        Self {
            dtypes,
            size,
            batches: [vec![], vec![]],
            c: None,
            attributes: Gemm::default(),
            forms: [Form::Contiguous; 2],
            target: Target::Fresh,
            // A single sum may cancel, which makes its relative error meaningless.
            fill: match size {
                [1, 1, _] => Fill::Positive,
                _ => Fill::Gaussian(1.0),
            },
        }
    }
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for a in FLOATS {
        for b in FLOATS {
            for (i, size) in SIZES.into_iter().enumerate() {
                for attributes in transposes(Gemm::default()) {
                    let with_c = (i % 2 == 1).then(|| (DType::F32, vec![size[1]], Form::Offset));
                    cases.push(case(Product {
                        attributes,
                        c: with_c,
                        ..Product::new([a, b], size)
                    }));
                }
            }
        }
    }
    for &eight in FACTORS.iter().filter(|dtype| !FLOATS.contains(dtype)) {
        for other in [DType::F32, DType::F16, eight] {
            for (dtypes, sizes) in [([eight, other], 0..3), ([other, eight], 3..6)] {
                for size in &SIZES[sizes] {
                    for attributes in transposes(Gemm::default()) {
                        cases.push(case(Product {
                            attributes,
                            ..Product::new(dtypes, *size)
                        }));
                    }
                }
            }
        }
    }
    let base = Product::new([DType::F32; 2], SIZES[0]);
    let [m, n, k] = SIZES[0];
    for size in [[0, n, k], [m, 0, k], [m, n, 0], [3, 200, 400]] {
        cases.push(case(Product {
            c: Some((DType::F32, vec![1, 1], Form::Contiguous)),
            ..Product::new([DType::F32; 2], size)
        }));
    }
    for (alpha, beta) in [(0.5, 0.0), (-2.0, 3.0), (0.0, 1.0), (1.0, -0.25)] {
        for c in FLOATS {
            for dims in [vec![m, n], vec![n], vec![m, 1], vec![]] {
                for form in [Form::Contiguous, Form::Offset, Form::Transposed] {
                    if form.applies(c, dims.len()) {
                        cases.push(case(Product {
                            attributes: Gemm {
                                alpha,
                                beta,
                                ..base.attributes
                            },
                            c: Some((c, dims.clone(), form)),
                            ..base.clone()
                        }));
                    }
                }
            }
        }
        for form in [Form::Contiguous, Form::Gaps, Form::Transposed, Form::Window] {
            cases.push(case(Product {
                attributes: Gemm {
                    alpha,
                    beta,
                    ..base.attributes
                },
                c: Some((DType::F32, vec![m, n], form)),
                target: Target::InPlace(2),
                ..base.clone()
            }));
        }
    }
    for form in Form::ALL {
        for dtype in [DType::F32, DType::F16] {
            for attributes in transposes(Gemm::default()) {
                for forms in [[form, Form::Contiguous], [Form::Contiguous, form]] {
                    if form != Form::Contiguous && form.applies(dtype, 2) {
                        cases.push(case(Product {
                            dtypes: [dtype; 2],
                            attributes,
                            forms,
                            ..base.clone()
                        }));
                    }
                }
            }
        }
        if form.applies(DType::F32, 2) && !matches!(form, Form::Contiguous | Form::Repeated) {
            cases.push(case(Product {
                target: Target::Into(form),
                ..base.clone()
            }));
        }
    }
    let batches: [(&[usize], &[usize]); 6] = [
        (&[3], &[3]),
        (&[3], &[]),
        (&[], &[2, 3]),
        (&[1], &[4]),
        (&[2, 3], &[2, 1]),
        (&[2, 1, 2, 1], &[3, 1, 2]),
    ];
    for (a, b) in batches {
        for attributes in transposes(Gemm::default()) {
            for form in [Form::Contiguous, Form::Window] {
                cases.push(case(Product {
                    size: [5, 9, 33],
                    batches: [a.to_vec(), b.to_vec()],
                    c: Some((DType::F32, vec![5, 9], Form::Contiguous)),
                    forms: [form; 2],
                    attributes,
                    ..base.clone()
                }));
            }
        }
    }
    let precision = Precision::F32;
    cases.push(case(Product {
        attributes: Gemm {
            precision,
            ..base.attributes
        },
        ..base.clone()
    }));
    for fill in [Fill::Small, Fill::large(DType::F32)] {
        cases.push(case(Product {
            fill,
            ..base.clone()
        }));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16] {
        for attributes in transposes(Gemm::default()) {
            cases.push(case(Product {
                attributes,
                ..Product::new([dtype; 2], [512; 3])
            }));
        }
    }
    cases
}

fn case(product: Product) -> Case {
    let Gemm {
        alpha,
        beta,
        transpose_a,
        transpose_b,
        precision,
    } = product.attributes;
    let [m, n, k] = product.size;
    let mut shape = format!("m={m},n={n},k={k},alpha={alpha},beta={beta}");
    let [a_batch, b_batch] = &product.batches;
    if !a_batch.is_empty() || !b_batch.is_empty() {
        shape += &format!(",batch={}and{}", sizes(a_batch), sizes(b_batch));
    }
    for (transposed, name) in [(transpose_a, ",at"), (transpose_b, ",bt")] {
        shape += if transposed { name } else { "" };
    }
    if precision == Precision::F32 {
        shape += ",f32";
    }
    shape += hard(&product.fill);
    let [a, b] = product.dtypes;
    let mut dtypes = format!("{}x{}", lower(a), lower(b));
    let forms = product.forms.map(Form::name);
    let mut layout = format!("{}-{}-{}", forms[0], forms[1], product.target.name());
    if let Some((c, dims, form)) = &product.c {
        dtypes += &format!("x{}", lower(*c));
        layout += &format!("-c_{}_{}", sizes(dims), form.name());
    }
    Case::new("gemm", "gemm", (dtypes, shape, layout), move |setup| {
        let p = product.clone();
        let matrix = |batch: &[usize], rows: usize, columns: usize, transposed: bool| {
            let last = if transposed {
                [columns, rows]
            } else {
                [rows, columns]
            };
            [batch, &last].concat()
        };
        let a_dims = matrix(&p.batches[0], m, k, transpose_a);
        let b_dims = matrix(&p.batches[1], k, n, transpose_b);
        let place = Place::Temp;
        let mut inputs = vec![
            setup.operand("a", place, a, &a_dims, p.forms[0], p.fill.clone())?,
            setup.operand("b", place, b, &b_dims, p.forms[1], p.fill)?,
        ];
        if let Some((dtype, dims, form)) = p.c {
            let fill = Fill::Gaussian(1.0);
            inputs.push(setup.operand("c", place, dtype, &dims, form, fill)?);
        }
        setup.apply(p.attributes, &inputs, p.target)?;
        Ok(())
    })
}
