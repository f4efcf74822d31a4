//! The whole suite on a simulated device, which computes with the oracle: a failure here is a fault
//! of the harness, the tables or the limits.

use kovar_core::backend::{Reason, Support};
use kovar_testkit::cases::TABLES;
use kovar_testkit::harness::Outcome;
use kovar_testkit::oracle::Activations;
use kovar_testkit::perf::Measurement;
use kovar_testkit::simulated::{Executor, SimulatedDevice, SimulatedOptions};
use kovar_testkit::suite::{Filter, op_names, run_perf, run_support, run_tests};

#[test]
fn every_case_passes_on_the_simulated_device() {
    let device = SimulatedDevice::default();
    let report = run_tests(&device, &Filter::default(), &mut |_| {});
    let failures: Vec<_> = report.failures().take(20).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    for summary in &report.ops {
        assert!(summary.passed >= 100, "{summary:?}");
        assert_eq!(summary.unsupported, 0, "{summary:?}");
    }
    let total: usize = report.ops.iter().map(|summary| summary.passed).sum();
    assert_eq!(total, report.cases.len());
    assert_eq!(device.allocated_bytes(), 0, "memory was not given back");
}

#[test]
fn quantised_activations_pass_by_the_second_bound_but_not_where_f32_is_asked_for() {
    let device = SimulatedDevice::new(SimulatedOptions {
        executor: Executor::Oracle(Activations::Quantized),
        ..SimulatedOptions::default()
    });
    let filter = Filter::op("matmul");
    let report = run_tests(&device, &filter, &mut |_| {});
    let failures: Vec<_> = report.failures().take(20).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let q4 = report
        .cases
        .iter()
        .find(|case| case.name.contains("/q4_0xf32/n=33"));
    let Some(Outcome::Passed { nmse, .. }) = q4.map(|case| &case.result) else {
        panic!("{q4:?}");
    };
    assert!(*nmse > 1e-7, "the second bound was not needed: {nmse}");
}

#[test]
fn what_a_device_lacks_is_reported_with_its_reason_and_not_run() {
    let device = SimulatedDevice::new(SimulatedOptions::default().only(&["add", "scale"]));
    let report = run_tests(&device, &Filter::op("binary"), &mut |_| {});
    let count = |op: &str| report.ops.iter().find(|o| o.op == op).cloned().unwrap();
    assert_eq!(count("add").unsupported, 0);
    assert_eq!(count("mul").passed, 0);
    assert!(count("mul").unsupported > 100);
    let support = run_support(&device, &Filter::op("mul"));
    assert!(support.rows.iter().all(|row| row.supported == 0));
    assert!(
        support
            .rows
            .iter()
            .all(|row| row.reasons == ["no kernel for mul"])
    );
}

#[test]
fn support_is_reported_by_dtypes_and_layout() {
    let device = SimulatedDevice::new(SimulatedOptions {
        supports: Some(std::sync::Arc::new(|node| {
            let x = node.input(0);
            if x.is_some_and(|x| x.layout.has_contiguous_rows()) {
                Support::Yes
            } else {
                Support::No(Reason::Layout {
                    op: node.op().name(),
                    operand: "x",
                })
            }
        })),
        ..SimulatedOptions::default()
    });
    let report = run_support(&device, &Filter::op("scale"));
    for row in &report.rows {
        let transposed = row.layout.starts_with("transposed");
        assert_eq!(row.supported == 0, transposed, "{row:?}");
        assert_eq!(
            row.supported < row.total,
            !row.reasons.is_empty(),
            "{row:?}"
        );
    }
    assert!(
        report
            .rows
            .iter()
            .any(|row| row.layout.starts_with("transposed"))
    );
}

#[test]
fn perf_cases_are_timed() {
    let device = SimulatedDevice::default();
    let filter = Filter {
        op: Some("scale".to_owned()),
        name: Some("1x4096".to_owned()),
    };
    let report = run_perf(&device, &filter, &mut |_| {});
    assert_eq!(report.cases.len(), 1);
    let Measurement::Measured(timing) = &report.cases[0].result else {
        panic!("{:?}", report.cases[0]);
    };
    assert!(timing.microseconds > 0.0 && timing.runs >= 7);
    let bytes = 2.0 * 4.0 * 4096.0;
    let rate = bytes / timing.microseconds / 1e3;
    assert!((timing.gigabytes_per_second / rate - 1.0).abs() < 1e-9);
    assert_eq!(timing.kernels, ["scale"]);
}

#[test]
fn reports_are_json_with_readable_reasons() {
    let device = SimulatedDevice::new(SimulatedOptions::default().only(&[]));
    let filter = Filter {
        op: Some("scale".to_owned()),
        name: Some("/f32/5,".to_owned()),
    };
    let report = run_tests(&device, &filter, &mut |_| {});
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["cases"][0]["outcome"], "unsupported");
    assert_eq!(json["cases"][0]["reason"], "no kernel for scale");
    assert_eq!(json["ops"][0]["unsupported"], 1);
}

#[test]
fn both_the_name_of_the_file_and_of_the_op_select_cases() {
    let names = op_names();
    for table in TABLES {
        assert!(names.contains(&table.family), "{}", table.family);
    }
    assert!(names.contains(&"swiglu") && names.contains(&"add"));
}
