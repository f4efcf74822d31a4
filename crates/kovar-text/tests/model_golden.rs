//! Models with random weights, in their authors' file formats, against transformers in f32, and
//! RWKV-7 against an f64 reference.

mod common;

use std::ops::ControlFlow;

use common::{all_logits, data, exact, load, max_difference};
use kovar_formats::quantize::{self, Mix};
use kovar_formats::{ModelFile, SafeTensors};
use kovar_text::{EvalError, LogitsOf, Model, ModelOptions};

fn golden(name: &str) -> (Vec<u32>, Vec<f32>) {
    let io = SafeTensors::open(data(&format!("{name}.io.safetensors"))).unwrap();
    let ids = io.read_i64("in.ids").unwrap();
    let ids = ids
        .into_iter()
        .map(|id| u32::try_from(id).unwrap())
        .collect();
    (ids, io.read_f32("out.logits").unwrap())
}

fn logits_equal_the_golden(name: &str) {
    let mut model = load(&data(name), &exact());
    let (ids, expected) = golden(name);
    let logits = all_logits(&mut model, &ids);
    let difference = max_difference(&logits, &expected);
    assert!(difference < 1e-4, "{name}: logits differ by {difference}");
    assert_eq!(all_logits(&mut converted(name), &ids), logits, "{name}");
}

/// The same model through a GGUF file.
fn converted(name: &str) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let source = ModelFile::open(data(name)).unwrap();
    let plan = quantize::plan(&source, Mix::from_name("F32").unwrap(), &[]).unwrap();
    plan.write_file(&path, 1, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    load(&path, &exact())
}

#[test]
fn llama_gives_the_logits_of_transformers() {
    logits_equal_the_golden("llama-tiny");
}

#[test]
fn llama_with_scaled_rope_gives_the_logits_of_transformers() {
    logits_equal_the_golden("llama31-rope-tiny");
}

#[test]
fn qwen2_gives_the_logits_of_transformers() {
    logits_equal_the_golden("qwen2-tiny");
}

#[test]
fn qwen3_gives_the_logits_of_transformers() {
    logits_equal_the_golden("qwen3-tiny");
}

#[test]
fn rwkv7_gives_the_logits_of_the_reference() {
    logits_equal_the_golden("rwkv7-tiny");
}

/// Sizes other than those of steps are padded, so this also shows that padding changes no state.
#[test]
fn steps_of_any_size_give_the_same_logits() {
    for name in ["llama-tiny", "rwkv7-tiny"] {
        let mut model = load(&data(name), &exact());
        let (ids, _) = golden(name);
        let whole = all_logits(&mut model, &ids);
        for size in [1, 3, 7, 33] {
            model.truncate(0);
            let (mut pieces, mut piece) = (Vec::new(), Vec::new());
            for ids in ids.chunks(size) {
                model.eval(ids, LogitsOf::All, &mut piece).unwrap();
                pieces.extend_from_slice(&piece);
            }
            let difference = max_difference(&whole, &pieces);
            assert!(difference < 1e-5, "{name}: steps of {size}: {difference}");
        }
    }
}

#[test]
fn a_recurrent_model_returns_to_its_checkpoint_or_to_the_beginning() {
    let mut model = load(&data("rwkv7-tiny"), &exact());
    assert_eq!(model.context_len(), None);
    let (ids, _) = golden("rwkv7-tiny");
    let straight = all_logits(&mut model, &ids);
    let last = &straight[straight.len() - model.vocab_len()..];
    let mut logits = Vec::new();

    model.truncate(0);
    model.eval(&ids[..20], LogitsOf::Last, &mut logits).unwrap();
    model.checkpoint().unwrap();
    for _ in 0..2 {
        model.eval(&[7; 20], LogitsOf::Last, &mut logits).unwrap();
        assert_eq!(model.keep_prefix(&ids), 20);
        model.eval(&ids[20..], LogitsOf::Last, &mut logits).unwrap();
        assert!(max_difference(&logits, last) < 1e-5);
    }
    // The last token must be evaluated again, and tokens before the checkpoint cannot be restored.
    assert_eq!(model.keep_prefix(&ids), 20);
    assert_eq!(model.keep_prefix(&ids[..10]), 0);
    model.eval(&ids, LogitsOf::Last, &mut logits).unwrap();
    assert!(max_difference(&logits, last) < 1e-5);
    // The logits of the prefix do not change as the text grows.
    assert_eq!(model.keep_prefix(&[&ids[..], &[1, 2]].concat()), 48);
}

#[test]
fn a_rewound_context_forgets_what_came_after() {
    let mut model = load(&data("llama-tiny"), &exact());
    let (ids, _) = golden("llama-tiny");
    let straight = all_logits(&mut model, &ids);
    model.truncate(0);
    let mut logits = Vec::new();
    model.eval(&[9; 40], LogitsOf::Last, &mut logits).unwrap();
    assert_eq!(model.keep_prefix(&ids), 0);
    model.eval(&ids[..20], LogitsOf::Last, &mut logits).unwrap();
    model.eval(&[7; 20], LogitsOf::Last, &mut logits).unwrap();
    assert_eq!(model.keep_prefix(&ids), 20);
    model.eval(&ids[20..], LogitsOf::Last, &mut logits).unwrap();
    let last = &straight[straight.len() - model.vocab_len()..];
    assert!(max_difference(&logits, last) < 1e-5);
}

#[test]
fn a_full_context_is_an_error_before_it_happens() {
    let options = ModelOptions {
        context: Some(10),
        ..exact()
    };
    let mut model = load(&data("llama-tiny"), &options);
    let mut logits = Vec::new();
    model.eval(&[1; 8], LogitsOf::Last, &mut logits).unwrap();
    match model.eval(&[1; 3], LogitsOf::Last, &mut logits) {
        Err(EvalError::ContextFull {
            context: 10,
            used: 8,
            requested: 3,
        }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(model.tokens().len(), 8);
    model.eval(&[1; 2], LogitsOf::Last, &mut logits).unwrap();
}

#[test]
fn tokens_beyond_the_vocabulary_are_refused() {
    let mut model = load(&data("llama-tiny"), &exact());
    let mut logits = Vec::new();
    let error = model
        .eval(&[1, 256], LogitsOf::Last, &mut logits)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "token 256 does not exist: the model has 256 tokens"
    );
    assert!(matches!(
        model.eval(&[], LogitsOf::Last, &mut logits),
        Err(EvalError::Empty)
    ));
}

#[test]
fn caches_of_fewer_bits_stay_near_the_golden() {
    use kovar_core::DType;
    let (ids, expected) = golden("llama-tiny");
    for (cache_dtype, bound) in [(DType::F16, 1e-3), (DType::BF16, 1e-2)] {
        let options = ModelOptions {
            cache_dtype,
            ..exact()
        };
        let mut model = load(&data("llama-tiny"), &options);
        let difference = max_difference(&all_logits(&mut model, &ids), &expected);
        assert!(difference < bound, "{cache_dtype}: {difference}");
    }
}
