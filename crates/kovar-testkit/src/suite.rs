//! Runs the tables of cases and reports, as `kovar test-ops` does.

use std::collections::BTreeMap;

use kovar_core::backend::Backend;
use serde::Serialize;

use crate::cases::{Case, TABLES, Table};
use crate::harness::{Operands, Outcome, run_case, unsupported};
use crate::perf::{Measurement, measure};

/// Which cases to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Only cases of this operation, named by its file or itself (`binary` or `add`).
    pub op: Option<String>,
    /// Only cases whose name contains this.
    pub name: Option<String>,
}

impl Filter {
    /// Only cases of one operation.
    pub fn op(op: &str) -> Self {
        Self {
            op: Some(op.to_owned()),
            name: None,
        }
    }

    fn cases(&self, list: impl Fn(&Table) -> Vec<Case>) -> Vec<Case> {
        let mut cases: Vec<Case> = TABLES.iter().flat_map(list).collect();
        cases.retain(|case| {
            let op = self.op.as_deref();
            let name = self.name.as_deref();
            op.is_none_or(|op| op == case.op || op == case.family)
                && name.is_none_or(|name| case.name().contains(name))
        });
        cases
    }
}

/// The names that [`Filter::op`] knows.
pub fn op_names() -> Vec<&'static str> {
    let mut names: Vec<_> = crate::cases::all()
        .iter()
        .flat_map(|case| [case.family, case.op])
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A case and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseReport<T> {
    /// The operation.
    pub op: &'static str,
    /// The case's name.
    pub name: String,
    /// Its result.
    #[serde(flatten)]
    pub result: T,
}

/// Counts of one operation's cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OpSummary {
    /// The operation.
    pub op: &'static str,
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Cases that the device does not support.
    pub unsupported: usize,
    /// The largest NMSE of the cases that passed.
    pub largest_nmse: f64,
    /// The largest ratio of an error to its limit of the cases that passed, from 0 to 1.
    pub largest_limit_share: f64,
}

/// The result of a test run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestReport {
    /// The device's id.
    pub device: String,
    /// Counts by operation, in the order of the tables.
    pub ops: Vec<OpSummary>,
    /// Every case, in the order of the tables.
    pub cases: Vec<CaseReport<Outcome>>,
}

impl TestReport {
    /// The cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = &CaseReport<Outcome>> {
        let failed = |case: &&CaseReport<Outcome>| matches!(case.result, Outcome::Failed { .. });
        self.cases.iter().filter(failed)
    }
}

/// Compares a device with the oracle. `progress` is called after every case.
pub fn run_tests(
    backend: &dyn Backend,
    filter: &Filter,
    progress: &mut dyn FnMut(Progress<'_, Outcome>),
) -> TestReport {
    run_tests_with(backend, filter, Operands::Allocated, progress)
}

/// [`run_tests`] with a choice of how operands come to the device.
pub fn run_tests_with(
    backend: &dyn Backend,
    filter: &Filter,
    operands: Operands,
    progress: &mut dyn FnMut(Progress<'_, Outcome>),
) -> TestReport {
    let cases = run(filter.cases(|table| (table.tests)()), progress, |case| {
        run_case(backend, case, operands)
    });
    let mut ops: Vec<OpSummary> = Vec::new();
    for case in &cases {
        let at = ops.iter().position(|summary| summary.op == case.op);
        let at = at.unwrap_or_else(|| {
            ops.push(OpSummary {
                op: case.op,
                ..OpSummary::default()
            });
            ops.len() - 1
        });
        let summary = &mut ops[at];
        match case.result {
            Outcome::Passed { nmse, limit_share } => {
                summary.passed += 1;
                summary.largest_nmse = summary.largest_nmse.max(nmse);
                summary.largest_limit_share = summary.largest_limit_share.max(limit_share);
            }
            Outcome::Failed { .. } => summary.failed += 1,
            Outcome::Unsupported { .. } => summary.unsupported += 1,
        }
    }
    TestReport {
        device: backend.info().id.clone(),
        ops,
        cases,
    }
}

/// The result of a timing run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PerfReport {
    /// The device's id.
    pub device: String,
    /// Every case, in the order of the tables.
    pub cases: Vec<CaseReport<Measurement>>,
}

/// Times a device on the larger cases. `progress` is called after every case.
pub fn run_perf(
    backend: &dyn Backend,
    filter: &Filter,
    progress: &mut dyn FnMut(Progress<'_, Measurement>),
) -> PerfReport {
    PerfReport {
        device: backend.info().id.clone(),
        cases: run(filter.cases(|table| (table.perf)()), progress, |case| {
            measure(backend, case)
        }),
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a, T> {
    /// Cases done, including this one.
    pub done: usize,
    /// Cases in all.
    pub total: usize,
    /// The case that is done.
    pub case: &'a CaseReport<T>,
}

fn run<T>(
    cases: Vec<Case>,
    progress: &mut dyn FnMut(Progress<'_, T>),
    mut each: impl FnMut(&Case) -> T,
) -> Vec<CaseReport<T>> {
    let total = cases.len();
    let mut reports = Vec::with_capacity(total);
    for (i, case) in cases.iter().enumerate() {
        let report = CaseReport {
            op: case.op,
            name: case.name(),
            result: each(case),
        };
        progress(Progress {
            done: i + 1,
            total,
            case: &report,
        });
        reports.push(report);
    }
    reports
}

/// What a device supports of one operation in one combination of dtypes and layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SupportRow {
    /// The operation.
    pub op: &'static str,
    /// The dtypes, as in case names.
    pub dtypes: String,
    /// The layout, as in case names.
    pub layout: String,
    /// Cases of this combination that the device supports.
    pub supported: usize,
    /// Cases of this combination.
    pub total: usize,
    /// Why it does not support the others, each reason once.
    pub reasons: Vec<String>,
}

/// What a device supports, without running anything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SupportReport {
    /// The device's id.
    pub device: String,
    /// By operation, dtypes and layout.
    pub rows: Vec<SupportRow>,
}

/// Asks a device which test cases it supports.
pub fn run_support(backend: &dyn Backend, filter: &Filter) -> SupportReport {
    let mut rows: BTreeMap<(&str, String, String), SupportRow> = BTreeMap::new();
    for case in filter.cases(|table| (table.tests)()) {
        let key = (case.op, case.dtypes.clone(), case.layout.clone());
        let row = rows.entry(key).or_insert_with(|| SupportRow {
            op: case.op,
            dtypes: case.dtypes.clone(),
            layout: case.layout.clone(),
            supported: 0,
            total: 0,
            reasons: Vec::new(),
        });
        row.total += 1;
        let reason = match case.setup() {
            Ok(setup) => unsupported(backend, &setup.graph),
            Err(error) => Some(error.to_string()),
        };
        match reason {
            None => row.supported += 1,
            Some(reason) if row.reasons.contains(&reason) => {}
            Some(reason) => row.reasons.push(reason),
        }
    }
    SupportReport {
        device: backend.info().id.clone(),
        rows: rows.into_values().collect(),
    }
}
