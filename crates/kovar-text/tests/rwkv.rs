//! RWKV-7 from its authors' files: safetensors and the World vocabulary.

mod common;

use std::fs;
use std::path::Path;

use common::{all_logits, cpu, data, exact, max_difference};
use kovar_formats::{ModelFile, SafeTensors};
use kovar_text::{
    DecodeOptions, EncodeOptions, LanguageModel, Message, Model, TemplateKind, TokenType,
    Tokenizer, TokenizerSpec, TokenizerWarning,
};

const VOCABULARY: &str = "rwkv_vocab_v20230424.txt";
const WEIGHTS: &str = "rwkv7-tiny.safetensors";

fn folder() -> ModelFile {
    ModelFile::open(data("rwkv7-tiny")).unwrap()
}

fn tokenizer() -> Tokenizer {
    Tokenizer::from_spec(TokenizerSpec::from_metadata(folder().metadata()).unwrap()).unwrap()
}

#[test]
fn safetensors_give_the_logits_of_the_reference() {
    let io = SafeTensors::open(data("rwkv7-tiny.io.safetensors")).unwrap();
    let ids = io.read_i64("in.ids").unwrap();
    let ids: Vec<u32> = ids.into_iter().map(|id| id as u32).collect();
    let expected = io.read_f32("out.logits").unwrap();
    let mut model = Model::load(folder(), cpu(), &exact()).unwrap();
    let difference = max_difference(&all_logits(&mut model, &ids), &expected);
    assert!(difference < 1e-4, "{difference}");
}

#[test]
fn safetensors_become_the_tensors_and_sizes_of_a_gguf_file() {
    let (found, expected) = (folder(), ModelFile::open(data("rwkv7-tiny.gguf")).unwrap());
    assert_eq!(found.tensors().len(), expected.tensors().len());
    for tensor in expected.tensors() {
        let name = tensor.name();
        let own = found.tensor(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(
            (own.dims(), own.dtype()),
            (tensor.dims(), tensor.dtype()),
            "{name}"
        );
        let (a, b) = (own.bytes().unwrap(), tensor.bytes().unwrap());
        assert!(a.as_slice() == b.as_slice(), "{name}");
    }
    for (key, value) in expected.metadata().iter() {
        if key.starts_with("rwkv7.") && key != "rwkv7.context_length" {
            let own = found
                .metadata()
                .get(key)
                .and_then(|value| value.as_integer());
            assert_eq!(own, value.as_integer(), "{key}");
        }
    }
}

#[test]
fn the_files_of_a_model_are_its_weights_and_vocabulary() {
    let expected = [WEIGHTS, VOCABULARY].map(|name| data("rwkv7-tiny").join(name));
    assert_eq!(folder().files(), expected);
}

#[test]
fn each_token_is_the_longest_match() {
    let tokenizer = tokenizer();
    let plain = EncodeOptions::default();
    for (text, ids) in [
        ("", &[][..]),
        ("Once upon a time", &[40, 43, 3, 11, 42]),
        ("upon a the", &[44, 39]),
        ("upon the", &[26, 0, 22, 21, 39]),
        ("\n\n\n", &[30, 2]),
        ("\r\n \n", &[31, 32]),
        ("it's'\"'", &[41, 33, 5]),
        ("é日\u{200b}\\", &[34, 38, 37, 10]),
        // Another character with the same first bytes as `日`.
        ("旦", &[35]),
    ] {
        let found = tokenizer.encode(text, plain).unwrap();
        // `p` has no token.
        let ids: Vec<u32> = ids.iter().copied().filter(|&id| id > 0).collect();
        assert_eq!(found, ids, "{text:?}");
    }
    let lost = tokenizer.warnings();
    assert!(
        matches!(lost, [TokenizerWarning::BytesWithoutToken { bytes }] if bytes.contains(&b'p')),
        "{lost:?}"
    );
}

#[test]
fn tokens_come_back_as_their_bytes() {
    let tokenizer = tokenizer();
    let text = "Once upon a time\r\nit's the日é\\ \"1\"\n\n";
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    let decoded = tokenizer.decode_lossy(&ids, DecodeOptions::default());
    assert_eq!(decoded.unwrap(), text);
    assert_eq!(tokenizer.token_bytes(35).unwrap(), b"\xe6\x97");
    assert_eq!(tokenizer.token_bytes(29).unwrap(), b"\xff");
}

/// In files for llama.cpp, the end token has a text. In the authors' vocabulary it has none, so no
/// text is encoded to it.
#[test]
fn no_text_is_encoded_to_the_end_token() {
    let tokenizer = tokenizer();
    assert_eq!(tokenizer.token_type(0), Some(TokenType::Control));
    let ids = tokenizer.encode("<s>", EncodeOptions::default()).unwrap();
    assert_eq!(ids, [24], "only `s` has a token");
    assert!(tokenizer.is_end_of_generation(0));
    assert!(
        tokenizer.is_end_of_generation(30),
        "a blank line ends a turn"
    );
    assert_eq!(tokenizer.token_type(60), Some(TokenType::Unused));
}

#[test]
fn conversations_have_blank_lines_between_turns() {
    let mut model = LanguageModel::load(folder(), cpu(), &exact()).unwrap();
    let options = kovar_text::RenderOptions {
        add_generation_prompt: true,
        bos_token: "",
        eos_token: "",
    };
    let template = model.template().unwrap();
    assert_eq!(template.kind(), TemplateKind::RwkvWorld);
    let messages = [
        Message::new("system", "Be brief."),
        Message::new("user", " one\n"),
        Message::new("assistant", "two"),
        Message::new("user", "three"),
    ];
    assert_eq!(
        template.render(&messages, options).unwrap(),
        "System: Be brief.\n\nUser: one\n\nAssistant: two\n\nUser: three\n\nAssistant:"
    );
}

/// The error of a copy of the folder after `damage`, without the copy's path.
fn error_after(damage: impl FnOnce(&Path)) -> String {
    let copy = tempfile::tempdir().unwrap();
    for name in [VOCABULARY, WEIGHTS] {
        fs::copy(data("rwkv7-tiny").join(name), copy.path().join(name)).unwrap();
    }
    damage(copy.path());
    let error = ModelFile::open(copy.path().join(WEIGHTS)).unwrap_err();
    let mut text = error.to_string();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(next) = cause.source() {
        text = format!("{text}: {next}");
        cause = next;
    }
    text.replace(copy.path().to_str().unwrap(), "FOLDER")
}

/// Rewrites the weights of a folder with one name in the header replaced by another of the same
/// length.
fn rename(folder: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(folder.join(WEIGHTS)).unwrap();
    let quoted = format!("\"{from}\"");
    let at = bytes
        .windows(quoted.len())
        .position(|w| w == quoted.as_bytes());
    let at = at.unwrap() + 1;
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    fs::write(folder.join(WEIGHTS), bytes).unwrap();
}

#[test]
fn what_is_wrong_with_the_weights_is_named() {
    let renamed = |from: &'static str, to: &'static str| error_after(|path| rename(path, from, to));
    assert_eq!(
        renamed("blocks.1.att.w1", "blocks.1.att.q1"),
        "tensor \"blocks.1.att.w1\" is missing"
    );
    assert_eq!(
        renamed("blocks.2.att.x_v", "blocks.2.att.x_z"),
        "tensor \"blocks.2.att.x_v\" is missing"
    );
    assert_eq!(
        renamed("blocks.1.att.r_k", "blocks.7.att.r_k"),
        "tensor \"blocks.1.att.r_k\" is missing"
    );
    assert_eq!(
        renamed("blocks.0.att.r_k", "blocks.0.att.q_k"),
        "FOLDER/rwkv7-tiny.safetensors is not an RWKV-7 model (it has no tensor \
         `blocks.0.att.r_k`); to open another model, give its folder"
    );
    let cut = error_after(|path| {
        let bytes = fs::read(path.join(WEIGHTS)).unwrap();
        fs::write(path.join(WEIGHTS), &bytes[..bytes.len() / 2]).unwrap();
    });
    assert!(cut.starts_with("FOLDER/rwkv7-tiny.safetensors: "), "{cut}");
}

#[test]
fn what_is_wrong_with_the_vocabulary_is_named() {
    let error =
        |text: &'static [u8]| error_after(|path| fs::write(path.join(VOCABULARY), text).unwrap());
    let at = |rest: &str| format!("FOLDER/{VOCABULARY}{rest}");
    assert_eq!(
        error(b"1 'a' 1\n2 'b' 2\n"),
        at(", line 2: its literal has a different length")
    );
    assert_eq!(
        error(b"1 'a' 1\n1 'b' 1\n"),
        at(", line 2: its index occurs twice")
    );
    assert_eq!(error(b"0 'a' 1\n"), at(", line 1: its index occurs twice"));
    assert_eq!(
        error(b"64 'a' 1\n"),
        at(" has a token of index 64, the model has 64 tokens")
    );
    assert_eq!(
        error(b"1 '\xff' 1\n"),
        at(" is not UTF-8 (the first 3 bytes are)")
    );
    let none = error_after(|path| fs::remove_file(path.join(VOCABULARY)).unwrap());
    assert_eq!(
        none,
        format!("FOLDER has neither tokenizer.json nor {VOCABULARY}")
    );
}
