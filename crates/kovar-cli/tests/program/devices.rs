use crate::{Run, command, kovar};

#[test]
fn the_cpu_is_listed_with_its_threads_and_features() {
    let report = kovar(&["devices", "--json", "-t", "2", "--rates", "fixed"]).json();
    let cpu = &report["devices"][0];
    assert_eq!(cpu["id"], "cpu");
    assert_eq!(cpu["kind"], "cpu");
    assert_eq!(cpu["threads"], 2);
    assert!(!cpu["features"].as_array().unwrap().is_empty());
    assert!(cpu["rates"].is_null(), "{cpu}");
    let text = kovar(&["devices", "--rates", "fixed"]).ok();
    assert!(text.starts_with("cpu: "), "{text}");
    assert!(text.contains("threads"), "{text}");
}

#[test]
fn a_simd_level_is_forced() {
    let report = kovar(&[
        "devices", "--json", "--simd", "portable", "--rates", "fixed",
    ])
    .json();
    let features = report["devices"][0]["features"].as_array().unwrap();
    assert!(
        features.iter().any(|feature| feature == "portable"),
        "{features:?}"
    );
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn cached_rates_are_shown() {
    let report = kovar(&["devices", "--json", "--rates", "fixed"]).json();
    let cpu = &report["devices"][0];
    let text = |name: &str| cpu[name].as_str().unwrap().to_owned();
    let key = format!(
        "{}; {}; {}; {} threads; {} bytes",
        text("name"),
        text("driver"),
        cpu["features"][0].as_str().unwrap(),
        cpu["threads"],
        cpu["memory_bytes"]
    );
    let link = serde_json::json!({ "latency_ns": 250.0, "bytes_per_ns": 8.5 });
    let rates = serde_json::json!({
        "launch_ns": 3000.0,
        "dispatch_ns": 125.0,
        "float_flops_per_ns": 60.25,
        "quantized_flops_per_ns": null,
        "read_bytes_per_ns": 12.5,
        "upload": link,
        "download": link,
    });
    let mut devices = serde_json::Map::new();
    devices.insert(key, rates.clone());
    let version = env!("CARGO_PKG_VERSION");
    let kept = serde_json::json!({ "kovar": version, "devices": devices });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kovar/rates.json");
    std::fs::create_dir(folder.path().join("kovar")).unwrap();
    std::fs::write(&path, kept.to_string()).unwrap();
    let devices = |args: &[&str]| -> Run {
        let mut command = command(args);
        command.env("XDG_CACHE_HOME", folder.path());
        command.output().expect("the program starts").into()
    };
    let report = devices(&["devices", "--device", "cpu", "--json"]).json();
    assert_eq!(report["devices"][0]["rates"], rates);
    let text = devices(&["devices", "--device", "cpu"]).ok();
    assert!(
        text.contains("products    none quantised, 60.2 GFLOP/s float"),
        "{text}"
    );
    assert!(text.contains("upload      8.5 GB/s after 0.2 us"), "{text}");
}
