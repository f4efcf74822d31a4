//! Products beyond the case tables: of several tiles, in cooperative matrices that are emulated,
//! and with numbers that f16 does not hold.

use kovar_core::DType;
use kovar_core::ops::{Conv2d, Matmul};
use kovar_gpu::{GpuOptions, Gpus};
use kovar_testkit::cases::{Case, Form, Place, Target};
use kovar_testkit::harness::{Operands, Outcome, run_case};
use kovar_testkit::suite::{Filter, run_tests};
use kovar_testkit::synthetic::Fill;

fn passes(options: GpuOptions, case: &Case) {
    let backend = Gpus::new().open(options).unwrap();
    let outcome = run_case(&backend, case, Operands::Allocated);
    let name = case.name();
    assert!(
        matches!(outcome, Outcome::Passed { .. }),
        "{name}: {outcome:?}"
    );
}

/// `batch` products of `[m, k]` with one weight `[n, k]`, laid out so that they stay apart.
fn matmul(dtypes: [DType; 2], batch: usize, [m, n, k]: [usize; 3], x_fill: Fill) -> Case {
    let shape = format!("batch={batch},m={m},n={n},k={k}");
    let labels = (format!("{dtypes:?}"), shape, format!("{x_fill:?}"));
    Case::new("matmul", "matmul", labels, move |setup| {
        let [w, x] = dtypes;
        let fill = Fill::Gaussian(1.0);
        let x_dims = [batch, m, k];
        let inputs = [
            setup.operand("w", Place::Weight, w, &[n, k], Form::Contiguous, fill)?,
            setup.operand("x", Place::Temp, x, &x_dims, Form::Permuted, x_fill.clone())?,
        ];
        setup.apply(Matmul::default(), &inputs, Target::Fresh)?;
        Ok(())
    })
}

fn conv2d(dtypes: [DType; 2]) -> Case {
    let labels = (format!("{dtypes:?}"), "tiles".to_owned(), String::new());
    Case::new("conv2d", "conv2d", labels, move |setup| {
        let [x, weight] = dtypes;
        let fill = || Fill::Gaussian(1.0);
        let (image, kernel) = ([2, 7, 9, 10], [37, 7, 3, 3]);
        let form = Form::Contiguous;
        let inputs = [
            setup.operand("x", Place::Temp, x, &image, form, fill())?,
            setup.operand("weight", Place::Weight, weight, &kernel, form, fill())?,
            setup.operand("bias", Place::Weight, DType::F32, &[37], form, fill())?,
        ];
        let padding = [1; 2];
        let attributes = Conv2d {
            padding,
            ..Conv2d::default()
        };
        setup.apply(attributes, &inputs, Target::Fresh)?;
        Ok(())
    })
}

#[test]
fn many_large_tiles_agree_with_the_oracle() {
    let case = matmul([DType::F32; 2], 24, [130, 150, 36], Fill::Gaussian(1.0));
    passes(GpuOptions::new(), &case);
}

#[test]
fn several_tiles_of_single_precision_matrices_agree_with_the_oracle() {
    let case = matmul([DType::F32; 2], 2, [70, 130, 37], Fill::Gaussian(1.0));
    passes(GpuOptions::new().emulate_matrices(), &case);
}

#[test]
fn several_tiles_of_half_precision_matrices_agree_with_the_oracle() {
    let dtypes = [DType::F16, DType::F32];
    let case = matmul(dtypes, 1, [130, 150, 40], Fill::Gaussian(1.0));
    passes(GpuOptions::new().emulate_matrices(), &case);
}

#[test]
fn a_tile_that_half_precision_cannot_hold_is_computed_in_single_precision() {
    let dtypes = [DType::F16, DType::F32];
    for fill in [Fill::Large(1e12), Fill::Gaussian(1e-6)] {
        let case = matmul(dtypes, 1, [130, 150, 40], fill);
        passes(GpuOptions::new().emulate_matrices(), &case);
    }
}

#[test]
fn convolutions_in_matrices_agree_with_the_oracle() {
    for dtypes in [[DType::F32; 2], [DType::F16; 2]] {
        passes(GpuOptions::new().emulate_matrices(), &conv2d(dtypes));
    }
}

#[test]
fn products_are_cut_where_operands_exceed_a_binding() {
    let backend = Gpus::new()
        .open(GpuOptions::new().largest_binding(1280))
        .unwrap();
    for (op, name) in [
        ("gemm", "f32xf32/m=5,n=33,k=97,alpha=1,beta=1,at"),
        ("matmul", "f32xf32/"),
        ("matmul_id", "f32xf32/"),
        ("conv2d", "f32xf32xf32/"),
        ("conv2d", "f16xf32xf32/"),
        ("conv_transpose2d", "f32xf32xf32/"),
        ("conv_transpose2d", "f16xf32xf32/"),
    ] {
        let filter = Filter {
            op: Some(op.to_owned()),
            name: Some(name.to_owned()),
        };
        let report = run_tests(&backend, &filter, &mut |_| {});
        let failures: Vec<String> = report.failures().map(|case| format!("{case:?}")).collect();
        let shown = failures[..failures.len().min(20)].join("\n");
        assert!(failures.is_empty(), "{} failed:\n{shown}", failures.len());
        let passed: usize = report.ops.iter().map(|summary| summary.passed).sum();
        assert!(passed > 0, "{op} {name}");
    }
}
