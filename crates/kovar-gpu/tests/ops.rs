//! Every operation on the first GPU against the oracle.

use kovar_core::backend::Backend;
use kovar_gpu::{Features, GpuBackend, GpuOptions};
use kovar_testkit::suite::{Filter, run_tests};

#[test]
fn supported_operations_agree_with_the_oracle() {
    let mut options = GpuOptions::new();
    if std::env::var("KOVAR_MASK").is_ok_and(|mask| mask == "subgroups") {
        options = options.masked(Features::SUBGROUPS);
    }
    let backend = GpuBackend::new(options).unwrap();
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
    let name = &backend.info().name;
    assert!(
        failures.is_empty(),
        "{name}: {} failed:\n{shown}",
        failures.len()
    );
}
