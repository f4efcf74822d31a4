use crate::kovar;

#[test]
fn bench_gives_a_mean_a_spread_and_the_share_of_the_bandwidth() {
    let report = kovar(&["bench", "-p", "16", "-n", "8", "-r", "2", "--json"]).json();
    let tests = report["tests"].as_array().unwrap();
    let names: Vec<_> = tests.iter().map(|test| test["test"].as_str()).collect();
    assert_eq!(names, [Some("pp16"), Some("tg8")]);
    for test in tests {
        assert_eq!(test["samples"].as_array().map(Vec::len), Some(2));
        assert!(test["tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(test["standard_deviation"].as_f64().unwrap() >= 0.0);
    }
    let share = tests[1]["bandwidth_share"].as_f64().unwrap();
    assert!(share > 0.0, "{share}");
    assert!(report["read_bandwidth_bytes_per_second"].as_f64().unwrap() > 1e8);
    let text = kovar(&["bench", "-p", "0", "-n", "4", "-r", "1"]).ok();
    assert!(text.contains("tg4") && !text.contains("pp"), "{text}");
}

#[test]
fn test_ops_compares_an_operation_with_the_reference() {
    let report = kovar(&["test-ops", "--op", "scale", "--json"]).json();
    let cpu = &report["devices"][0];
    assert_eq!(cpu["device"], "cpu");
    let cases = cpu["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    assert!(
        cases
            .iter()
            .all(|case| case["op"] == "scale" && case["outcome"] == "passed")
    );
    let share = |op: &serde_json::Value| op["largest_limit_share"].as_f64().unwrap();
    let ops = cpu["ops"].as_array().unwrap();
    assert!(ops.iter().all(|op| (0.0..=1.0).contains(&share(op))));
    let text = kovar(&["test-ops", "--op", "scale", "--simd", "portable"]).ok();
    assert!(text.contains("share of limit"), "{text}");
    assert!(text.contains("0 failed"), "{text}");
}

#[test]
fn test_ops_lists_support_and_measures() {
    let text = kovar(&["test-ops", "--mode", "support", "--op", "scale"]).ok();
    assert!(text.contains("supported"), "{text}");
    let report = kovar(&["test-ops", "--mode", "perf", "--op", "scale", "--json"]).json();
    let cases = report["devices"][0]["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    assert!(
        cases
            .iter()
            .all(|case| case["microseconds"].as_f64() > Some(0.0)),
        "{cases:?}"
    );
}
