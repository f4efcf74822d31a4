//! Files with unusual hyperparameters.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use common::cpu;
use kovar_core::ops::RopeScaling;
use kovar_core::{DType, HostBytes};
use kovar_formats::ModelFile;
use kovar_formats::gguf::{Gguf, GgufWriter, StringArray, Value};
use kovar_text::architecture::{Architecture, ArchitectureError, Memory, read_architecture};
use kovar_text::{
    GenerateOptions, LanguageModel, LanguageModelError, LoadError, Message, ModelOptions,
    SamplerParams, TemplateError,
};

const WIDTH: usize = 8;
const VOCAB: usize = 3;

/// A Llama of one block, with metadata changed or added by `changes`.
fn llama(changes: &[(&str, Value)]) -> ModelFile {
    let mut metadata: Vec<(&str, Value)> = vec![
        ("general.architecture", "llama".into()),
        ("llama.embedding_length", 8u32.into()),
        ("llama.attention.head_count", 2u32.into()),
        ("llama.context_length", 64u32.into()),
        ("llama.block_count", 1u32.into()),
        ("llama.feed_forward_length", 8u32.into()),
        ("llama.attention.layer_norm_rms_epsilon", 1e-5f32.into()),
    ];
    for (key, value) in changes {
        metadata.retain(|(name, _)| name != key);
        metadata.push((key, value.clone()));
    }
    let mut writer = GgufWriter::new();
    for (key, value) in metadata {
        writer.metadata(key, value).unwrap();
    }
    let mut tensor = |name: &str, dims: &[usize]| {
        let data = vec![0; dims.iter().product::<usize>() * 4];
        writer.tensor(name, DType::F32, dims, data).unwrap();
    };
    tensor("token_embd.weight", &[VOCAB, WIDTH]);
    tensor("output_norm.weight", &[WIDTH]);
    for name in ["attn_norm", "ffn_norm"] {
        tensor(&format!("blk.0.{name}.weight"), &[WIDTH]);
    }
    for name in [
        "attn_q",
        "attn_k",
        "attn_v",
        "attn_output",
        "ffn_gate",
        "ffn_up",
        "ffn_down",
    ] {
        tensor(&format!("blk.0.{name}.weight"), &[WIDTH, WIDTH]);
    }
    let bytes = writer.to_bytes().unwrap();
    Gguf::from_bytes(HostBytes::new(Arc::new(bytes)))
        .unwrap()
        .into()
}

fn read(changes: &[(&str, Value)]) -> Result<Box<dyn Architecture>, ArchitectureError> {
    read_architecture(&llama(changes))
}

fn error(changes: &[(&str, Value)]) -> String {
    read(changes).err().unwrap().to_string()
}

#[test]
fn yarn_takes_its_original_context_as_a_whole_number() {
    let yarn = |factor: f32| {
        let model = read(&[
            ("llama.rope.scaling.type", "yarn".into()),
            ("llama.rope.scaling.factor", factor.into()),
            ("llama.rope.scaling.original_context_length", 32u32.into()),
        ])
        .unwrap();
        match model.memory() {
            Memory::Caches { rope } => rope.scaling.clone(),
            Memory::States => panic!("a Llama has caches"),
        }
    };
    let expected = |factor: f64, attention_factor| RopeScaling::Yarn {
        factor,
        original_context: 32.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        attention_factor,
    };
    assert_eq!(yarn(4.0), expected(4.0, 0.1 * 4f64.ln() + 1.0));
    assert_eq!(yarn(0.5), expected(0.5, 1.0));
}

#[test]
fn more_blocks_than_tensors_are_refused_at_once() {
    assert_eq!(
        error(&[("llama.block_count", (1u32 << 20).into())]),
        "metadata `llama.block_count` is 1048576: the file has fewer tensors than blocks"
    );
}

#[test]
fn a_long_list_of_faults_is_cut_and_counted() {
    let text = error(&[("llama.block_count", 10u32.into())]);
    assert!(
        text.contains("`blk.1.attn_norm.weight` is missing"),
        "{text}"
    );
    assert_eq!(text.matches("is missing").count(), 20, "{text}");
    assert!(text.ends_with("; and 61 more"), "{text}");
}

#[test]
fn a_context_beyond_the_largest_is_cut_to_it() {
    let context = |tokens: u32| {
        let model = read(&[("llama.context_length", tokens.into())]).unwrap();
        model.trained_context()
    };
    assert_eq!(context(10_485_760), 10_485_760);
    assert_eq!(context(u32::MAX), 1 << 24);
}

#[test]
fn heads_that_do_not_fit_blame_keys_that_the_file_has() {
    assert_eq!(
        error(&[("llama.attention.head_count", (1u32 << 20).into())]),
        "metadata `llama.attention.head_count` is 1048576: it must not exceed `embedding_length`, \
         which the heads divide"
    );
    assert_eq!(
        error(&[("llama.attention.head_count", 8u32.into())]),
        "metadata `llama.attention.head_count` is 8: `embedding_length` divided by it, the size of \
         a head, must be even"
    );
    assert_eq!(
        error(&[("llama.attention.key_length", 3u32.into())]),
        "metadata `llama.attention.key_length` is 3: it must be even where `rope.dimension_count` \
         is not given"
    );
}

#[test]
fn an_unknown_architecture_is_named_before_its_tokenizer_is_read() {
    let file = llama(&[
        ("general.architecture", "mamba".into()),
        ("tokenizer.ggml.model", "unheard of".into()),
    ]);
    let error = LanguageModel::load(file, cpu(), &ModelOptions::default());
    assert!(matches!(
        error.err().unwrap(),
        LanguageModelError::Load(LoadError::Architecture(ArchitectureError::Unknown { found }))
            if found == "mamba"
    ));
}

#[test]
fn a_template_that_does_not_parse_fails_chats_only() {
    let strings = |texts: &[&str]| texts.iter().collect::<StringArray>().into();
    let file = llama(&[
        ("tokenizer.ggml.model", "gpt2".into()),
        ("tokenizer.ggml.pre", "gpt-2".into()),
        ("tokenizer.ggml.tokens", strings(&["a", "b", "c"])),
        ("tokenizer.ggml.merges", strings(&[])),
        ("tokenizer.chat_template", "{% if %}".into()),
    ]);
    let mut model = LanguageModel::load(file, cpu(), &ModelOptions::default()).unwrap();
    let options = GenerateOptions {
        max_tokens: Some(1),
        ..GenerateOptions::default()
    };
    let greedy = SamplerParams::greedy();
    model
        .complete("ab", &greedy, &options, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    let messages = [Message::new("user", "a")];
    for _ in 0..2 {
        let error = model
            .answer(&messages, &greedy, &options, &mut |_| {
                ControlFlow::Continue(())
            })
            .unwrap_err();
        assert!(
            matches!(
                error,
                LanguageModelError::Template(TemplateError::Syntax { line: 1, .. })
            ),
            "{error:?}"
        );
    }
}
