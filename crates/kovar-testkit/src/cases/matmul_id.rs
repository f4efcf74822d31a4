//! Cases of `matmul_id`.

use kovar_core::DType;
use kovar_core::ops::{MatmulId, Precision};

use super::{Case, FLOATS, Form, Place, Target, lower, weights};
use crate::synthetic::Fill;

#[derive(Clone)]
struct Product {
    dtypes: [DType; 2],
    /// `[experts, n, k]`
    w: [usize; 3],
    /// `[tokens, used]`
    ids: [usize; 2],
    /// Whether the experts of a token share one row of `x`.
    shared: bool,
    place: Place,
    /// Of `w`, of `x` and of the ids.
    forms: [Form; 3],
    target: Target,
    precision: Precision,
}

impl Product {
    fn new(dtypes: [DType; 2], w: [usize; 3], ids: [usize; 2]) -> Self {
        Self {
            dtypes,
            w,
            ids,
            shared: true,
            place: Place::Weight,
            forms: [Form::Contiguous; 3],
            target: Target::Fresh,
            precision: Precision::Default,
        }
    }
}

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for w in weights() {
        let k = match w.block_len() {
            1 => 65,
            block => 2 * block,
        };
        for x in FLOATS {
            for shared in [true, false] {
                for ids in [[1, 2], [5, 2], [40, 3]] {
                    cases.push(case(Product {
                        shared,
                        ..Product::new([w, x], [4, 33, k], ids)
                    }));
                }
            }
        }
        let base = Product::new([w, DType::F32], [3, 17, k], [6, 2]);
        for place in [Place::Input, Place::State] {
            cases.push(case(Product {
                place,
                shared: false,
                ..base.clone()
            }));
        }
        cases.push(case(Product {
            precision: Precision::F32,
            ..base.clone()
        }));
        cases.push(case(Product::new([w, DType::F32], [2, 300, k], [9, 1])));
        for form in Form::ALL {
            if form != Form::Contiguous && form.applies(w, 3) {
                cases.push(case(Product {
                    forms: [form, Form::Contiguous, Form::Contiguous],
                    ..base.clone()
                }));
            }
        }
    }
    let base = Product {
        shared: false,
        ..Product::new([DType::F32; 2], [3, 17, 32], [6, 2])
    };
    for form in Form::ALL {
        if matches!(form, Form::Contiguous | Form::Repeated) {
            continue;
        }
        for x in FLOATS {
            cases.push(case(Product {
                dtypes: [DType::F32, x],
                forms: [Form::Contiguous, form, Form::Contiguous],
                ..base.clone()
            }));
        }
        cases.push(case(Product {
            target: Target::Into(form),
            ..base.clone()
        }));
        if form.applies(DType::I32, 2) {
            cases.push(case(Product {
                forms: [Form::Contiguous, Form::Contiguous, form],
                ..base.clone()
            }));
        }
    }
    // More rows of an expert than a tile has, and more rows than are searched at once.
    cases.push(case(Product::new([DType::F32; 2], [2, 70, 33], [150, 3])));
    for (w, ids) in [
        ([3, 17, 32], [0, 2]),
        ([3, 17, 32], [4, 0]),
        ([3, 0, 32], [4, 2]),
        ([0, 5, 32], [4, 2]),
        ([3, 5, 0], [4, 2]),
    ] {
        cases.push(case(Product {
            place: Place::Temp,
            ..Product::new([DType::F32; 2], w, ids)
        }));
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    [DType::F16, DType::Q4K]
        .into_iter()
        .flat_map(|w| {
            [[1, 2], [128, 2]].map(|ids| case(Product::new([w, DType::F32], [8, 1024, 2048], ids)))
        })
        .collect()
}

fn case(product: Product) -> Case {
    let Product {
        dtypes: [w, x],
        w: [experts, n, k],
        ids: [tokens, used],
        shared,
        place,
        forms,
        target,
        precision,
    } = product;
    let mut shape = format!("experts={experts},n={n},k={k},tokens={tokens},used={used}");
    if !shared {
        shape += ",own_rows";
    }
    if precision == Precision::F32 {
        shape += ",f32";
    }
    let layout = format!(
        "{}_{}-x_{}-ids_{}-{}",
        place.name(),
        forms[0].name(),
        forms[1].name(),
        forms[2].name(),
        target.name()
    );
    let labels = (format!("{}x{}", lower(w), lower(x)), shape, layout);
    Case::new("matmul_id", "matmul_id", labels, move |setup| {
        let fill = Fill::Gaussian(1.0);
        let x_dims = [tokens, if shared { 1 } else { used }, k];
        // Every expert, in no order, and ids below and above them.
        let id = |i: usize| (i * 7 + i / 3) as i64 % (experts as i64 + 2) - 1;
        let ids = (0..tokens * used).map(id).collect();
        let inputs = [
            setup.operand("w", place, w, &[experts, n, k], forms[0], fill.clone())?,
            setup.operand("x", Place::Temp, x, &x_dims, forms[1], fill)?,
            setup.indices("ids", &[tokens, used], forms[2], ids)?,
        ];
        setup.apply(MatmulId { precision }, &inputs, target)?;
        Ok(())
    })
}
