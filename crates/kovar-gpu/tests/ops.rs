//! Every operation on the first GPU against the oracle: with all features of the device, and with
//! those masked that kernels have a second path for.
//!
//! `KOVAR_OP=softmax` and `KOVAR_CASE=text` run a part.

use std::collections::BTreeSet;

use kovar_core::backend::Backend;
use kovar_gpu::{Features, GpuOptions, Gpus};
use kovar_testkit::harness::Outcome;
use kovar_testkit::suite::{Filter, run_tests};

/// The dtypes that kernels of all operations but these compute with.
const DTYPES: [&str; 4] = ["f32", "f16", "bf16", "i32"];
/// Operations that GPUs do not have yet.
const MISSING: [&str; 2] = ["attention", "matmul_i8"];

fn agrees_without(masked: Features) {
    let backend = Gpus::new().open(GpuOptions::new().masked(masked)).unwrap();
    let name = &backend.info().name;
    let filter = Filter {
        op: std::env::var("KOVAR_OP").ok(),
        name: std::env::var("KOVAR_CASE").ok(),
    };
    let report = run_tests(&backend, &filter, &mut |_| {});
    for op in &report.ops {
        println!("{op:?}");
    }
    let failures: Vec<String> = report.failures().map(|case| format!("{case:?}")).collect();
    let shown = failures[..failures.len().min(20)].join("\n");
    let n = failures.len();
    assert!(failures.is_empty(), "{name}: {n} failed:\n{shown}");

    let mut refused = BTreeSet::new();
    for case in &report.cases {
        let Outcome::Unsupported { reason } = &case.result else {
            continue;
        };
        assert!(
            !reason.is_empty(),
            "{} is refused without a reason",
            case.name
        );
        let dtypes = case.name.split('/').nth(1).unwrap_or_default();
        let floats = dtypes.split('x').all(|dtype| DTYPES.contains(&dtype));
        if floats && !MISSING.contains(&case.op) {
            refused.insert(format!("{}: {reason}", case.name));
        }
    }
    assert!(refused.is_empty(), "{name} refuses {refused:#?}");
}

#[test]
fn supported_operations_agree_with_the_oracle() {
    agrees_without(Features::NONE);
}

#[test]
fn operations_agree_without_subgroups() {
    agrees_without(Features::SUBGROUPS);
}

#[test]
fn operations_agree_without_f16() {
    agrees_without(Features::F16);
}
