use crate::{demo_file, goldens, kovar, list, repository_file, text};

/// The maximum error of a logit due to 8-bit weights and activations. Over all positions of the
/// golden file it is 0.35 to 0.45, depending on the SIMD level.
const Q8_0_DISTANCE: f64 = 0.5;

#[test]
fn logits_after_a_prompt_are_near_those_of_the_reference() {
    for golden in goldens() {
        let ids = list(&golden.prompt_ids);
        let report = kovar(&["logits", "--ids", &ids, "--json"]).json();
        assert_eq!(report["vocab"], 2048);
        let positions = report["positions"].as_array().unwrap();
        assert_eq!(positions.len(), golden.prompt_ids.len());
        let mut compared = 0;
        for (at, expected) in &golden.top_logits {
            // The later positions of the golden file are in the generated text.
            let Some(position) = positions.get(*at) else {
                continue;
            };
            assert_eq!(position["position"], *at);
            for &(id, expected) in expected {
                let found = position["logits"][id].as_f64().unwrap();
                let distance = (found - expected).abs();
                assert!(distance < Q8_0_DISTANCE, "{at}, {id}: {found}, {expected}");
                compared += 1;
            }
        }
        assert!(compared >= 20, "{compared} logits compared");
        let top = kovar(&["logits", "--ids", &ids, "--top", "20", "--json"]).json();
        for position in top["positions"].as_array().unwrap() {
            let top = position["top"].as_array().unwrap();
            assert_eq!(top.len(), 20);
            let logits: Vec<f64> = top.iter().map(|t| t["logit"].as_f64().unwrap()).collect();
            assert!(logits.is_sorted_by(|a, b| a >= b), "{logits:?}");
        }
    }
}

#[test]
fn all_logits_agree_with_the_top_and_the_last() {
    let all = kovar(&["logits", "--ids", "571 705 259", "--json"]).json();
    let logits = all["positions"][2]["logits"].as_array().unwrap();
    assert_eq!(logits.len(), 2048);
    let last = [
        "logits",
        "--ids",
        "571 705 259",
        "--json",
        "--top",
        "1",
        "--last",
    ];
    let last = kovar(&last).json();
    assert_eq!(last["positions"].as_array().map(Vec::len), Some(1));
    let top = &last["positions"][0]["top"][0];
    let id = top["id"].as_u64().unwrap() as usize;
    let found = logits[id].as_f64().unwrap();
    assert!((found - top["logit"].as_f64().unwrap()).abs() < 0.05);
}

#[test]
fn a_model_without_a_tokenizer_has_logits() {
    let file = repository_file("crates/kovar-text/tests/data/llama-tiny");
    let args = ["logits", "-m", text(&file), "--ids", "1,2,3", "--json"];
    let report = kovar(&args).json();
    assert_eq!(report["vocab"], 256);
    let table = kovar(&["logits", "-m", text(&file), "--ids", "1,2,3", "--top", "3"]).ok();
    assert_eq!(table.matches("after token").count(), 3, "{table}");
}

#[test]
fn tokens_that_do_not_exist_or_do_not_fit_are_errors() {
    let message = kovar(&["logits", "--ids", "5,2048"]).failed(1);
    assert!(message.contains("token 2048"), "{message}");
    let many = list(&[1; 513]);
    let message = kovar(&["logits", "--ids", &many]).failed(1);
    assert!(message.contains("512"), "{message}");
    let message = kovar(&["logits", "--ids", "1,2,3", "--ctx", "2"]).failed(2);
    assert!(message.contains("--ctx"), "{message}");
}

#[test]
fn logits_that_are_not_finite_are_an_error_in_json() {
    let file = kovar::Gguf::open(demo_file()).unwrap();
    let mut writer = kovar::GgufWriter::with_alignment(file.alignment()).unwrap();
    for (key, value) in file.metadata().iter() {
        if key != kovar::gguf::ALIGNMENT_KEY {
            writer.metadata(key, value.clone()).unwrap();
        }
    }
    for tensor in file.tensors() {
        let mut bytes = file.bytes(tensor).as_slice().to_vec();
        if tensor.name() == "output_norm.weight" {
            bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        writer
            .tensor(tensor.name(), tensor.dtype(), tensor.dims(), bytes)
            .unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nan.gguf");
    writer.write_file(&path).unwrap();
    let path = text(&path);
    let message = kovar(&["logits", "-m", path, "--ids", "1,2", "--json"]).failed(1);
    assert!(message.contains("after token 1 at position 0"), "{message}");
    assert!(message.contains("NaN"), "{message}");
    let shown = kovar(&["logits", "-m", path, "--ids", "1"]).ok();
    assert!(shown.contains("NaN"), "{shown}");
}
