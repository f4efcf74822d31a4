use crate::kovar;

const TWO: [&str; 4] = ["--device", "cpu,cpu:portable", "--rates", "fixed"];

#[test]
fn a_plan_shows_the_memory_of_the_devices() {
    let plan = kovar(&["plan", "--json", "--ctx", "64"]).json();
    let [cpu] = plan["devices"].as_array().unwrap().as_slice() else {
        panic!("{plan}");
    };
    let bytes = |name: &str| cpu[name].as_u64().unwrap();
    assert_eq!(cpu["id"], "cpu");
    // 8 layers of 64 rows of keys and of values of 4 heads of 32 f16 elements.
    assert_eq!(bytes("caches"), 8 * 64 * 2 * 128 * 2);
    assert!(bytes("activations") >= bytes("activations_lower_bound"));
    assert_eq!(
        bytes("total"),
        bytes("weights") + bytes("caches") + bytes("activations") + bytes("programs")
    );
    assert_eq!(
        (plan["segments"].as_u64(), plan["copies"].as_u64()),
        (Some(1), Some(0))
    );
    assert_eq!(plan["output_bytes"], 4 * 2048);
    assert_eq!(
        (bytes("upload_ring"), bytes("readback")),
        (0, 0),
        "the CPU needs no memory for transfers"
    );
    let text = kovar(&["plan"]).ok();
    assert!(text.contains("outputs read back: 8.0 KiB\n"), "{text}");
    assert!(text.starts_with("device  "), "{text}");
    assert!(
        text.contains("a step of 1 token: 1 segment, 0 copies"),
        "{text}"
    );
}

#[test]
fn fused_operations_are_listed_and_give_the_same_text() {
    let plan = kovar(&["plan", "--json"]).json();
    let groups = |name: &str| {
        let mut fused = plan["fused"].as_array().unwrap().iter();
        let row = fused.find(|row| row["fusion"] == name).unwrap();
        ["groups", "nodes", "not_written"].map(|figure| row[figure].as_u64().unwrap())
    };
    // The keys of 8 layers, and the residuals of each before a norm; the last residual is read in
    // part only.
    assert_eq!(groups("rope+cache write"), [8, 16, 8]);
    assert_eq!(groups("residual+norm"), [15, 30, 0]);
    let text = kovar(&["plan"]).ok();
    assert!(text.contains("fused operations:\n"), "{text}");
    let explained = kovar(&["explain", "--json", "--node", "set_rows"]).json();
    let key = &explained["nodes"][0];
    assert_eq!(key["fused"]["fusion"], "rope+cache write", "{key}");
    assert_eq!(key["fused"]["written"], true, "{key}");

    let apart = kovar(&["plan", "--json", "--no-fusion"]).json();
    assert_eq!(apart["fused"].as_array().unwrap().len(), 0, "{apart}");
    assert_eq!(
        apart["devices"][0]["operations"],
        plan["devices"][0]["operations"]
    );
    let generate = ["generate", "Once upon a time", "-n", "24", "--seed", "3"];
    let fused = kovar(&generate).ok();
    assert_eq!(
        kovar(&[&generate[..], &["--no-fusion"]].concat()).ok(),
        fused
    );
}

#[test]
fn pins_and_budgets_share_a_model_between_devices() {
    let pinned = ["plan", "--json", "--place", "blk.*.ffn_*=cpu:portable"];
    let plan = kovar(&[&pinned[..], &TWO].concat()).json();
    assert_eq!(plan["devices"][1]["id"], "cpu:portable");
    assert_eq!(plan["segments"], 17);
    assert!(plan["copies"].as_u64().unwrap() >= 16, "{plan}");
    let pinned = plan["other_reasons"].as_array().unwrap().iter();
    let mut why = pinned.map(|other| other["why"].as_str().unwrap());
    assert!(why.any(|why| why == "pinned by `blk.*.ffn_*`"), "{plan}");

    let budget = 7 << 20;
    let limited = ["plan", "--json", "--ctx", "64", "--budget", "cpu=7MiB"];
    let plan = kovar(&[&limited[..], &TWO].concat()).json();
    let total = |device: usize| plan["devices"][device]["total"].as_u64().unwrap();
    assert!(total(0) <= budget, "{plan}");
    for device in plan["devices"].as_array().unwrap() {
        assert!(device["weights"].as_u64().unwrap() > 1 << 20, "{plan}");
    }
}

#[test]
fn patterns_that_match_nothing_are_warned_about_and_refused_by_strict() {
    let place = ["plan", "--place", "blk.77.*=cpu"];
    let stream = ["plan", "--stream=kv_*"];
    for (args, warning) in [
        (&place[..], "--place `blk.77.*` matches no tensor"),
        (&stream, "--stream `kv_*` matches no weight"),
    ] {
        let stderr = kovar(args).stderr;
        assert!(stderr.contains(warning), "{stderr}");
        let error = kovar(&[args, &["--strict"]].concat()).failed(2);
        assert!(error.contains(warning), "{error}");
    }
    let generate = ["generate", "a", "-n", "1", "--place", "blk.77.*=cpu"];
    let stderr = kovar(&generate).stderr;
    assert!(stderr.contains("matches no tensor"), "{stderr}");
    kovar(&[&generate[..], &["--strict"]].concat()).failed(2);
    let stderr = kovar(&["plan", "--policy", "gpu"]).stderr;
    assert!(stderr.contains("--policy gpu has no effect"), "{stderr}");
    let error = kovar(&["explain", "--node", "nomatch"]).failed(2);
    assert!(error.contains("`nomatch` matches no operation"), "{error}");
}

#[test]
fn a_step_that_the_context_cannot_hold_is_not_planned() {
    for command in ["plan", "explain"] {
        let error = kovar(&[command, "--tokens", "33", "--ctx", "32"]).failed(2);
        assert!(error.contains("the context holds 32 tokens"), "{error}");
    }
    let endless = [
        "plan",
        "-m",
        "rwkv7-stories",
        "--tokens",
        "33",
        "--ctx",
        "32",
    ];
    kovar(&endless).ok();
}

#[test]
fn streamed_layers_take_little_memory() {
    let plan = kovar(&["plan", "--json", "--stream=blk.*"]).json();
    assert_eq!(plan["segments"], 8);
    assert!(plan["uploads"].as_u64().unwrap() >= 8 * 9, "{plan}");
    let resident = kovar(&["plan", "--json"]).json();
    let total = |plan: &serde_json::Value| plan["devices"][0]["total"].as_u64().unwrap();
    assert!(total(&plan) < total(&resident), "{plan} {resident}");
    // A long prompt does not upload them again for each micro-batch.
    let long = ["--tokens", "1500", "--ctx", "2048"];
    let long = kovar(&[&["plan", "--json", "--stream=blk.*"][..], &long].concat()).json();
    let crossing = |plan: &serde_json::Value| plan["uploaded_bytes"].as_u64().unwrap();
    assert_eq!(crossing(&long), crossing(&plan));
    assert!(long["tokens"].as_u64().unwrap() >= 1500, "{long}");
    let small = ["plan", "--json", "--tokens", "512", "--micro-batch", "100"];
    assert_eq!(kovar(&small).json()["tokens"], 32);
    let steps = ["plan", "--json", "--tokens", "1500", "--ctx", "2048"];
    assert_eq!(kovar(&steps).json()["tokens"], 512);
}

#[test]
fn a_plan_covers_all_requested_steps() {
    let plan = |args: &[&str]| kovar(&[&["plan", "--json"], args].concat()).json();
    let bytes = |plan: &serde_json::Value, name: &str| plan["devices"][0][name].as_u64().unwrap();
    let (one, long) = (plan(&[]), plan(&["--tokens", "256"]));
    assert!(bytes(&one, "activations") < bytes(&long, "activations"));
    let scored = plan(&["--tokens", "256", "--logits", "128"]);
    // 128 rows of 2048 logits, and the hidden state.
    assert!(bytes(&scored, "activations") >= 4 * 128 * 2048);
    assert_eq!(scored["output_bytes"], 4 * 128 * 2048);
    assert_eq!(bytes(&scored, "weights"), bytes(&one, "weights"));

    let caches = [
        "--place",
        "blk.*.cache.*=cpu:portable",
        "--place",
        "attention.*=cpu",
    ];
    let text = kovar(&[&["plan", "--ctx", "64"], &TWO[..], &caches].concat()).ok();
    assert!(
        text.contains("as the context fills) between devices"),
        "{text}"
    );
}

#[test]
fn text_is_the_same_on_two_devices() {
    let args = [
        "generate",
        "Once upon a time",
        "-n",
        "12",
        "--temp",
        "0",
        "--simd",
        "portable",
    ];
    let one = kovar(&args).ok();
    let places = ["--place", "blk.0.*=cpu", "--place", "*attn*=cpu:portable"];
    let two = kovar(&[&args[..], &TWO, &places, &["--check-plan"]].concat()).ok();
    assert_eq!(one, two);
}

#[test]
fn each_operation_is_explained() {
    let report = kovar(&["explain", "--json", "--node", "matmul*"]).json();
    let nodes = report["nodes"].as_array().unwrap();
    // Also operations in place on the results of products.
    let products = nodes.iter().filter(|node| node["op"] == "matmul");
    assert_eq!(products.count(), 8 * 7 + 1);
    for node in nodes {
        assert_eq!(
            (&node["device"], &node["why"]),
            (&"cpu".into(), &"fastest".into())
        );
        assert!(!node["kernel"].as_str().unwrap().is_empty());
        assert!(node["measured_ns"].as_u64().unwrap() > 0);
    }
    let streamed = ["explain", "--json", "--stream=blk.*", "--tokens", "40"];
    let report = kovar(&streamed).json();
    for node in report["nodes"].as_array().unwrap() {
        assert!(node["measured_ns"].as_u64().unwrap() > 0, "{node}");
    }
    let text = kovar(&["explain", "--node", "attention"]).ok();
    assert_eq!(text.lines().count(), 1 + 8, "{text}");
}

#[test]
fn equal_devices_do_not_differ() {
    let report = kovar(&["diff", "--json", "--a", "cpu:portable", "--b", "cpu"]).json();
    assert_eq!(report["failed"], false);
    assert!(report["operations"].as_u64().unwrap() > 8 * 15, "{report}");
    let both = ["--b", "cpu,cpu:portable", "--rates", "fixed"];
    let text = kovar(&[&["diff", "--a", "cpu:portable"][..], &both].concat()).ok();
    assert!(text.ends_with("agree within their limits\n"), "{text}");
}

#[test]
fn placements_on_devices_that_are_not_in_use_are_refused() {
    let error = kovar(&["plan", "--place", "blk.*=gpu0"]).failed(2);
    assert!(
        error.contains("`gpu0` is not one of the devices in use: cpu"),
        "{error}"
    );
    let error = kovar(&["plan", "--gpu-layers", "4"]).failed(2);
    assert!(
        error.contains("a device of another kind among the devices in use: cpu"),
        "{error}"
    );
    let error = kovar(&["plan", "--budget", "cpu=lots"]).failed(2);
    assert!(error.contains("500M"), "{error}");
    let error = kovar(&["plan", "--budget", "cpu=1KiB"]).failed(1);
    assert!(error.contains("its budget is 1024 bytes"), "{error}");
}
