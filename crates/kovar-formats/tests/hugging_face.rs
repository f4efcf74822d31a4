//! Hugging Face folders: the models in them, and the errors of damaged ones.

mod common;

use common::{Tensor, config, folder, message, safetensors, tensor, tensors, tokenizer, with};
use kovar_core::{DType, quant};
use kovar_formats::{ModelFile, ModelFormat, ModelTensor};
use serde_json::{Value, json};

/// The model in a folder of these files, or the error.
fn open(config: &Value, tensors: &[Tensor], more: &[(&str, Value)]) -> Result<ModelFile, String> {
    let config = config.to_string();
    let weights = safetensors(tensors);
    let more: Vec<(&str, String)> = more.iter().map(|(n, v)| (*n, v.to_string())).collect();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("config.json", config.as_bytes()),
        ("model.safetensors", &weights),
    ];
    files.extend(more.iter().map(|(name, text)| (*name, text.as_bytes())));
    let folder = folder(&files);
    ModelFile::open(folder.path()).map_err(|error| message(&error, folder.path()))
}

fn opened(config: &Value) -> ModelFile {
    open(config, &tensors(), &[]).unwrap()
}

fn error(config: &Value) -> String {
    open(config, &tensors(), &[]).unwrap_err()
}

fn values(tensor: &ModelTensor) -> Vec<f32> {
    let mut values = vec![0.0; tensor.elements()];
    quant::decode(
        tensor.dtype(),
        tensor.bytes().unwrap().as_slice(),
        &mut values,
    )
    .unwrap();
    values
}

/// The rows of a matrix of ascending numbers, by their numbers.
fn rows(tensor: &ModelTensor) -> Vec<usize> {
    let width = tensor.dims()[1];
    let starts = values(tensor);
    starts
        .chunks(width)
        .map(|row| row[0] as usize / width)
        .collect()
}

#[test]
fn a_llama_gets_the_names_and_the_row_order_of_gguf() {
    let model = opened(&config());
    let names: Vec<&str> = model.tensors().map(ModelTensor::name).collect();
    assert_eq!(names[0], "token_embd.weight");
    assert_eq!(names[1], "blk.0.attn_norm.weight");
    assert_eq!(
        names[names.len() - 2..],
        ["output_norm.weight", "output.weight"]
    );
    let tensor = |name: &str| model.tensor(&format!("blk.0.{name}.weight")).unwrap();
    // Two heads of four rows.
    assert_eq!(rows(tensor("attn_q")), [0, 2, 1, 3, 4, 6, 5, 7]);
    assert_eq!(rows(tensor("attn_k")), [0, 2, 1, 3, 4, 6, 5, 7]);
    assert_eq!(rows(tensor("attn_v")), [0, 1, 2, 3, 4, 5, 6, 7]);
    let metadata = model.metadata();
    assert_eq!(metadata.get_str("general.architecture"), Ok(Some("llama")));
    assert_eq!(metadata.get_u32("llama.block_count"), Ok(Some(1)));
    assert_eq!(metadata.get_u32("llama.rope.dimension_count"), Ok(Some(4)));
    assert!(!metadata.contains("llama.attention.sliding_window"));
    assert!(!metadata.contains("llama.attention.key_length"));
}

#[test]
fn other_architectures_keep_their_rows() {
    for (class, name) in [("Qwen2ForCausalLM", "qwen2"), ("Qwen3ForCausalLM", "qwen3")] {
        let config = with(config(), "architectures", json!([class]));
        let model = opened(&with(config, "head_dim", json!(4)));
        let found = model.metadata().get_str("general.architecture");
        assert_eq!(found, Ok(Some(name)));
        let query = model.tensor("blk.0.attn_q.weight").unwrap();
        assert_eq!(rows(query), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn vectors_become_f32_and_matrices_stay() {
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let mut tensors = tensors();
        tensors.iter_mut().for_each(|tensor| tensor.dtype = dtype);
        let model = open(&config(), &tensors, &[]).unwrap();
        let norm = model.tensor("output_norm.weight").unwrap();
        assert_eq!(norm.dtype(), DType::F32);
        assert_eq!(values(norm), [0., 1., 2., 3., 4., 5., 6., 7.]);
        let up = model.tensor("blk.0.ffn_up.weight").unwrap();
        assert_eq!(up.dtype(), dtype);
    }
}

#[test]
fn a_tied_model_has_no_output_matrix() {
    let tied = with(config(), "tie_word_embeddings", json!(true));
    assert!(opened(&tied).tensor("output.weight").is_none());
    let mut without = tensors();
    without.retain(|tensor| tensor.name != "lm_head.weight");
    assert!(open(&tied, &without, &[]).is_ok());
    assert_eq!(
        open(&config(), &without, &[]).unwrap_err(),
        "tensor \"lm_head.weight\" is missing (`tie_word_embeddings` requires it)"
    );
}

#[test]
fn rope_settings_of_both_forms_are_read() {
    let old = with(
        config(),
        "rope_scaling",
        json!({"type": "linear", "factor": 2}),
    );
    let settings = json!({"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0});
    let new = with(config(), "rope_parameters", settings);
    for config in [old, new] {
        let model = opened(&config);
        let metadata = model.metadata();
        let kind = metadata.get_str("llama.rope.scaling.type");
        assert_eq!(kind, Ok(Some("linear")));
        assert_eq!(metadata.get_f32("llama.rope.scaling.factor"), Ok(Some(2.0)));
        assert_eq!(metadata.get_f32("llama.rope.freq_base"), Ok(Some(10_000.0)));
    }
    let yarn = json!({
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
        "attention_factor": 1.0,
    });
    let model = opened(&with(config(), "rope_scaling", yarn));
    let metadata = model.metadata();
    let key = "llama.rope.scaling.original_context_length";
    assert_eq!(metadata.get_u32(key), Ok(Some(16)));
    let factor = metadata.get_f32("llama.rope.scaling.attn_factor");
    let factor = factor.unwrap().unwrap();
    assert!((f64::from(factor) * (0.1 * 4f64.ln() + 1.0) - 1.0).abs() < 1e-6);
}

#[test]
fn windows_are_those_of_the_class() {
    let key = |name: &str| format!("{name}.attention.sliding_window");
    let window = |class: &str, name: &str, changes: &[(&str, Value)]| {
        let mut config = with(config(), "architectures", json!([class]));
        for (key, value) in changes {
            config = with(config, key, value.clone());
        }
        let model = open(&with(config, "head_dim", json!(4)), &tensors(), &[]);
        model.map(|model| model.metadata().get_u32(&key(name)).unwrap())
    };
    let mistral = |changes: &[_]| window("MistralForCausalLM", "llama", changes);
    assert_eq!(mistral(&[]), Ok(Some(4096)));
    assert_eq!(mistral(&[("sliding_window", json!(null))]), Ok(None));
    assert_eq!(mistral(&[("sliding_window", json!(7))]), Ok(Some(7)));
    let qwen = |changes: &[_]| window("Qwen2ForCausalLM", "qwen2", changes);
    let uses = ("use_sliding_window", json!(true));
    let size = ("sliding_window", json!(32));
    assert_eq!(qwen(std::slice::from_ref(&size)), Ok(None));
    // One layer of the 28 that have none by default.
    assert_eq!(qwen(&[uses.clone(), size.clone()]), Ok(None));
    let all = ("max_window_layers", json!(0));
    assert_eq!(qwen(&[uses.clone(), size.clone(), all]), Ok(Some(32)));
    let kinds = ("layer_types", json!(["sliding_attention"]));
    assert_eq!(qwen(&[uses.clone(), size.clone(), kinds]), Ok(Some(32)));
    let mixed = json!(["sliding_attention", "full_attention"]);
    let error = qwen(&[uses, size, ("layer_types", mixed)]).unwrap_err();
    assert!(
        error.starts_with("config.json: `layer_types` is"),
        "{error}"
    );
    // Llama's class has no windows, whatever the config says.
    let ignored = [("sliding_window", json!(32))];
    assert_eq!(window("LlamaForCausalLM", "llama", &ignored), Ok(None));
}

#[test]
fn every_config_that_makes_no_model_gives_an_error_that_names_the_key() {
    let size = "a whole number between 1 and 1048576";
    let cases = [
        ("architectures", json!(["BertModel"]), "`architectures` is [\"BertModel\"], which kovar does not support".to_owned()),
        ("architectures", json!([]), "`architectures` is [], which kovar does not support".to_owned()),
        ("architectures", json!("LlamaForCausalLM"), "`architectures` is \"LlamaForCausalLM\", expected a list".to_owned()),
        ("hidden_act", json!("gelu"), "`hidden_act` is \"gelu\", which kovar does not support".to_owned()),
        ("quantization_config", json!({"bits": 4}), "`quantization_config` is {\"bits\":4}, which kovar does not support".to_owned()),
        ("num_local_experts", json!(8), "`num_local_experts` is 8, which kovar does not support".to_owned()),
        ("mlp_bias", json!(true), "`mlp_bias` is true, which kovar does not support".to_owned()),
        ("hidden_size", json!(-8), format!("`hidden_size` is -8, expected {size}")),
        ("hidden_size", json!(8.5), format!("`hidden_size` is 8.5, expected {size}")),
        ("hidden_size", json!("8"), format!("`hidden_size` is \"8\", expected {size}")),
        ("hidden_size", json!(null), "`hidden_size` is missing".to_owned()),
        ("hidden_size", json!(1u64 << 40), format!("`hidden_size` is 1099511627776, expected {size}")),
        ("num_hidden_layers", json!(u64::MAX), format!("`num_hidden_layers` is 18446744073709551615, expected {size}")),
        ("vocab_size", json!(0), format!("`vocab_size` is 0, expected {size}")),
        ("num_attention_heads", json!(8), "`num_attention_heads` is 8, expected a number that `hidden_size` is an even multiple of".to_owned()),
        ("max_position_embeddings", json!(1u64 << 32), "`max_position_embeddings` is 4294967296, expected a whole number that is not negative, below 2^32".to_owned()),
        ("rms_norm_eps", json!(-1e-5), "`rms_norm_eps` is -0.00001, expected a number above 0".to_owned()),
        ("rope_theta", json!("10000"), "`rope_theta` is \"10000\", expected a number above 0".to_owned()),
        ("rope_scaling", json!([1]), "`rope_scaling` is [1], expected an object".to_owned()),
        ("rope_scaling", json!({"type": "dynamic", "factor": 2.0}), "`rope_scaling.type` is \"dynamic\", which kovar does not support".to_owned()),
        ("rope_scaling", json!({"rope_type": "longrope"}), "`rope_scaling.rope_type` is \"longrope\", which kovar does not support".to_owned()),
        ("rope_scaling", json!({"rope_type": "linear"}), "`rope_scaling.factor` is missing".to_owned()),
        ("rope_scaling", json!({"rope_type": "linear", "factor": 0}), "`rope_scaling.factor` is 0, expected a number above 0".to_owned()),
        ("rope_scaling", json!({"rope_type": "yarn", "factor": 2.0, "mscale": 1.0}), "`rope_scaling.mscale` is 1.0, which kovar does not support".to_owned()),
        ("rope_scaling", json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}), "`rope_scaling.high_freq_factor` is 4.0, expected more than `low_freq_factor`".to_owned()),
        ("rope_parameters", json!({"full_attention": {"rope_type": "default"}}), "`rope_parameters.full_attention` is {\"rope_type\":\"default\"}, which kovar does not support".to_owned()),
        ("partial_rotary_factor", json!(0.5), "`partial_rotary_factor` is 0.5, which kovar does not support".to_owned()),
        ("tie_word_embeddings", json!(1), "`tie_word_embeddings` is 1, expected true or false".to_owned()),
    ];
    for (key, value, expected) in cases {
        let found = error(&with(config(), key, value));
        assert_eq!(found, format!("config.json: {expected}"));
    }
}

#[test]
fn a_long_value_is_shortened() {
    let found = error(&with(config(), "hidden_act", json!("x".repeat(1000))));
    assert!(found.len() < 200, "{found}");
}

#[test]
fn every_tensor_that_does_not_fit_is_named() {
    let changed = |name: &str, new: Tensor| {
        let mut tensors = tensors();
        let at = tensors.iter().position(|t| t.name == name).unwrap();
        tensors[at] = new;
        open(&config(), &tensors, &[]).unwrap_err()
    };
    let query = "model.layers.0.self_attn.q_proj.weight";
    assert_eq!(
        changed(query, tensor(query, &[7, 8])),
        format!("tensor {query:?} (F32): 7 rows are not 2 heads of an even number of rows")
    );
    assert_eq!(
        changed(query, tensor(query, &[0, 8])),
        format!("tensor {query:?} has dims [0, 8]: no dim may be 0")
    );
    for unknown in [
        "model.layers.0.self_attn.qkv.weight",
        "model.layers.x.mlp.up_proj.weight",
        "model.layers.-1.mlp.up_proj.weight",
        "model.layers.0",
        "vision.patch.weight",
    ] {
        assert_eq!(
            changed(query, tensor(unknown, &[8, 8])),
            format!("tensor {unknown:?} is not known")
        );
    }
    // Two names of one layer.
    assert_eq!(
        changed(
            query,
            tensor("model.layers.00.self_attn.k_proj.weight", &[8, 8])
        ),
        "tensor \"blk.0.attn_k.weight\" occurs twice"
    );
    let embeddings = "model.embed_tokens.weight";
    assert_eq!(
        changed(embeddings, tensor(embeddings, &[6, 8])),
        format!(
            "tensor {embeddings:?} has dims [6, 8]: \
             it must have `vocab_size` rows"
        )
    );
    assert_eq!(
        changed(
            embeddings,
            tensor("model.layers.0.self_attn.rotary_emb.inv_freq", &[2])
        ),
        format!("tensor {embeddings:?} is missing (`vocab_size` requires it)")
    );
}

#[test]
fn every_damaged_tokenizer_gives_an_error_that_names_the_part() {
    let unsupported = |key: &str, value: &str| {
        format!("tokenizer.json: `{key}` is {value}, which kovar does not support")
    };
    let cases = [
        (
            "model.type",
            json!("WordPiece"),
            unsupported("model.type", "\"WordPiece\""),
        ),
        (
            "model.vocab",
            json!([["a", 0.5]]),
            "tokenizer.json: `model.vocab` is a list".to_owned(),
        ),
        (
            "model.vocab.b",
            json!(5),
            "tokenizer.json: token \"b\" has the id 5, but there are 5 tokens".to_owned(),
        ),
        (
            "model.vocab.b",
            json!(1u64 << 60),
            "tokenizer.json: token \"b\" has the id 1152921504606846976, but there are 5 tokens"
                .to_owned(),
        ),
        (
            "model.vocab.b",
            json!(0),
            "tokenizer.json: tokens \"a\" and \"b\" have the id 0".to_owned(),
        ),
        (
            "model.merges",
            json!([["a"]]),
            "tokenizer.json is not valid: invalid length 0, expected two tokens".to_owned(),
        ),
        (
            "model.merges",
            json!(["ab"]),
            "tokenizer.json: `model.merges[0]` is not two tokens of the vocabulary".to_owned(),
        ),
        (
            "model.merges",
            json!([["a", "b c"]]),
            "tokenizer.json: `model.merges[0]` is not two tokens of the vocabulary".to_owned(),
        ),
        (
            "model.dropout",
            json!(0.1),
            unsupported("model.dropout", "0.1"),
        ),
        (
            "model.ignore_merges",
            json!(true),
            unsupported("model.ignore_merges", "true"),
        ),
        (
            "model.end_of_word_suffix",
            json!("</w>"),
            unsupported("model.end_of_word_suffix", "\"</w>\""),
        ),
        (
            "model.byte_fallback",
            json!(true),
            unsupported("pre_tokenizer", "{\""),
        ),
        (
            "added_tokens.0.id",
            json!(2),
            "tokenizer.json: tokens \"ab\" and \"<end>\" have the id 2".to_owned(),
        ),
        (
            "added_tokens.0.id",
            json!(9),
            "tokenizer.json: token \"<end>\" has the id 9, but there are 5 tokens".to_owned(),
        ),
        (
            "added_tokens.0.rstrip",
            json!(true),
            unsupported("added_tokens[0].rstrip", "true"),
        ),
        (
            "normalizer",
            json!({"type": "NFKC"}),
            unsupported("normalizer", "{\"type\":\"NFKC\"}"),
        ),
        (
            "pre_tokenizer",
            json!(null),
            unsupported("pre_tokenizer", "null"),
        ),
        (
            "pre_tokenizer.add_prefix_space",
            json!(true),
            unsupported("pre_tokenizer", "{\""),
        ),
        (
            "pre_tokenizer",
            json!({"type": "Sequence", "pretokenizers": []}),
            unsupported("pre_tokenizer", "{\""),
        ),
        (
            "post_processor",
            json!({"type": "BertProcessing"}),
            unsupported("post_processor", "{\"type\":\"BertProcessing\"}"),
        ),
        (
            "post_processor",
            json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<cls>"}}, {"Sequence": {}}]}),
            unsupported("post_processor", "\"<cls>\""),
        ),
    ];
    for (key, value, expected) in cases {
        let changed = with(tokenizer(), key, value);
        let found = open(&config(), &tensors(), &[("tokenizer.json", changed)]).unwrap_err();
        let start = expected.split("{\"\"").next().unwrap();
        let start = start.split("{\",").next().unwrap();
        assert!(
            found.starts_with(start),
            "{key}: {found}\nexpected {expected}"
        );
    }
    let model = open(&config(), &tensors(), &[("tokenizer.json", tokenizer())]).unwrap();
    let tokens = model.metadata().get_str_array("tokenizer.ggml.tokens");
    let tokens: Vec<&str> = tokens.unwrap().unwrap().iter().collect();
    assert_eq!(tokens, ["a", "b", "ab", "<end>", "[PAD4]"]);
}

#[test]
fn merges_that_do_not_follow_from_scores_are_refused() {
    // With byte tokens, and spaces that become U+2581.
    let spm = |merges: Value| {
        let mut file = tokenizer();
        file["pre_tokenizer"] = json!(null);
        file["normalizer"] =
            json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
        file["model"] = json!({
            "type": "BPE", "byte_fallback": true,
            "vocab": {"a": 0, "b": 1, "ab": 2, "aba": 4}, "merges": merges,
        });
        open(&config(), &tensors(), &[("tokenizer.json", file)])
    };
    let model = spm(json!(["a b", "ab a"])).unwrap();
    let scores = model.metadata().get_f32_array("tokenizer.ggml.scores");
    let scores = scores.unwrap().unwrap();
    assert!(scores[2] > scores[4] && scores[4] > scores[0]);
    for (merges, rule) in [
        (json!(["a b"]), "\"ab\" \"a\""),
        (json!(["ab a", "a b", "ab a"]), "\"ab\" \"a\""),
    ] {
        assert_eq!(
            spm(merges).unwrap_err(),
            format!(
                "tokenizer.json: `model.merges` are not those of a SentencePiece vocabulary \
                 (rule {rule})"
            )
        );
    }
}

#[test]
fn tokens_that_never_come_up_ask_for_no_rule_and_long_merges_are_refused() {
    let spm = |vocab: Value, merges: Value| {
        let mut file = tokenizer();
        file["pre_tokenizer"] = json!(null);
        file["normalizer"] =
            json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
        file["model"] =
            json!({"type": "BPE", "byte_fallback": true, "vocab": vocab, "merges": merges});
        open(&config(), &tensors(), &[("tokenizer.json", file)])
    };
    // Nothing makes "bcdef", which is longer than what rules make.
    let unmade = json!({"a": 0, "b": 1, "abcdef": 2, "bcdef": 4});
    spm(unmade, json!([])).unwrap();
    let (half, whole) = ("x".repeat(256), "x".repeat(512));
    let vocab = json!({&half: 0, &whole: 1, "x": 2});
    spm(vocab, json!([[half, half]])).unwrap();
    let whole = format!("{whole}x");
    let vocab = json!({"x": 0, &whole[1..]: 1, &whole: 2});
    assert_eq!(
        spm(vocab, json!([["x", whole[1..]]])).unwrap_err(),
        "tokenizer.json: `model.merges[0]` makes a token of 513 bytes, the most is 512"
    );
}

#[test]
fn settings_of_a_wrong_kind_are_named() {
    let with_settings = |name: &'static str, settings: Value| {
        let files = [("tokenizer.json", tokenizer()), (name, settings)];
        open(&config(), &tensors(), &files).unwrap_err()
    };
    let file = "tokenizer_config.json";
    for (name, key, value, expected) in [
        (
            file,
            "eos_token",
            json!(7),
            "`eos_token` is 7, expected a text, or an object with `content`",
        ),
        (
            file,
            "eos_token",
            json!({}),
            "`eos_token` is {}, expected a text, or an object with `content`",
        ),
        (
            file,
            "add_bos_token",
            json!("no"),
            "`add_bos_token` is \"no\", expected true or false",
        ),
        (
            file,
            "chat_template",
            json!([{"name": "default"}]),
            "`chat_template` is [{\"name\":\"default\"}], expected a text, or a list of `name` and `template`",
        ),
        (
            "generation_config.json",
            "eos_token_id",
            json!([0, 5]),
            "`eos_token_id` is [0,5], expected ids of the vocabulary",
        ),
        (
            "generation_config.json",
            "eos_token_id",
            json!(-1),
            "`eos_token_id` is -1, expected ids of the vocabulary",
        ),
    ] {
        let found = with_settings(name, json!({key: value}));
        assert_eq!(found, format!("{name}: {expected}"));
    }
}

#[test]
fn files_that_are_not_the_json_that_they_should_be_are_named() {
    let deep = "[".repeat(100_000);
    let cases: [(&[u8], &str); 6] = [
        (b"", "EOF while parsing a value"),
        (b"[]", "invalid type: sequence, expected a map"),
        (b"{\"hidden_size\": NaN}", "expected value at line 1"),
        (b"{\"hidden_size\": 1e999}", "number out of range"),
        (b"{\"hidden_size\": \"\xff\"}", "invalid unicode"),
        (deep.as_bytes(), "invalid type: sequence, expected a map"),
    ];
    for (bytes, expected) in cases {
        let folder = folder(&[("config.json", bytes)]);
        let error = ModelFile::open(folder.path()).unwrap_err();
        let found = message(&error, folder.path());
        assert!(found.starts_with("config.json is not valid: "), "{found}");
        assert!(found.contains(expected), "{found}");
    }
    let nested = format!("{{\"x\": {deep}");
    let config_text = config().to_string();
    for name in ["config.json", "tokenizer.json", "generation_config.json"] {
        let tokenizer = tokenizer().to_string();
        let mut files: Vec<(&str, &[u8])> = vec![
            ("config.json", config_text.as_bytes()),
            ("tokenizer.json", tokenizer.as_bytes()),
        ];
        files.push((name, nested.as_bytes()));
        let folder = folder(&files);
        let error = ModelFile::open(folder.path()).unwrap_err();
        let found = message(&error, folder.path());
        assert!(
            found.starts_with(&format!("{name} is not valid: ")),
            "{found}"
        );
        // Unused parts of tokenizer.json are skipped, which takes no stack.
        let is_refused = found.contains("recursion limit exceeded") || found.contains("EOF");
        assert!(is_refused, "{found}");
    }
}

#[test]
fn a_file_of_weights_stands_for_its_folder() {
    let (config, weights) = (config().to_string(), safetensors(&tensors()));
    let files: [(&str, &[u8]); 2] = [
        ("config.json", config.as_bytes()),
        ("model.safetensors", &weights),
    ];
    let folder = folder(&files);
    let path = folder.path().join("model.safetensors");
    let model = ModelFile::open(&path).unwrap();
    assert_eq!(model.format(), ModelFormat::HuggingFace);
    std::fs::remove_file(folder.path().join("config.json")).unwrap();
    let error = ModelFile::open(&path).unwrap_err();
    assert!(message(&error, folder.path()).contains("RWKV-7"), "{error}");
}

#[test]
fn folders_without_a_model_say_so() {
    let empty = folder(&[]);
    let error = ModelFile::open(empty.path()).unwrap_err();
    let found = message(&error, empty.path());
    assert_eq!(
        found,
        "FOLDER is not the folder of a model: it has no config.json"
    );
    let config = config().to_string();
    let alone = folder(&[("config.json", config.as_bytes())]);
    let error = ModelFile::open(alone.path()).unwrap_err();
    assert_eq!(
        message(&error, alone.path()),
        "FOLDER has no model.safetensors and no model.safetensors.index.json"
    );
    let tokenizer = tokenizer().to_string();
    let files: [(&str, &[u8]); 2] = [
        ("config.json", config.as_bytes()),
        ("tokenizer.json", tokenizer.as_bytes()),
    ];
    let vocabulary = folder(&files);
    let model = ModelFile::open(vocabulary.path()).unwrap();
    assert_eq!(model.tensors().len(), 0);
    assert!(model.metadata().contains("tokenizer.ggml.tokens"));
    let damaged = folder(&[("model.safetensors", b"\xff\xff\xff\xff")]);
    let error = ModelFile::open(damaged.path()).unwrap_err();
    assert!(
        message(&error, damaged.path()).starts_with("model.safetensors"),
        "{error}"
    );
    let missing = vocabulary.path().join("no such folder");
    let error = ModelFile::open(&missing).unwrap_err();
    assert!(message(&error, vocabulary.path()).starts_with("cannot open no such folder"));
}

#[test]
fn a_truncated_file_of_weights_is_named() {
    let config = config().to_string();
    let weights = safetensors(&tensors());
    for cut in [4, 100, weights.len() - 1] {
        let files: [(&str, &[u8]); 2] = [
            ("config.json", config.as_bytes()),
            ("model.safetensors", &weights[..cut]),
        ];
        let folder = folder(&files);
        let error = ModelFile::open(folder.path()).unwrap_err();
        let found = message(&error, folder.path());
        assert!(found.starts_with("model.safetensors: "), "{found}");
    }
}

#[test]
fn any_damage_gives_a_model_or_an_error() {
    let texts = [
        ("config.json", config().to_string().into_bytes()),
        ("tokenizer.json", tokenizer().to_string().into_bytes()),
        (
            "tokenizer_config.json",
            br#"{"eos_token":"<end>"}"#.to_vec(),
        ),
        (
            "generation_config.json",
            br#"{"eos_token_id":[1,3]}"#.to_vec(),
        ),
        ("model.safetensors", safetensors(&tensors())),
    ];
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let files: Vec<(&str, &[u8])> = texts.iter().map(|(n, b)| (*n, &**b)).collect();
    let folder = folder(&files);
    assert!(ModelFile::open(folder.path()).is_ok());
    let mut refused = 0;
    for _ in 0..400 {
        let (name, whole) = &texts[random(texts.len())];
        // Of the weights only the header is read.
        let len = whole.len().min(1200);
        let mut damaged = whole.clone();
        match random(3) {
            0 => damaged.truncate(random(len)),
            1 => damaged[random(len)] = random(256) as u8,
            _ => {
                let start = random(len / 2);
                damaged.splice(start..start + random(len / 2), [b'9'; 9]);
            }
        }
        let path = folder.path().join(name);
        std::fs::write(&path, damaged).unwrap();
        match ModelFile::open(folder.path()) {
            Ok(model) => model.tensors().for_each(|tensor| {
                assert_eq!(tensor.bytes().unwrap().len(), tensor.size());
            }),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn damaged_unigram_tokenizers_are_named() {
    let whole = json!({
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]]},
    });
    let open = |file: Value| open(&config(), &tensors(), &[("tokenizer.json", file)]);
    let model = open(whole.clone()).unwrap();
    let metadata = model.metadata();
    assert_eq!(metadata.get_str("tokenizer.ggml.model"), Ok(Some("t5")));
    let charsmap = metadata.get_bytes("tokenizer.ggml.precompiled_charsmap");
    assert_eq!(charsmap, Ok(Some(vec![0; 3])));
    let types = metadata.get_i32_array("tokenizer.ggml.token_type");
    assert_eq!(types, Ok(Some(vec![2, 1, 5, 5, 5])));
    for (key, value, at_fault) in [
        (
            "normalizer.precompiled_charsmap",
            json!("A!"),
            "`normalizer`",
        ),
        ("normalizer.precompiled_charsmap", json!(7), "`normalizer`"),
        ("normalizer", json!({"type": "NFKC"}), "`normalizer`"),
        ("pre_tokenizer.replacement", json!("_"), "`pre_tokenizer`"),
        ("pre_tokenizer", json!(null), "`pre_tokenizer`"),
        ("model.unk_id", json!(2), "`model.unk_id` is 2"),
        ("model.unk_id", json!(-1), "invalid value: integer `-1`"),
        ("model.vocab", json!({"a": 0}), "`model.vocab` is an object"),
        ("model.vocab", json!([["a", "b"]]), "invalid type: string"),
        (
            "model.vocab",
            Value::from(vec![json!(["a", 0.5]); 1_000]),
            "the id 5, but there are 5 tokens",
        ),
    ] {
        let found = open(with(whole.clone(), key, value)).unwrap_err();
        assert!(found.starts_with("tokenizer.json"), "{found}");
        assert!(found.contains(at_fault), "{key}: {found}");
    }
    // Cutting at white space of any kind is only the same where the map makes it spaces.
    let words = json!({"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"}, whole["pre_tokenizer"].clone(),
    ]});
    let mut split = with(whole, "pre_tokenizer", words);
    open(split.clone()).unwrap();
    split["normalizer"] = json!(null);
    let found = open(split).unwrap_err();
    assert!(found.contains("`pre_tokenizer`"), "{found}");
}
