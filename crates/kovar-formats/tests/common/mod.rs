//! Helpers for tests of model folders.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::error::Error;
use std::fs;
use std::path::Path;

use kovar_core::{DType, quant};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub const VOCAB: usize = 5;
pub const WIDTH: usize = 8;

/// A tensor of ascending numbers.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<usize>,
}

/// An F32 tensor.
pub fn tensor(name: &str, dims: &[usize]) -> Tensor {
    Tensor {
        name: name.to_owned(),
        dtype: DType::F32,
        dims: dims.to_vec(),
    }
}

/// A safetensors file of plain floats.
pub fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let mut header = Map::new();
    let mut data = Vec::new();
    for tensor in tensors {
        let elements: usize = tensor.dims.iter().product();
        let start = data.len();
        let values: Vec<f32> = (0..elements).map(|i| i as f32).collect();
        data.resize(start + tensor.dtype.bytes_for(elements).unwrap(), 0);
        quant::encode(tensor.dtype, &values, &mut data[start..]).unwrap();
        let entry = json!({
            "dtype": tensor.dtype.name(), "shape": tensor.dims, "data_offsets": [start, data.len()],
        });
        header.insert(tensor.name.clone(), entry);
    }
    let header = Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// The tensors of a Llama of one layer.
pub fn tensors() -> Vec<Tensor> {
    let mut tensors = vec![
        tensor("model.embed_tokens.weight", &[VOCAB, WIDTH]),
        tensor("model.norm.weight", &[WIDTH]),
        tensor("lm_head.weight", &[VOCAB, WIDTH]),
    ];
    for name in ["input_layernorm", "post_attention_layernorm"] {
        tensors.push(tensor(&format!("model.layers.0.{name}.weight"), &[WIDTH]));
    }
    for name in [
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    ] {
        tensors.push(tensor(
            &format!("model.layers.0.{name}.weight"),
            &[WIDTH, WIDTH],
        ));
    }
    tensors
}

pub fn config() -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCAB,
        "hidden_size": WIDTH,
        "intermediate_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": false,
    })
}

pub fn tokenizer() -> Value {
    json!({
        "added_tokens": [{"id": 3, "content": "<end>", "special": true}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "post_processor": null,
        "model": {
            "type": "BPE",
            "vocab": {"a": 0, "b": 1, "ab": 2},
            "merges": [["a", "b"]],
        },
    })
}

/// `value` with the value at `path` (keys with dots between them) replaced.
pub fn with(mut value: Value, path: &str, new: Value) -> Value {
    let mut at = &mut value;
    for key in path.split('.') {
        at = match key.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[key],
        };
    }
    *at = new;
    value
}

/// A folder of these files.
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// The message of an error with its sources, without the path of the folder.
pub fn message(error: &dyn Error, folder: &Path) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.replace(&format!("{}/", folder.display()), "")
        .replace(&folder.display().to_string(), "FOLDER")
}
