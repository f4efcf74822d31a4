use crate::kovar;

#[test]
fn the_cpu_is_listed_with_its_threads_and_features() {
    let report = kovar(&["devices", "--json", "-t", "2"]).json();
    let cpu = &report["devices"][0];
    assert_eq!(cpu["id"], "cpu");
    assert_eq!(cpu["kind"], "cpu");
    assert_eq!(cpu["threads"], 2);
    assert!(!cpu["features"].as_array().unwrap().is_empty());
    let text = kovar(&["devices"]).ok();
    assert!(text.starts_with("cpu: "), "{text}");
    assert!(text.contains("threads"), "{text}");
}

#[test]
fn a_simd_level_is_forced() {
    let report = kovar(&["devices", "--json", "--simd", "portable"]).json();
    let features = report["devices"][0]["features"].as_array().unwrap();
    assert!(
        features.iter().any(|feature| feature == "portable"),
        "{features:?}"
    );
}
