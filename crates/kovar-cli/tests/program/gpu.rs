//! The program on a GPU. `scripts/test` installs a software GPU if there is none.

use crate::{Run, command, demo_file, kovar, text};

const MIXED: [&str; 6] = [
    "--device", "gpu0,cpu", "--rates", "fixed", "--policy", "gpu",
];

/// Runs the program, which must find a GPU.
fn on_gpu(args: &[&str]) -> Run {
    let run = kovar(args);
    assert!(
        !run.stderr.contains("offers a GPU"),
        "these tests need a Vulkan driver, at least a software one \
         (mesa-vulkan-drivers, libvulkan1): {}",
        run.stderr
    );
    run
}

fn ids(text: &str) -> String {
    let tokens = kovar(&["tokenize", "--json", text]).json();
    let ids: Vec<String> = tokens["ids"]
        .as_array()
        .expect("ids")
        .iter()
        .map(|id| id.to_string())
        .collect();
    ids.join(",")
}

#[test]
fn gpus_are_listed_with_their_features_and_reasons() {
    let report = on_gpu(&["devices", "--json", "--rates", "fixed"]).json();
    let devices = report["devices"].as_array().unwrap();
    let ids: Vec<_> = devices.iter().map(|device| &device["id"]).collect();
    assert_eq!(ids[..2], ["cpu", "gpu0"], "{ids:?}");
    assert!(devices[0]["gpu"].is_null(), "{report}");
    let listed = &devices[1];
    assert_eq!(
        (&listed["kind"], &listed["problem"]),
        (&"gpu".into(), &().into())
    );
    assert!(listed["gpu"]["limits"]["binding_bytes"].as_u64() >= Some(128 << 20));
    for capability in ["async", "host_buffer", "from_host_ptr", "events"] {
        assert!(listed["gpu"]["capabilities"][capability].is_boolean());
    }
    let one = ["devices", "--device", "gpu0", "--rates", "fixed"];
    let masked = [&one[..], &["--gpu-features", "-subgroups,-f16", "--json"]].concat();
    let masked = on_gpu(&masked).json();
    let masked = &masked["devices"][0];
    assert_eq!(masked["gpu"]["subgroup_sizes"], serde_json::Value::Null);
    for feature in masked["gpu"]["features"].as_array().unwrap() {
        let name = feature["name"].as_str().unwrap();
        let of_all = listed["gpu"]["features"].as_array().unwrap().iter();
        let mut offered = of_all.filter(|all| all["name"] == name && all["on"] == true);
        let why = match (name, offered.next()) {
            (_, None) => "not offered by the driver".into(),
            ("matrices", Some(_)) => serde_json::Value::Null,
            _ => "masked by --gpu-features".into(),
        };
        assert_eq!(feature["why"], why, "{feature}");
    }
    let text = on_gpu(&one).ok();
    for row in [
        "subgroups",
        "f16",
        "matrices",
        "timestamps",
        "budget",
        "limits",
    ] {
        assert!(text.contains(row), "{row}: {text}");
    }
}

#[test]
fn a_gpu_that_does_not_exist_is_refused_with_those_that_do() {
    let error = on_gpu(&["generate", "--device", "gpu99"]).failed(2);
    let known = "there is no device `gpu99`; known: cpu, cpu:portable";
    assert!(error.contains(known) && error.contains(", gpu0"), "{error}");
    let error = kovar(&["devices", "--gpu-features", "f16"]).failed(2);
    assert!(
        error.contains("there are -subgroups, -f16, -matrices"),
        "{error}"
    );
}

#[test]
fn a_model_runs_on_a_gpu_and_the_cpu() {
    for model in ["llama-stories", "rwkv7-stories"] {
        let diff = ["diff", "-m", model, "--a", "cpu", "--b", "gpu0,cpu"];
        let text = on_gpu(&[&diff[..], &MIXED[2..]].concat()).ok();
        assert!(
            text.ends_with("agree within their limits\n"),
            "{model}: {text}"
        );
        // The same token, or one of nearly the same probability.
        let ids = ids("Once upon a time");
        let logits = ["logits", "-m", model, "--last", "--json", "--ids", &ids];
        let last = |more: &[&str]| -> Vec<f64> {
            let report = on_gpu(&[&logits[..], more].concat()).json();
            let rows = report["positions"].as_array().unwrap();
            let logits = rows[0]["logits"].as_array().unwrap().iter();
            logits.map(|logit| logit.as_f64().unwrap()).collect()
        };
        let (one, two) = (last(&[]), last(&MIXED));
        let best = |logits: &[f64]| {
            let all = logits.iter().copied().enumerate();
            all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
        };
        let gap = one[best(&one)] - one[best(&two)];
        assert!(gap < 0.1, "{model}: {gap}");
    }
    let generate = ["generate", "Once upon a time", "-n", "4", "--temp", "0"];
    let text = on_gpu(&[&generate[..], &MIXED, &["--check-plan"]].concat()).ok();
    assert!(text.starts_with("Once upon a time, there was a"), "{text}");
}

#[test]
fn a_float_model_multiplies_on_a_gpu_and_writes_the_same_text() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("f32.gguf");
    let (model, demo) = (text(&model), demo_file());
    kovar(&["quantize", text(&demo), model, "--type", "F32"]).ok();
    let explain = ["explain", "-m", model, "--node", "matmul", "--json"];
    let report = on_gpu(&[&explain[..], &MIXED].concat()).json();
    let nodes = report["nodes"].as_array().unwrap();
    assert!(
        nodes.iter().any(|node| node["device"] == "gpu0"),
        "{report}"
    );
    let generate = [
        "generate",
        "-m",
        model,
        "Once upon a time",
        "-n",
        "8",
        "--temp",
        "0",
    ];
    let one = kovar(&generate).ok();
    assert_eq!(on_gpu(&[&generate[..], &MIXED].concat()).ok(), one);
}

#[test]
fn layers_go_to_a_gpu_and_to_a_second_one() {
    let devices = ["--device", "cpu,gpu0,gpu0:virtual1", "--rates", "fixed"];
    let place = ["--place", "blk.0.cache.*=gpu0:virtual1"];
    let layers = ["--gpu-layers", "2"];
    let plan = [&["plan", "--json"][..], &devices, &place, &layers].concat();
    let plan = on_gpu(&plan).json();
    let operations = |device: usize| plan["devices"][device]["operations"].as_u64().unwrap();
    assert!(
        operations(0) > 0 && operations(1) > 0 && operations(2) > 0,
        "{plan}"
    );
    let lost = plan["rejected_pins"].as_array().unwrap();
    assert!(
        lost.iter().any(|pin| pin.to_string().contains("matmul")),
        "{plan}"
    );
    let generate = ["generate", "Once upon a time", "-n", "8", "--temp", "0"];
    let simd = ["--simd", "portable"];
    let one = kovar(&[&generate[..], &simd].concat()).ok();
    let three = [
        &generate[..],
        &simd,
        &devices,
        &place,
        &layers,
        &["--check-plan"],
    ]
    .concat();
    let three = on_gpu(&three);
    // One line per plan, not per product (there are 14).
    let reported = three.stderr.matches("matmul (node ").count();
    assert!((1..=4).contains(&reported), "{}", three.stderr);
    let others = "the same holds for 13 other storages";
    assert!(three.stderr.contains(others), "{}", three.stderr);
    assert!(three.ok().starts_with("Once upon a time, there was a"));
    let kept = [&generate[..], &simd, &devices, &place, &["--check-plan"]].concat();
    // The GPUs keep bytes and compute nothing else.
    assert_eq!(on_gpu(&kept).ok(), one);
}

#[test]
fn the_error_of_a_gpu_alone_names_the_missing_operations() {
    let error = on_gpu(&["generate", "a", "-n", "1", "--device", "gpu0"]).failed(1);
    assert!(
        error.contains("has no device: gpu0: no kernel of"),
        "{error}"
    );
}

#[test]
fn test_ops_checks_a_gpu_in_all_modes() {
    let scale = ["test-ops", "--device", "gpu0", "--op", "scale", "--json"];
    let cases = |more: &[&str], of: &str| {
        let report = on_gpu(&[&scale[..], more].concat()).json();
        let devices = report["devices"].as_array().unwrap();
        assert_eq!((devices.len(), &devices[0]["device"]), (1, &"gpu0".into()));
        devices[0][of].as_array().unwrap().clone()
    };
    for masked in ["", "-subgroups,-f16"] {
        let cases = cases(&["--gpu-features", masked], "cases");
        assert!(cases.len() > 100);
        assert!(cases.iter().all(|case| case["outcome"] == "passed"));
    }
    let rows = cases(&["--mode", "support"], "rows");
    assert!(
        rows.iter().all(|row| row["supported"] == row["total"]),
        "{rows:?}"
    );
    let timed = cases(&["--mode", "perf"], "cases");
    assert!(!timed.is_empty());
    assert!(
        timed
            .iter()
            .all(|case| case["microseconds"].as_f64() > Some(0.0))
    );
}

#[test]
fn bench_profiles_gpus_as_a_table_and_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let bench = [
        "bench",
        "-p",
        "4",
        "-n",
        "2",
        "-r",
        "1",
        "--capture",
        "--profile",
    ];
    let bench = [&bench[..], &[text(&trace)], &MIXED].concat();
    let devices = on_gpu(&["devices", "--device", "gpu0", "--json", "--rates", "fixed"]).json();
    if devices["devices"][0]["gpu"]["timestamps"] == false {
        let error = on_gpu(&bench).failed(1);
        assert!(error.contains("no timestamp queries"), "{error}");
        return;
    }
    let run = on_gpu(&bench);
    assert!(
        run.stderr.contains("cpu is not in the profile"),
        "{}",
        run.stderr
    );
    let text = run.ok();
    for table in [
        "pp4 on gpu0:\noperation",
        "tg1 on gpu0:\noperation",
        "rms_norm",
    ] {
        assert!(text.contains(table), "{table}: {text}");
    }
    let trace: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let kernels = |thread: u64| {
        let mut kernels: Vec<&str> = Vec::new();
        let events = events
            .iter()
            .filter(|e| e["tid"] == thread && e["ph"] == "X");
        for event in events {
            assert!(event["dur"].as_f64().unwrap() >= 0.0);
            kernels.push(event["name"].as_str().unwrap());
        }
        kernels
    };
    assert!(kernels(1).contains(&"rms_norm") && kernels(2).contains(&"rms_norm"));

    let report = on_gpu(&[&bench[..9], &MIXED[..], &["--json"]].concat()).json();
    let of_token = &report["profiles"][1];
    assert_eq!(
        (&of_token["test"], &of_token["device"]),
        (&"tg1".into(), &"gpu0".into())
    );
    let kernels = of_token["kernels"].as_array().unwrap();
    let norms = kernels.iter().find(|kernel| kernel["op"] == "rms_norm");
    // Two for each of 8 layers, and the last.
    assert_eq!(norms.unwrap()["dispatches"], 17, "{of_token}");

    for option in ["--profile", "--capture"] {
        let error = kovar(&["bench", "-p", "1", "-n", "0", option]).failed(2);
        assert!(
            error.contains("there is none among the devices: cpu"),
            "{error}"
        );
    }
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn compiled_pipelines_are_kept_in_the_cache_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = command(&[&["generate", "a", "-n", "1"][..], &MIXED].concat());
    run.env("XDG_CACHE_HOME", folder.path());
    let output: Run = run.output().expect("the program starts").into();
    output.ok();
    let kept = std::fs::read_dir(folder.path().join("kovar/pipelines")).unwrap();
    assert!(kept.count() > 0);
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn without_a_driver_the_error_names_it() {
    let folder = tempfile::tempdir().unwrap();
    // The loader then finds no drivers.
    let missing = folder.path().join("none.json");
    let run = |args: &[&str]| -> Run {
        let mut run = command(args);
        run.env("VK_DRIVER_FILES", &missing)
            .env("VK_ICD_FILENAMES", &missing);
        run.output().expect("the program starts").into()
    };
    let error = run(&["generate", "--device", "gpu0,cpu"]).failed(2);
    let reason = "no driver for Vulkan, Metal or DirectX 12 offers a GPU; known: cpu";
    assert!(error.contains(reason), "{error}");
    let report = run(&["devices", "--json", "--rates", "fixed"]).json();
    assert_eq!(report["devices"].as_array().unwrap().len(), 1, "{report}");
}

#[test]
fn the_error_of_a_gpu_alone_suggests_the_cpu() {
    let run = kovar(&["generate", "--device", "gpu0", "Once"]);
    assert_eq!(run.code, Some(1));
    let stderr = &run.stderr;
    assert!(
        stderr.contains("no kernel of get_rows for Q8_0"),
        "{stderr}"
    );
    assert!(stderr.contains("`--device gpu0,cpu`"), "{stderr}");
}
