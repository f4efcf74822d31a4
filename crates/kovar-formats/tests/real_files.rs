//! Files made by other programs: the `gguf`, `safetensors` and `transformers` Python packages.

use std::path::PathBuf;

use kovar_core::DType;
use kovar_formats::gguf::Gguf;
use kovar_formats::safetensors::{SafeTensors, TensorDType};
use kovar_formats::{ModelFile, ModelFormat};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../kovar-text/tests/data")
        .join(name)
}

#[test]
fn a_llama_of_transformers_reads() {
    let file = ModelFile::open(data("llama-tiny")).unwrap();
    assert_eq!(file.format(), ModelFormat::HuggingFace);
    let metadata = file.metadata();
    assert_eq!(metadata.get_str("general.architecture"), Ok(Some("llama")));
    assert_eq!(metadata.require_usize("llama.block_count"), Ok(2));
    assert_eq!(
        metadata.get_u32("llama.attention.head_count_kv"),
        Ok(Some(2))
    );
    assert_eq!(metadata.get_f32("llama.rope.freq_base"), Ok(Some(10_000.0)));
    // Two layers of nine tensors, the embedding, the last norm and the output.
    assert_eq!(file.tensors().len(), 2 * 9 + 3);
    let down = file.tensor("blk.1.ffn_down.weight").unwrap();
    assert_eq!((down.dtype(), down.dims()), (DType::F32, &[64, 128][..]));
    assert_eq!(down.bytes().unwrap().len(), 64 * 128 * 4);
    assert!(file.tensor("rope_freqs.weight").is_none());
}

#[test]
fn llama3_rope_factors_are_a_tensor() {
    let file = ModelFile::open(data("llama31-rope-tiny")).unwrap();
    let factors = file.tensor("rope_freqs.weight").unwrap();
    assert_eq!(factors.dims(), [8]);
    let bytes = factors.bytes().unwrap();
    let (values, rest) = bytes.as_slice().as_chunks::<4>();
    let values: Vec<f32> = values.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert!(rest.is_empty());
    // The fastest pair is left alone, the slowest is stretched by the whole factor.
    assert_eq!((values[0], values[7]), (1.0, 8.0));
    assert!(values.is_sorted());
}

#[test]
fn the_demo_model_reads() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let file = Gguf::open(path).unwrap();
    let metadata = file.metadata();
    let tokens = metadata.require_str_array("tokenizer.ggml.tokens").unwrap();
    assert_eq!((tokens.len(), tokens.get(0)), (2048, Some("<|endoftext|>")));
    let kinds = metadata.get_i32_array("tokenizer.ggml.token_type").unwrap();
    assert_eq!(kinds.map(|kinds| kinds.len()), Some(2048));
    assert_eq!(
        metadata.get_bool("tokenizer.ggml.add_bos_token"),
        Ok(Some(false))
    );
    assert_eq!(file.tensors().len(), 8 * 9 + 2);
    let embedding = file.tensor("token_embd.weight").unwrap();
    assert_eq!(embedding.dtype(), DType::Q8_0);
    assert_eq!(embedding.dims(), [2048, 256]);
    assert_eq!(file.bytes(embedding).len(), 2048 * 256 / 32 * 34);
}

#[test]
fn goldens_read() {
    for name in [
        "llama-tiny.io.safetensors",
        "llama31-rope-tiny.io.safetensors",
    ] {
        let io = SafeTensors::open(data(name)).unwrap();
        let ids = io.tensor("in.ids").unwrap();
        assert_eq!((ids.dtype(), ids.dims()), (TensorDType::I64, &[1, 48][..]));
        let ids = io.read_i64("in.ids").unwrap();
        assert!(ids.iter().all(|id| (0..256).contains(id)));
        let logits = io.tensor("out.logits").unwrap();
        assert_eq!(logits.dims(), [1, 48, 256]);
        let logits = io.read_f32("out.logits").unwrap();
        assert_eq!(logits.len(), 48 * 256);
        assert!(logits.iter().all(|x| x.is_finite() && x.abs() < 10.0));
    }
}
