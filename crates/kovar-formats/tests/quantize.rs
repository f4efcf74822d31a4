//! Conversion of whole files to every type.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use kovar_core::{DType, HostBytes, quant};
use kovar_formats::gguf::{Gguf, GgufWriter, Value};
use kovar_formats::quantize::{Mix, QuantizeError, TensorRule, plan};
use kovar_formats::{ModelFile, ModelTensor};

const LAYERS: usize = 8;

/// A model's tensors with rows of `width`; norms are F32, ids I32, the rest F16.
fn model(width: usize, output: bool) -> ModelFile {
    let mut writer = GgufWriter::with_alignment(64).unwrap();
    writer.metadata("general.architecture", "llama").unwrap();
    writer.metadata("general.file_type", 1u32).unwrap();
    writer.metadata("general.name", "test").unwrap();
    let mut add = |name: String, dtype: DType, dims: &[usize]| {
        let elements: usize = dims.iter().product();
        let value = |i: usize| ((i * 7919 + name.len() * 31) % 257) as f32 / 128.0 - 1.0;
        let values: Vec<f32> = (0..elements).map(value).collect();
        let mut bytes = vec![0; dtype.bytes_for(elements).unwrap()];
        if dtype != DType::I32 {
            quant::encode(dtype, &values, &mut bytes).unwrap();
        }
        writer.tensor(name, dtype, dims, bytes).unwrap();
    };
    add("token_embd.weight".into(), DType::F16, &[6, width]);
    for layer in 0..LAYERS {
        add(
            format!("blk.{layer}.attn_norm.weight"),
            DType::F32,
            &[width],
        );
        add(
            format!("blk.{layer}.attn_q.weight"),
            DType::F16,
            &[4, width],
        );
        add(format!("blk.{layer}.attn_q.bias"), DType::F32, &[4]);
        add(
            format!("blk.{layer}.attn_k.weight"),
            DType::F16,
            &[1, width],
        );
        add(
            format!("blk.{layer}.attn_v.weight"),
            DType::F16,
            &[4, width],
        );
        add(
            format!("blk.{layer}.attn_output.weight"),
            DType::F16,
            &[4, width],
        );
        add(
            format!("blk.{layer}.ffn_down.weight"),
            DType::F16,
            &[4, width],
        );
    }
    add("output_norm.weight".into(), DType::F32, &[1, width]);
    if output {
        add("output.weight".into(), DType::F16, &[6, width]);
    }
    add("ids.weight".into(), DType::I32, &[2, width]);
    let bytes = writer.to_bytes().unwrap();
    Gguf::from_bytes(HostBytes::new(Arc::new(bytes)))
        .unwrap()
        .into()
}

fn mix(name: &str) -> Mix {
    Mix::from_name(name).unwrap()
}

fn rules(rules: &[&str]) -> Vec<TensorRule> {
    rules.iter().map(|rule| rule.parse().unwrap()).collect()
}

/// The types of the tensors called `tensor` in any layer, by the mix `name` and `rules`.
fn types(file: &ModelFile, name: &str, rules: &[TensorRule], tensor: &str) -> Vec<DType> {
    let plan = plan(file, mix(name), rules).unwrap();
    let in_layer = format!(".{tensor}");
    let called = |t: &&kovar_formats::quantize::TensorPlan<'_>| {
        let name = t.tensor().name();
        name.starts_with(tensor) || name.contains(&in_layer)
    };
    plan.tensors()
        .iter()
        .filter(called)
        .map(|t| t.dtype())
        .collect()
}

fn convert(
    file: &ModelFile,
    mix: Mix,
    rules: &[TensorRule],
    path: &Path,
) -> Result<(), QuantizeError> {
    plan(file, mix, rules)?.write_file(path, 2, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn mixes_give_tensors_the_types_of_llama_cpp() {
    use DType::{F16, IQ4NL, IQ4XS, MXFP4, Q2K, Q3K, Q4_0, Q4K, Q5_0, Q5K, Q6K, Q8_0, TQ2_0};
    let (tied, untied, odd) = (model(256, false), model(256, true), model(64, true));
    let embeddings = "token_embd";
    for (file, name, tensor, expected) in [
        (&untied, "Q4_K_M", "output.weight", vec![Q6K]),
        (&untied, "Q4_K_M", embeddings, vec![Q4K]),
        (&tied, "Q4_K_M", embeddings, vec![Q6K]),
        (&tied, "Q8_0", embeddings, vec![Q8_0]),
        (&tied, "F16", embeddings, vec![F16]),
        (&tied, "Q4_0", embeddings, vec![Q6K]),
        (&odd, "Q4_0", "output.weight", vec![Q8_0]),
        (&odd, "Q4_0", embeddings, vec![Q4_0]),
        (&odd, "Q4_K_S", embeddings, vec![Q5_0]),
        (&tied, "Q4_K_M", "attn_q.weight", vec![Q4K; 8]),
        (
            &tied,
            "Q4_K_M",
            "attn_v",
            vec![Q6K, Q4K, Q4K, Q6K, Q4K, Q4K, Q6K, Q6K],
        ),
        (
            &tied,
            "Q4_K_M",
            "ffn_down",
            vec![Q6K, Q4K, Q4K, Q6K, Q4K, Q4K, Q6K, Q6K],
        ),
        (
            &tied,
            "Q5_K_M",
            "ffn_down",
            vec![Q6K, Q5K, Q5K, Q6K, Q5K, Q5K, Q6K, Q6K],
        ),
        (
            &tied,
            "Q4_K_S",
            "attn_v",
            vec![Q5K, Q5K, Q5K, Q5K, Q4K, Q4K, Q4K, Q4K],
        ),
        (
            &tied,
            "Q4_K_S",
            "ffn_down",
            vec![Q5K, Q4K, Q4K, Q4K, Q4K, Q4K, Q4K, Q4K],
        ),
        (&tied, "Q5_K_S", "attn_v", vec![Q5K; 8]),
        (&tied, "Q2_K", embeddings, vec![Q6K]),
        (&tied, "Q2_K", "attn_q.weight", vec![Q2K; 8]),
        (&tied, "Q2_K", "attn_v", vec![Q4K; 8]),
        (&tied, "Q2_K", "attn_output", vec![Q3K; 8]),
        (&tied, "Q2_K", "ffn_down", vec![Q3K; 8]),
        (&odd, "Q2_K", "attn_q.weight", vec![IQ4NL; 8]),
        (&odd, "Q2_K", "attn_v", vec![Q5_0; 8]),
        (&tied, "Q3_K_S", "attn_output", vec![Q3K; 8]),
        (
            &tied,
            "Q3_K_M",
            "attn_v",
            vec![Q5K, Q5K, Q4K, Q4K, Q4K, Q4K, Q4K, Q4K],
        ),
        (&tied, "Q3_K_M", "ffn_down", vec![Q4K; 8]),
        (&tied, "Q3_K_M", "attn_output", vec![Q4K; 8]),
        (&tied, "Q3_K_L", "attn_output", vec![Q5K; 8]),
        (&tied, "Q3_K_L", "ffn_down", vec![Q5K; 8]),
        (&tied, "Q3_K_L", "attn_q.weight", vec![Q3K; 8]),
        (&tied, "IQ4_XS", "attn_v", vec![Q5K; 8]),
        (&odd, "IQ4_XS", "attn_q.weight", vec![IQ4NL; 8]),
        (
            &tied,
            "IQ4_XS",
            "ffn_down",
            vec![Q5K, IQ4XS, IQ4XS, IQ4XS, IQ4XS, IQ4XS, IQ4XS, IQ4XS],
        ),
        (&untied, "MXFP4", "output.weight", vec![Q8_0]),
        (&untied, "MXFP4", embeddings, vec![MXFP4]),
        (&odd, "MXFP4", "ffn_down", vec![MXFP4; 8]),
        (&untied, "TQ2_0", "output.weight", vec![Q6K]),
        (&untied, "TQ2_0", embeddings, vec![Q4K]),
        (&tied, "TQ2_0", embeddings, vec![Q6K]),
        (&tied, "TQ2_0", "attn_v", vec![TQ2_0; 8]),
        (&tied, "TQ2_0", "ffn_down", vec![TQ2_0; 8]),
        (&odd, "TQ2_0", "output.weight", vec![Q8_0]),
        (&odd, "TQ2_0", embeddings, vec![Q5_0]),
        (&odd, "TQ2_0", "ffn_down", vec![Q4_0; 8]),
    ] {
        assert_eq!(types(file, name, &[], tensor), expected, "{name} {tensor}");
    }
    for mix in Mix::all() {
        for tensor in ["attn_norm", "output_norm", "attn_q.bias"] {
            let found = types(&tied, mix.name(), &[], tensor);
            assert!(!found.is_empty());
            assert!(
                found.iter().all(|&dtype| dtype == DType::F32),
                "{mix} {tensor}"
            );
        }
        assert_eq!(types(&tied, mix.name(), &[], "ids"), [DType::I32]);
    }
}

#[test]
fn the_first_rule_that_matches_goes_before_the_mix() {
    let file = model(256, true);
    let some = rules(&["blk.0.*=F16", "*attn_v*=Q8_0"]);
    let found = types(&file, "Q4_K_M", &some, "attn_v");
    assert_eq!(found[..2], [DType::F16, DType::Q8_0]);
    assert_eq!(
        types(&file, "Q4_K_M", &some, "blk.0.attn_norm"),
        [DType::F32]
    );
    let error = plan(&file, mix("Q4_0"), &rules(&["*_norm*=F16"])).unwrap_err();
    let message = "no tensor that is converted matches \"*_norm*\"";
    assert_eq!(error.to_string(), message);
    let error = plan(&model(64, true), mix("Q4_0"), &rules(&["output*=Q6_K"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor \"output.weight\" cannot be Q6_K: its rows of 64 elements are not whole blocks of 256"
    );
}

#[test]
fn every_type_is_written_and_read_back_near_the_source() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.gguf");
    let file = model(256, true);
    for mix in Mix::all() {
        convert(&file, mix, &[], &path).unwrap();
        let out = ModelFile::open(&path).unwrap();
        assert_eq!(out.alignment(), 64);
        let keys: Vec<&str> = out.metadata().iter().map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            [
                "general.alignment",
                "general.architecture",
                "general.file_type",
                "general.name",
                "general.quantization_version"
            ]
        );
        let file_type = out.metadata().get("general.file_type");
        assert_eq!(file_type, Some(&Value::U32(mix.file_type())));
        assert_eq!(
            out.metadata().get_u32("general.quantization_version"),
            Ok(Some(2))
        );
        let plan = plan(&file, mix, &[]).unwrap();
        for (found, planned) in out.tensors().zip(plan.tensors()) {
            let source = planned.tensor();
            assert_eq!((found.name(), found.dims()), (source.name(), source.dims()));
            assert_eq!(found.dtype(), planned.dtype());
            if source.dtype() == DType::I32 || found.dtype() == source.dtype() {
                assert_eq!(
                    found.bytes().unwrap().as_slice(),
                    source.bytes().unwrap().as_slice()
                );
                continue;
            }
            let values = |tensor: &ModelTensor| {
                let mut values = vec![0.0; tensor.elements()];
                let bytes = tensor.bytes().unwrap();
                quant::decode(tensor.dtype(), bytes.as_slice(), &mut values).unwrap();
                values
            };
            let far = std::iter::zip(values(found), values(source))
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            // Half a step over a range of 2, and the rounding of the scales.
            let bound = match found.dtype() {
                DType::Q2K => 0.6,
                DType::Q3K => 0.3,
                DType::MXFP4 => 0.25,
                // The largest of a block is a step, so that the levels lie a half of it away.
                DType::TQ2_0 => 0.51,
                _ => 0.15,
            };
            assert!(far < bound, "{mix} {}: {far}", found.name());
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_tensor_larger_than_a_piece_equals_one_that_is_encoded_at_once() {
    let (rows, width) = (9_000, 256);
    let elements = rows * width;
    let values: Vec<f32> = (0..elements)
        .map(|i| ((i * 31) % 1009) as f32 - 500.0)
        .collect();
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut writer = GgufWriter::new();
    writer
        .tensor("a.weight", DType::F32, &[rows, width], bytes)
        .unwrap();
    let file = Gguf::from_bytes(HostBytes::new(Arc::new(writer.to_bytes().unwrap()))).unwrap();
    let file = ModelFile::from(file);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.gguf");
    convert(&file, mix("Q4_0"), &[], &path).unwrap();
    let mut expected = vec![0; DType::Q4_0.bytes_for(elements).unwrap()];
    quant::encode(DType::Q4_0, &values, &mut expected).unwrap();
    let out = ModelFile::open(&path).unwrap();
    assert!(out.tensor("a.weight").unwrap().bytes().unwrap().as_slice() == expected);
}

#[test]
fn what_fails_or_is_stopped_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.gguf");
    let mut writer = GgufWriter::new();
    let mut bytes = vec![0u8; 4 * 64];
    bytes[4..8].copy_from_slice(&70_000f32.to_le_bytes());
    writer
        .tensor("w.weight", DType::F32, &[2, 32], bytes)
        .unwrap();
    let file = Gguf::from_bytes(HostBytes::new(Arc::new(writer.to_bytes().unwrap()))).unwrap();
    let file = ModelFile::from(file);
    let error = convert(&file, mix("F16"), &[], &path).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor \"w.weight\" cannot be F16: it has a NaN, an infinity or a number beyond the type's \
         range"
    );
    let plan = plan(&file, mix("BF16"), &[]).unwrap();
    let stopped = plan.write_file(&path, 1, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(QuantizeError::Stopped)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
