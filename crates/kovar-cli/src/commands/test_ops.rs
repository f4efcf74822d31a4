use std::process::ExitCode;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use kovar::Backend;
use kovar_testkit::harness::Outcome;
use kovar_testkit::perf::Measurement;
use kovar_testkit::suite::{
    Filter, PerfReport, Progress, SupportReport, TestReport, op_names, run_perf, run_support,
    run_tests,
};
use serde::Serialize;

use crate::args::{DeviceArgs, devices_error};
use crate::diagnostics::UsageError;
use crate::output::Table;
use crate::{format, output, progress};

/// Test the operations of a device.
///
/// Runs every operation in all dtypes and layouts and compares the results with a slow f64
/// reference. Outputs are poisoned and all memory has guard bytes around it. The exit code is 1 if
/// a case fails.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar test-ops
  kovar test-ops --op matmul --simd avx2
  kovar test-ops --device gpu0 --gpu-features -subgroups
  kovar test-ops --mode support --op attention
  kovar test-ops --mode perf --op matmul --json")]
pub struct TestOps {
    /// Test only this operation.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,

    /// Test only cases whose name contains TEXT.
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,

    /// The mode.
    #[arg(long, value_enum, default_value_t = Mode::Test)]
    mode: Mode,

    /// Print JSON with every case.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Compare the results with the reference.
    Test,
    /// List what the device supports, and the reasons for what it does not.
    Support,
    /// Time the larger cases.
    Perf,
}

#[derive(Serialize)]
struct Reports<T> {
    devices: Vec<T>,
}

impl TestOps {
    /// Runs the command.
    ///
    /// # Errors
    /// An unknown operation, a device that cannot be opened, or no matching case.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let names = op_names();
        if let Some(op) = self.op.as_deref().filter(|op| !names.contains(op)) {
            let known = names.join(", ");
            let message = format!("there is no operation `{op}`; known: {known}");
            return Err(UsageError::new(message).into());
        }
        let filter = Filter {
            op: self.op.clone(),
            name: self.case.clone(),
        };
        self.device.warn();
        let devices = kovar::devices(&self.device.options()).map_err(devices_error)?;
        let devices = devices.iter().map(|device| device.as_ref());
        match self.mode {
            Mode::Test => {
                let reports = devices.map(|device| test(device, &filter)).collect();
                self.finish(
                    reports,
                    |report| report.cases.len(),
                    test_text,
                    |report| report.failures().count(),
                )
            }
            Mode::Support => {
                let reports = devices.map(|device| run_support(device, &filter)).collect();
                self.finish(reports, |report| report.rows.len(), support_text, |_| 0)
            }
            Mode::Perf => {
                let reports = devices.map(|device| perf(device, &filter)).collect();
                self.finish(
                    reports,
                    |report| report.cases.len(),
                    perf_text,
                    |report| {
                        let failed = |measurement: &Measurement| {
                            matches!(measurement, Measurement::Failed { .. })
                        };
                        report
                            .cases
                            .iter()
                            .filter(|case| failed(&case.result))
                            .count()
                    },
                )
            }
        }
    }

    /// Prints the reports of all devices; the exit code is 1 if a case failed.
    fn finish<T: Serialize>(
        &self,
        reports: Vec<T>,
        cases: impl Fn(&T) -> usize,
        text: impl Fn(&T) -> String,
        failures: impl Fn(&T) -> usize,
    ) -> anyhow::Result<ExitCode> {
        if reports.iter().map(cases).sum::<usize>() == 0 {
            return Err(UsageError::new("no case matches the options").into());
        }
        let failed = reports.iter().map(failures).sum::<usize>();
        if self.json {
            output::write_json(&Reports { devices: reports })?;
        } else {
            output::write(&reports.iter().map(text).collect::<String>())?;
        }
        Ok(match failed {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }
}

fn test(device: &dyn Backend, filter: &Filter) -> TestReport {
    let mut bar = None;
    let report = run_tests(device, filter, &mut |at| advance(&mut bar, "testing", at));
    finish(bar);
    report
}

fn perf(device: &dyn Backend, filter: &Filter) -> PerfReport {
    let mut bar = None;
    let report = run_perf(device, filter, &mut |at| advance(&mut bar, "timing", at));
    finish(bar);
    report
}

fn advance<T>(bar: &mut Option<ProgressBar>, message: &'static str, at: Progress<'_, T>) {
    let bar = bar.get_or_insert_with(|| progress::bar(message, at.total));
    bar.set_position(at.done as u64);
}

fn finish(bar: Option<ProgressBar>) {
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn test_text(report: &TestReport) -> String {
    let mut text = format!("{}:\n", report.device);
    for case in report.failures() {
        if let Outcome::Failed { reason } = &case.result {
            text.push_str(&format!("  FAILED {} {}: {reason}\n", case.op, case.name));
        }
    }
    let mut table = Table::new(&[
        "operation",
        ">passed",
        ">failed",
        ">unsupported",
        ">largest NMSE",
        ">largest share of limit",
    ]);
    let (mut passed, mut failed) = (0, 0);
    for op in &report.ops {
        passed += op.passed;
        failed += op.failed;
        table.row([
            op.op.to_owned(),
            op.passed.to_string(),
            op.failed.to_string(),
            op.unsupported.to_string(),
            format!("{:.1e}", op.largest_nmse),
            format!("{:.0} %", op.largest_limit_share * 100.0),
        ]);
    }
    text.push_str(&table.render("  "));
    text.push_str(&format!(
        "  {} passed, {failed} failed\n",
        format::plural(passed, "case")
    ));
    text
}

fn support_text(report: &SupportReport) -> String {
    let mut text = format!("{}:\n", report.device);
    let mut table = Table::new(&["operation", "dtypes", "layout", ">supported", "why not"]);
    for row in &report.rows {
        table.row([
            row.op.to_owned(),
            row.dtypes.clone(),
            row.layout.clone(),
            format!("{}/{}", row.supported, row.total),
            row.reasons.join("; "),
        ]);
    }
    text.push_str(&table.render("  "));
    text
}

fn perf_text(report: &PerfReport) -> String {
    let mut text = format!("{}:\n", report.device);
    let titles = ["case", ">µs", ">fastest", ">GB/s", ">GFLOP/s", "kernels"];
    let mut table = Table::new(&titles);
    for case in &report.cases {
        let name = format!("{} {}", case.op, case.name);
        let untimed = |name: String, why: String| {
            let empty = String::new;
            [name, empty(), empty(), empty(), empty(), why]
        };
        table.row(match &case.result {
            Measurement::Measured(timing) => [
                name,
                format!("{:.2}", timing.microseconds),
                format!("{:.2}", timing.fastest_microseconds),
                format!("{:.2}", timing.gigabytes_per_second),
                format!("{:.2}", timing.gigaflops_per_second),
                timing.kernels.join(", "),
            ],
            Measurement::Failed { reason } => untimed(name, format!("FAILED: {reason}")),
            Measurement::Unsupported { reason } => untimed(name, format!("unsupported: {reason}")),
        });
    }
    text.push_str(&table.render("  "));
    text
}
