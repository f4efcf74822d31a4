//! Damaged vocabularies, unusual requests and long texts.

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use kovar_formats::Gguf;
use kovar_text::{
    DecodeOptions, EncodeOptions, TokenType, Tokenizer, TokenizerError, TokenizerSpec,
    TokenizerWarning,
};
use proptest::prelude::*;

fn spec(name: &str) -> TokenizerSpec {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    TokenizerSpec::from_gguf(&Gguf::open(file).unwrap()).unwrap()
}

fn bpe() -> TokenizerSpec {
    spec("tok-bpe.gguf")
}

fn spm() -> TokenizerSpec {
    spec("tok-spm.gguf")
}

/// The error for `spec` after `damage`, as text.
fn error_of(mut spec: TokenizerSpec, damage: impl FnOnce(&mut TokenizerSpec)) -> String {
    damage(&mut spec);
    Tokenizer::from_spec(spec).unwrap_err().to_string()
}

#[test]
fn missing_keys_are_named() {
    let error = error_of(bpe(), |spec| spec.merges = None);
    assert_eq!(error, "the metadata lack tokenizer.ggml.merges");
    let error = error_of(spm(), |spec| spec.scores = None);
    assert_eq!(error, "the metadata lack tokenizer.ggml.scores");
    let error = error_of(bpe(), |spec| spec.model.clear());
    assert_eq!(error, "the metadata lack tokenizer.ggml.model");
    let error = error_of(bpe(), |spec| spec.tokens.clear());
    assert_eq!(error, "tokenizer.ggml.tokens is empty");
}

#[test]
fn an_unknown_kind_of_tokenizer_lists_the_known_ones() {
    let error = error_of(bpe(), |spec| spec.model = "bert".into());
    assert_eq!(
        error,
        "tokenizer.ggml.model is \"bert\"; supported are gpt2, llama, rwkv, t5"
    );
}

#[test]
fn arrays_of_another_length_than_the_tokens_are_named() {
    let error = error_of(bpe(), |spec| spec.token_types = Some(vec![1; 3]));
    assert_eq!(
        error,
        "tokenizer.ggml.token_type has 3 entries for 1800 tokens"
    );
    let error = error_of(spm(), |spec| spec.scores = Some(vec![0.0; 3]));
    assert_eq!(error, "tokenizer.ggml.scores has 3 entries for 700 tokens");
}

#[test]
fn bad_tokens_are_named() {
    let error = error_of(bpe(), |spec| spec.tokens[7].clear());
    assert_eq!(error, "tokenizer.ggml.tokens: token 7 is empty");
    let error = error_of(bpe(), |spec| spec.tokens[9] = spec.tokens[7].clone());
    assert!(
        error.starts_with("tokenizer.ggml.tokens: token "),
        "{error}"
    );
    assert!(error.ends_with("has the ids 7 and 9"), "{error}");
    let error = error_of(bpe(), |spec| spec.token_types.as_mut().unwrap()[4] = 77);
    assert_eq!(
        error,
        "tokenizer.ggml.token_type: token 4 has the unknown type 77"
    );
    let error = error_of(spm(), |spec| spec.token_types.as_mut().unwrap()[0] = 6);
    assert_eq!(
        error,
        "tokenizer.ggml.tokens: token 0 is of type byte but its text is \"<unk>\", not <0xHH>"
    );
    let error = error_of(spm(), |spec| spec.scores.as_mut().unwrap()[5] = f32::NAN);
    assert_eq!(error, "tokenizer.ggml.scores: the score of token 5 is NaN");
}

#[test]
fn tokens_that_are_searched_for_have_a_bounded_length() {
    let long = |spec: &mut TokenizerSpec, token_type| {
        spec.tokens[7] = "x".repeat(1025);
        spec.token_types.as_mut().unwrap()[7] = token_type;
    };
    let refused = "tokenizer.ggml.tokens: token 7 has 1025 bytes; at most 1024 are allowed";
    let (normal, control, user_defined) = (1, 3, 4);
    for token_type in [control, user_defined] {
        assert_eq!(error_of(spm(), |spec| long(spec, token_type)), refused);
    }
    let unigram = || spec("tok-unigram.gguf");
    for token_type in [normal, control, user_defined] {
        assert_eq!(error_of(unigram(), |spec| long(spec, token_type)), refused);
    }
    let world = |bytes: usize| TokenizerSpec {
        model: "rwkv".into(),
        tokens: vec!["<s>".into(), r"\xff".repeat(bytes)],
        token_types: Some(vec![control, normal]),
        ..TokenizerSpec::default()
    };
    assert_eq!(
        error_of(world(1025), |_| ()),
        "tokenizer.ggml.tokens: token 1 has 1025 bytes; at most 1024 are allowed"
    );
    Tokenizer::from_spec(world(1024)).unwrap();
}

#[test]
fn bad_merges_are_named() {
    for rule in ["", " ", "a", "a ", " a", "ab"] {
        let error = error_of(bpe(), |spec| spec.merges.as_mut().unwrap()[2] = rule.into());
        let expected = format!(
            "tokenizer.ggml.merges: rule 2 ({rule:?}) is not two tokens separated by a space"
        );
        assert_eq!(error, expected);
    }
    let error = error_of(bpe(), |spec| {
        spec.merges.as_mut().unwrap()[2] = "a nosuch".into()
    });
    assert_eq!(
        error,
        "tokenizer.ggml.merges: rule 2 (\"a nosuch\") needs the token \"nosuch\", which is not in the \
         vocabulary"
    );
    let error = error_of(bpe(), |spec| {
        spec.merges.as_mut().unwrap()[2] = "~ }".into()
    });
    assert!(error.contains("needs the token \"~}\""), "{error}");
}

#[test]
fn special_ids_must_lie_in_the_vocabulary_and_be_there_when_asked_for() {
    let error = error_of(bpe(), |spec| spec.eot = Some(1800));
    assert_eq!(
        error,
        "tokenizer.ggml.eot_token_id is 1800, but the vocabulary has 1800 tokens"
    );
    let error = error_of(bpe(), |spec| (spec.bos, spec.add_bos) = (None, Some(true)));
    assert_eq!(
        error,
        "tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is not set"
    );
}

#[test]
fn an_unknown_pre_tokenizer_is_a_warning_and_splits_as_default() {
    let named = Tokenizer::from_spec(TokenizerSpec {
        pre: Some("new-one".into()),
        ..bpe()
    })
    .unwrap();
    let default = Tokenizer::from_spec(TokenizerSpec {
        pre: Some("default".into()),
        ..bpe()
    })
    .unwrap();
    let absent = Tokenizer::from_spec(TokenizerSpec { pre: None, ..bpe() }).unwrap();
    assert!(matches!(
        named.warnings(),
        [TokenizerWarning::UnknownPreTokenizer { name, known }]
            if name == "new-one" && known.contains(&"qwen2")
    ));
    assert_eq!(absent.warnings(), [TokenizerWarning::MissingPreTokenizer]);
    assert_eq!(default.warnings(), []);
    let text = "It's 12345, isn't it?";
    let ids = default.encode(text, EncodeOptions::default()).unwrap();
    assert_eq!(named.encode(text, EncodeOptions::default()).unwrap(), ids);
    assert_eq!(absent.encode(text, EncodeOptions::default()).unwrap(), ids);
}

#[test]
fn control_tokens_in_text_are_text_unless_asked_for() {
    let tokenizer = Tokenizer::from_spec(bpe()).unwrap();
    let end = tokenizer.id_of("<|im_end|>").unwrap();
    let plain = tokenizer
        .encode("a<|im_end|>", EncodeOptions::default())
        .unwrap();
    assert!(!plain.contains(&end));
    let parsed = EncodeOptions {
        parse_special: true,
        ..EncodeOptions::default()
    };
    let parsed = tokenizer.encode("a<|im_end|>", parsed).unwrap();
    assert_eq!(parsed.last(), Some(&end));
    assert_eq!(
        tokenizer.decode(&parsed, DecodeOptions::default()).unwrap(),
        b"a"
    );
    assert_eq!(tokenizer.token_bytes(end).unwrap(), b"<|im_end|>");
    assert_eq!(tokenizer.token_type(end), Some(TokenType::Control));
}

#[test]
fn end_tokens_are_those_named_and_the_usual_control_tokens() {
    let tokenizer = Tokenizer::from_spec(bpe()).unwrap();
    let ends: Vec<&str> = (0..1800)
        .filter(|&id| tokenizer.is_end_of_generation(id))
        .filter_map(|id| tokenizer.token_text(id))
        .collect();
    assert_eq!(ends, ["<|endoftext|>", "<|im_end|>"]);
    assert_eq!(tokenizer.eot(), tokenizer.id_of("<|im_end|>"));

    let mut no_types = bpe();
    no_types.token_types = None;
    let tokenizer = Tokenizer::from_spec(no_types).unwrap();
    assert!(!tokenizer.is_end_of_generation(0));
    assert!(tokenizer.is_end_of_generation(2));
}

#[test]
fn ids_beyond_the_vocabulary_cannot_be_decoded() {
    let tokenizer = Tokenizer::from_spec(bpe()).unwrap();
    for id in [1800, u32::MAX] {
        let error = tokenizer
            .decode(&[0, id], DecodeOptions::default())
            .unwrap_err();
        assert!(
            matches!(error, TokenizerError::IdOutOfRange { id: found, tokens: 1800 } if found == id)
        );
        assert!(tokenizer.token_bytes(id).is_err());
        assert_eq!(tokenizer.token_text(id), None);
        assert!(!tokenizer.is_end_of_generation(id));
    }
}

#[test]
fn sentencepiece_without_byte_tokens_falls_back_to_unknown() {
    let mut spec = spm();
    for token_type in spec.token_types.as_mut().unwrap() {
        if *token_type == 6 {
            *token_type = 5;
        }
    }
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    let ids = tokenizer
        .encode("\u{1F600}", EncodeOptions::default())
        .unwrap();
    assert_eq!(ids.last(), tokenizer.id_of("<unk>").as_ref());
    assert!(ids.len() <= 2);
}

#[test]
fn bytes_without_a_token_are_omitted_with_a_warning() {
    let spec = TokenizerSpec {
        model: "gpt2".into(),
        pre: Some("gpt-2".into()),
        tokens: vec!["a".into(), "b".into(), "ab".into()],
        merges: Some(vec!["a b".into()]),
        ..TokenizerSpec::default()
    };
    let tokenizer = Tokenizer::from_spec(spec).unwrap();
    let [TokenizerWarning::BytesWithoutToken { bytes }] = tokenizer.warnings() else {
        panic!("{:?}", tokenizer.warnings());
    };
    assert_eq!(bytes.len(), 241);
    assert!(bytes.contains(&b'x') && !bytes.contains(&b'a'));
    assert_eq!(
        tokenizer.encode("xabab", EncodeOptions::default()).unwrap(),
        [2, 2]
    );
}

#[test]
fn a_megabyte_of_anything_takes_no_quadratic_time() {
    let repeat = |text: &str| text.repeat((1 << 20) / text.len());
    let spaces_then_word = repeat(" ") + "a";
    let texts = [
        repeat("a"),
        repeat("ab"),
        repeat("The fox's den, 42 steps away. "),
        spaces_then_word,
        repeat("\n \n"),
        repeat("1"),
        repeat("!'"),
        repeat("\u{1F600}"),
        repeat("e\u{301}"),
        repeat("<|im_end|>"),
        repeat("<|im_end|"),
    ];
    let options = EncodeOptions {
        add_special: true,
        parse_special: true,
        continues: false,
    };
    for pre in ["llama-bpe", "default", "spm"] {
        let spec = match pre {
            "spm" => TokenizerSpec {
                add_space_prefix: Some(false),
                add_bos: Some(false),
                ..spm()
            },
            pre => TokenizerSpec {
                pre: Some(pre.into()),
                add_bos: Some(false),
                ..bpe()
            },
        };
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        for text in &texts {
            let start = Instant::now();
            let ids = tokenizer.encode(text, options).unwrap();
            let taken = start.elapsed();
            let render = DecodeOptions {
                render_special: true,
            };
            assert_eq!(tokenizer.decode_lossy(&ids, render).unwrap(), *text);
            // Tens of milliseconds on a quiet machine; quadratic work would take minutes.
            assert!(
                taken < Duration::from_secs(20),
                "{pre} {:?}: {taken:?}",
                text.get(..8)
            );
        }
    }
}

static ROUND_TRIP: LazyLock<[Tokenizer; 2]> = LazyLock::new(|| {
    let spm = TokenizerSpec {
        add_space_prefix: Some(false),
        ..spm()
    };
    [bpe(), spm].map(|spec| Tokenizer::from_spec(spec).unwrap())
});

proptest! {
    #[test]
    fn any_text_is_recovered_from_its_ids(text in "(\\PC|[ \\t\\r\\n'0-9a-z]|<\\|im_end\\|>)*") {
        let [bpe, spm] = &*ROUND_TRIP;
        for (tokenizer, expected) in [(bpe, text.clone()), (spm, text.replace('\u{2581}', " "))] {
            for parse_special in [false, true] {
                let options = EncodeOptions { parse_special, ..EncodeOptions::default() };
                let ids = tokenizer.encode(&text, options).unwrap();
                let decoded = tokenizer.decode_lossy(&ids, DecodeOptions { render_special: true });
                prop_assert_eq!(decoded.unwrap(), expected.clone());
            }
        }
    }

    #[test]
    fn any_metadata_give_a_tokenizer_or_an_error(
        tokens in prop::collection::vec("[a-c]{0,2}|<0x0[aA]>|<\\|end\\|>", 0..8),
        types in prop::option::of(prop::collection::vec(-1..8i32, 0..8)),
        scores in prop::option::of(prop::collection::vec(any::<f32>(), 0..8)),
        merges in prop::option::of(prop::collection::vec("[a-c ]{0,4}", 0..4)),
        ids in prop::collection::vec(prop::option::of(0..9u32), 3),
        is_bpe in any::<bool>(),
        text in "[a-d <>x0|en]{0,12}",
    ) {
        let spec = TokenizerSpec {
            model: if is_bpe { "gpt2" } else { "llama" }.into(),
            tokens,
            token_types: types,
            scores,
            merges,
            bos: ids[0],
            eos: ids[1],
            unknown: ids[2],
            ..TokenizerSpec::default()
        };
        if let Ok(tokenizer) = Tokenizer::from_spec(spec) {
            let options = EncodeOptions { add_special: true, parse_special: true, continues: false };
            if let Ok(ids) = tokenizer.encode(&text, options) {
                prop_assert!(tokenizer.decode(&ids, DecodeOptions::default()).is_ok());
            }
        }
    }
}
