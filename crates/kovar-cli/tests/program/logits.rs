use crate::{goldens, kovar, repository_file, text};

fn list(ids: &[u32]) -> String {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    ids.join(",")
}

#[test]
fn the_likeliest_token_after_a_prompt_is_the_reference_s_next() {
    for golden in goldens() {
        let ids = list(&golden.prompt_ids);
        let report = kovar(&["logits", "--ids", &ids, "--top", "20", "--json"]).json();
        assert_eq!(report["vocab"], 2048);
        let positions = report["positions"].as_array().unwrap();
        assert_eq!(positions.len(), golden.prompt_ids.len());
        let last = positions.last().unwrap();
        assert_eq!(last["position"], golden.prompt_ids.len() - 1);
        let top = last["top"].as_array().unwrap();
        assert_eq!(top.len(), 20);
        assert_eq!(top[0]["id"], golden.greedy_ids[0]);
        let logits: Vec<f64> = top.iter().map(|t| t["logit"].as_f64().unwrap()).collect();
        assert!(logits.is_sorted_by(|a, b| a >= b), "{logits:?}");
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
    let file = repository_file("crates/kovar-text/tests/data/llama-tiny.gguf");
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
