//! Cases of `arange`.

use kovar_core::DType;
use kovar_core::ops::Arange;

use super::{Case, Form, Target, lower};

const TARGETS: [Target; 5] = [
    Target::Fresh,
    Target::Into(Form::Contiguous),
    Target::Into(Form::Offset),
    Target::Into(Form::Gaps),
    Target::Into(Form::Window),
];

pub(super) fn tests() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [0, 1, 2, 7, 33, 1000, 40_000] {
        for target in TARGETS {
            for (start, step) in [(0.0, 1.0), (-17.0, 3.0), (1e6, -5.0)] {
                for dtype in [DType::F32, DType::I32, DType::F64, DType::I64] {
                    cases.push(case(start, step, n, dtype, target));
                }
            }
        }
    }
    for target in TARGETS {
        for (start, step, n, dtype) in [
            (0.1, 0.1, 1001, DType::F32),
            (1e30, -1e27, 999, DType::F32),
            (1000.0, -1000.0 / 49.0, 50, DType::F32),
            (4.5, 0.0, 9, DType::F32),
            (-2_147_483_648.0, 1_073_741_823.0, 4, DType::I32),
            (2_147_483_647.0, -16_777_217.0, 200, DType::I32),
            (5.0, 0.0, 9, DType::I32),
            (0.1, 0.1, 1001, DType::F64),
            (1e300, -1e297, 999, DType::F64),
            (
                9_007_199_254_740_991.0,
                -4_503_599_627_370_497.0,
                4,
                DType::I64,
            ),
            (-9_007_199_254_740_991.0, 1.0, 200, DType::I64),
        ] {
            cases.push(case(start, step, n, dtype, target));
        }
    }
    cases
}

pub(super) fn perf() -> Vec<Case> {
    let of = |dtype| case(0.0, 1.0, 1 << 20, dtype, Target::Fresh);
    vec![of(DType::F32), of(DType::I32)]
}

fn case(start: f64, step: f64, n: usize, dtype: DType, target: Target) -> Case {
    let labels = (
        lower(dtype),
        format!("start={start},step={step:.4},n={n}"),
        target.name(),
    );
    let op = Arange {
        start,
        step,
        n,
        dtype,
    };
    Case::new("arange", "arange", labels, move |setup| {
        setup.apply(op, &[], target)?;
        Ok(())
    })
}
