//! Saved and restored contexts, of models with caches and of recurrent ones.

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use common::{cpu, data, exact, load, repository};
use kovar_core::DType;
use kovar_formats::gguf::{Gguf, GgufWriter, Value};
use kovar_text::{
    DecodeOptions, EncodeOptions, GenerateOptions, LanguageModel, LogitsOf, Model, ModelOptions,
    SamplerParams, SavedText, SavedTextError, Tokenizer, TokenizerSpec,
};

const KINDS: [&str; 2] = ["llama-tiny", "rwkv7-tiny"];

fn tiny(name: &str, options: &ModelOptions) -> Model {
    load(&data(name), options)
}

fn ids(count: u32) -> Vec<u32> {
    (0..count).map(|i| i * 7 % 61).collect()
}

fn text(tokens: &[u32]) -> SavedText {
    SavedText {
        tokens: tokens.to_vec(),
        note: "a note".to_owned(),
    }
}

/// The logits after each of `tokens`, taken one by one, as bits.
fn one_by_one(model: &mut Model, tokens: &[u32]) -> Vec<u32> {
    let (mut all, mut logits) = (Vec::new(), Vec::new());
    for &token in tokens {
        model.eval(&[token], LogitsOf::Last, &mut logits).unwrap();
        all.extend(logits.iter().map(|logit| logit.to_bits()));
    }
    all
}

/// A model of `name` after `tokens`, saved to `path`.
fn saved(name: &str, options: &ModelOptions, tokens: &[u32], path: &Path) -> Model {
    let mut model = tiny(name, options);
    let mut logits = Vec::new();
    model.eval(tokens, LogitsOf::Last, &mut logits).unwrap();
    model.save_text(path, &text(tokens)).unwrap();
    model
}

#[test]
fn a_restored_context_continues_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let ids = ids(48);
    for name in KINDS {
        for cache_dtype in [DType::F32, DType::F16] {
            let options = |context| ModelOptions {
                context: Some(context),
                cache_dtype,
                ..ModelOptions::default()
            };
            let mut model = tiny(name, &options(100));
            let mut logits = Vec::new();
            model.eval(&ids[..20], LogitsOf::Last, &mut logits).unwrap();
            one_by_one(&mut model, &ids[20..30]);
            // The last token of the text is sampled but not evaluated yet.
            model.save_text(&path, &text(&ids[..31])).unwrap();
            let expected = one_by_one(&mut model, &ids[30..]);

            // The same model with another context size.
            let mut other = tiny(name, &options(60));
            other.eval(&[3; 7], LogitsOf::Last, &mut logits).unwrap();
            assert_eq!(other.restore_text(&path).unwrap(), text(&ids[..31]));
            assert_eq!(other.tokens(), &ids[..30]);
            assert_eq!(one_by_one(&mut other, &ids[30..]), expected, "{name}");
        }
    }
}

#[test]
fn only_rows_in_use_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let mut model = saved("llama-tiny", &exact(), &ids(5), &path);
    let file = Gguf::open(&path).unwrap();
    assert!(file.tensors().len() > 0);
    for tensor in file.tensors() {
        assert_eq!(tensor.dims()[0], 5, "{}", tensor.name());
    }
    model.truncate(0);
    model.save_text(&path, &text(&[])).unwrap();
    assert_eq!(Gguf::open(&path).unwrap().tensors().len(), 0);
    assert_eq!(model.restore_text(&path).unwrap(), text(&[]));
    assert!(model.tokens().is_empty());
}

#[test]
fn the_checkpoint_of_a_recurrent_model_is_saved_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let ids = ids(40);
    let mut model = tiny("rwkv7-tiny", &exact());
    let mut logits = Vec::new();
    model.eval(&ids[..20], LogitsOf::Last, &mut logits).unwrap();
    model.checkpoint().unwrap();
    let expected = one_by_one(&mut model, &ids[20..]);
    model.save_text(&path, &text(&ids)).unwrap();

    let mut other = tiny("rwkv7-tiny", &exact());
    other.restore_text(&path).unwrap();
    assert_eq!(other.truncate(25), 20);
    assert_eq!(one_by_one(&mut other, &ids[20..]), expected);
}

#[test]
fn a_text_that_is_saved_in_between_is_the_text_without() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["llama-story-6m", "rwkv7-story-6m"] {
        let path = folder.path().join(name);
        let file = || Gguf::open(repository(&format!("models/{name}/{name}-q8_0.gguf"))).unwrap();
        let open = || LanguageModel::load(file(), cpu(), &ModelOptions::default()).unwrap();
        let greedy = SamplerParams::greedy();
        let options = |max| GenerateOptions {
            max_tokens: Some(max),
            ..GenerateOptions::default()
        };
        let mut go_on = |_: kovar_text::Progress<'_>| ControlFlow::Continue(());
        let whole = open()
            .complete("One day, Tom", &greedy, &options(40), &mut go_on)
            .unwrap();

        let mut first = open();
        let a = first
            .complete("One day, Tom", &greedy, &options(15), &mut go_on)
            .unwrap();
        first.save_text(&path, "note").unwrap();
        let mut second = open();
        assert_eq!(second.restore_text(&path).unwrap(), "note");
        assert_eq!(second.text(), first.text());
        let b = second
            .continue_text("", &greedy, &options(25), &mut go_on)
            .unwrap();
        assert_eq!(b.prompt_evaluated, 1, "only the token that was pending");
        assert_eq!([a.tokens, b.tokens].concat(), whole.tokens, "{name}");
        assert_eq!(a.text + &b.text, whole.text, "{name}");
    }
}

#[test]
fn a_text_is_continued_within_a_word_but_begins_again_after_a_special_token() {
    let file = Gguf::open(repository("models/llama-story-6m/llama-story-6m-q8_0.gguf")).unwrap();
    let mut model = LanguageModel::load(file, cpu(), &ModelOptions::default()).unwrap();
    let sentence_piece = Gguf::open(data("tok-spm.gguf")).unwrap();
    let spec = TokenizerSpec::from_gguf(&sentence_piece).unwrap();
    model.tokenizer = Tokenizer::from_spec(spec).unwrap();
    let whole = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    let once = model.tokenizer.encode("Once", whole).unwrap();
    let options = GenerateOptions {
        max_tokens: Some(0),
        ..GenerateOptions::default()
    };
    let greedy = SamplerParams::greedy();
    let mut go_on = |_: kovar_text::Progress<'_>| ControlFlow::Continue(());
    let mut put = |more: &str| {
        model
            .continue_text(more, &greedy, &options, &mut go_on)
            .unwrap();
        let text = model.text();
        let decoded = model.tokenizer.decode_lossy(text, DecodeOptions::default());
        (text.to_vec(), decoded.unwrap())
    };
    assert_eq!(put("").0, once[..1], "the begin token");
    assert_eq!(put("Once"), (once, "Once".to_owned()));
    assert_eq!(put("ly").1, "Oncely");
    assert_eq!(put(" upon").1, "Oncely upon");
}

/// The error of restoring the file at `path`, which leaves the context unchanged.
fn refused(model: &mut Model, path: &Path) -> SavedTextError {
    model.truncate(0);
    let mut logits = Vec::new();
    model.eval(&[1, 2, 3], LogitsOf::Last, &mut logits).unwrap();
    let error = model.restore_text(path).unwrap_err();
    assert_eq!(model.tokens(), [1, 2, 3]);
    error
}

#[test]
fn saved_texts_of_other_models_types_and_sizes_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let options = ModelOptions {
        context: Some(32),
        ..exact()
    };
    saved("llama-tiny", &options, &ids(20), &path);
    let name = path.display().to_string();
    let error = |model: &str, options: &ModelOptions| {
        let error = refused(&mut tiny(model, options), &path).to_string();
        error.replace(&name, "FILE")
    };
    for other in ["llama31-rope-tiny", "qwen3-tiny", "rwkv7-tiny"] {
        assert_eq!(
            error(other, &options),
            "the text FILE was saved with another model"
        );
    }
    assert_eq!(
        error("llama-tiny", &ModelOptions::default()),
        "the saved text FILE has a cache of F32, this model was loaded with one of F16"
    );
    let small = ModelOptions {
        context: Some(19),
        ..exact()
    };
    assert_eq!(
        error("llama-tiny", &small),
        "the saved text FILE has 20 tokens, the context holds 19"
    );
}

/// A copy of the GGUF file at `from` in which `key` has another value.
fn copy_with(from: &Path, to: &Path, key: &str, value: Value) {
    let file = Gguf::open(from).unwrap();
    let mut writer = GgufWriter::new();
    let entries = file.metadata().iter();
    let kept = entries.filter(|&(other, _)| other != key && other != "general.alignment");
    for (other, value) in kept {
        writer.metadata(other, value.clone()).unwrap();
    }
    writer.metadata(key, value).unwrap();
    for tensor in file.tensors() {
        let (dims, bytes) = (tensor.dims(), tensor.bytes().clone());
        writer
            .tensor_bytes(tensor.name(), tensor.dtype(), dims, bytes)
            .unwrap();
    }
    writer.write_file(to).unwrap();
}

#[test]
fn saved_texts_of_the_same_weights_with_other_parameters_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let model = repository("models/llama-story-6m/llama-story-6m-q8_0.gguf");
    let mut logits = Vec::new();
    let mut loaded = load(&model, &exact());
    loaded
        .eval(&[5, 6, 7], LogitsOf::Last, &mut logits)
        .unwrap();
    loaded.save_text(&at("text"), &text(&[5, 6, 7])).unwrap();
    for (key, value) in [
        ("llama.rope.freq_base", Value::F32(12_345.0)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(2e-5)),
        ("tokenizer.ggml.eos_token_id", Value::U32(7)),
    ] {
        copy_with(&model, &at("other.gguf"), key, value);
        let mut other = load(&at("other.gguf"), &exact());
        let error = refused(&mut other, &at("text"));
        assert!(
            matches!(error, SavedTextError::OtherModel { .. }),
            "{key}: {error:?}"
        );
    }
    copy_with(
        &model,
        &at("renamed.gguf"),
        "general.name",
        "another".into(),
    );
    let mut renamed = load(&at("renamed.gguf"), &exact());
    assert_eq!(renamed.restore_text(&at("text")).unwrap(), text(&[5, 6, 7]));
}

#[cfg(unix)]
#[test]
fn a_saved_text_at_a_link_is_read_and_replaced_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("target", at("link")).unwrap();
    for count in [3, 5] {
        let mut model = saved("rwkv7-tiny", &exact(), &ids(count), &at("link"));
        assert!(at("link").is_symlink());
        for path in [at("link"), at("target")] {
            assert_eq!(model.restore_text(&path).unwrap(), text(&ids(count)));
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_saved_texts() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut model = tiny("llama-tiny", &exact());
    for path in [&pipe, Path::new("/dev/zero")] {
        let error = refused(&mut model, path);
        assert!(
            matches!(error, SavedTextError::NotAFile { .. }),
            "{error:?}"
        );
        assert!(matches!(
            LanguageModel::check_saved_path(path),
            Err(SavedTextError::Write { .. })
        ));
    }
}

#[test]
fn files_that_are_no_saved_texts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let mut model = tiny("llama-tiny", &exact());
    assert!(matches!(
        refused(&mut model, &path),
        SavedTextError::Read { .. }
    ));
    fs::write(&path, b"once upon a time").unwrap();
    assert!(matches!(
        refused(&mut model, &path),
        SavedTextError::Gguf { .. }
    ));
    fs::write(&path, b"").unwrap();
    assert!(matches!(
        refused(&mut model, &path),
        SavedTextError::Empty { .. }
    ));
    assert!(matches!(
        refused(&mut model, folder.path()),
        SavedTextError::NotAFile { .. }
    ));
    match refused(&mut model, &data("rwkv7-tiny.gguf")) {
        SavedTextError::NotASavedText { found, .. } => assert_eq!(found, "rwkv7"),
        other => panic!("{other:?}"),
    }
    let mut writer = GgufWriter::new();
    writer
        .metadata("general.architecture", "kovar-session")
        .unwrap();
    writer.metadata("session.version", 3u32).unwrap();
    writer.write_file(&path).unwrap();
    assert!(matches!(
        refused(&mut model, &path),
        SavedTextError::Version { found: 3, .. }
    ));
}

#[test]
fn damage_is_found_at_any_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let tokens = ids(9);
    for name in KINDS {
        let mut model = saved(name, &exact(), &tokens, &path);
        let whole = fs::read(&path).unwrap();
        let file = Gguf::open(&path).unwrap();
        let in_a_state = file.tensors().next().unwrap().range().start + 5;

        for len in (0..whole.len()).step_by(whole.len() / 97 + 1) {
            fs::write(&path, &whole[..len]).unwrap();
            refused(&mut model, &path);
        }
        let header = file.tensors().next().unwrap().range().start;
        let places = (0..header).step_by(7);
        for at in places.chain((header..whole.len()).step_by(997)) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x14;
            fs::write(&path, &damaged).unwrap();
            // Changes of the padding between tensors have no effect.
            if let Ok(restored) = model.restore_text(&path) {
                assert_eq!(restored, text(&tokens), "{name}: byte {at}");
            }
        }
        let mut damaged = whole.clone();
        damaged[in_a_state] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(
            refused(&mut model, &path),
            SavedTextError::Checksum { .. }
        ));
        fs::write(&path, &whole).unwrap();
        assert_eq!(model.restore_text(&path).unwrap(), text(&tokens));
    }
}

#[test]
fn a_saved_text_that_cannot_be_written_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let mut model = saved("rwkv7-tiny", &exact(), &ids(4), &path);
    let before = fs::read(&path).unwrap();
    let mut logits = Vec::new();
    model.eval(&[5], LogitsOf::Last, &mut logits).unwrap();
    let tokens = model.tokens().to_vec();
    // A file cannot be a folder.
    let error = model.save_text(&path.join("inside"), &text(&tokens));
    let error = error.unwrap_err();
    assert!(matches!(error, SavedTextError::Write { .. }), "{error:?}");
    assert!(matches!(
        model.save_text(&path, &text(&[9])),
        Err(SavedTextError::Inconsistent { .. })
    ));
    assert_eq!(fs::read(&path).unwrap(), before);
}
