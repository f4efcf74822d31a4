//! Every case of the testkit on every SIMD level of the machine.

use kovar_cpu::simd::SimdLevel;
use kovar_cpu::{CpuBackend, CpuOptions};
use kovar_testkit::harness::{Operands, Outcome};
use kovar_testkit::suite::{Filter, run_tests_with};

fn hold(level: SimdLevel, threads: usize, operands: Operands) {
    let options = CpuOptions::new().threads(threads).simd(level);
    let backend = CpuBackend::new(options).unwrap();
    let report = run_tests_with(&backend, &Filter::default(), operands, &mut |_| {});
    let bad: Vec<String> = report
        .cases
        .iter()
        .filter_map(|case| match &case.result {
            Outcome::Passed { .. } => None,
            Outcome::Failed { reason } => Some(format!("{}: {reason}", case.name)),
            Outcome::Unsupported { reason } => Some(format!("{}: {reason}", case.name)),
        })
        .collect();
    assert!(report.cases.len() > 1000, "{} cases", report.cases.len());
    assert!(
        bad.is_empty(),
        "{level}, {threads} threads, {operands:?}: {} of {} cases:\n{}",
        bad.len(),
        report.cases.len(),
        bad[..bad.len().min(40)].join("\n")
    );
}

#[test]
fn every_case_passes_on_every_level_with_one_thread() {
    SimdLevel::available()
        .into_iter()
        .for_each(|level| hold(level, 1, Operands::Allocated));
}

#[test]
fn every_case_passes_on_every_level_with_two_threads() {
    SimdLevel::available()
        .into_iter()
        .for_each(|level| hold(level, 2, Operands::Allocated));
}

#[test]
fn every_case_passes_on_every_level_with_three_threads_and_operands_at_odd_addresses() {
    SimdLevel::available()
        .into_iter()
        .for_each(|level| hold(level, 3, Operands::Imported));
}
