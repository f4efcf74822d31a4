//! Any schema, expression or grammar compiles or is an error, and any text that it allows can be
//! followed.
#![no_main]

use std::sync::OnceLock;

use arbitrary::Arbitrary;
use kovar_text::grammar::Allowed;
use kovar_text::{Constraint, Grammar, GrammarKind, Tokenizer, TokenizerSpec};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Case {
    kind: u8,
    text: String,
    choices: Vec<u8>,
}

/// A token for each byte, one that ends a text, and a few words.
fn tokenizer() -> &'static Tokenizer {
    static TOKENIZER: OnceLock<Tokenizer> = OnceLock::new();
    TOKENIZER.get_or_init(|| {
        let mut tokens = vec!["<unk>".to_owned(), "</s>".to_owned()];
        tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
        tokens.extend(["\": \"", "true", "null", "[{", "aa", "\u{e9}"].map(String::from));
        let mut types = vec![2, 3];
        types.resize(258, 6);
        types.resize(tokens.len(), 1);
        Tokenizer::from_spec(TokenizerSpec {
            model: "llama".to_owned(),
            scores: Some(vec![0.0; tokens.len()]),
            token_types: Some(types),
            tokens,
            eos: Some(1),
            add_bos: Some(false),
            ..TokenizerSpec::default()
        })
        .unwrap()
    })
}

fuzz_target!(|case: Case| {
    let kind = match case.kind % 3 {
        0 => GrammarKind::JsonSchema,
        1 => GrammarKind::Regex,
        _ => GrammarKind::Lark,
    };
    let tokenizer = tokenizer();
    let grammar = Grammar::new(kind, case.text);
    let compiled = grammar.and_then(|grammar| Constraint::compile(&grammar, tokenizer));
    let mut constraint = match compiled {
        Ok(constraint) => constraint,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for &choice in case.choices.iter().take(32) {
        let mut logits = vec![0.0; tokenizer.vocab_len()];
        match constraint.mask(&mut logits, tokenizer.end_ids()) {
            Ok(Allowed::More { .. }) => {}
            Ok(Allowed::Nothing) => return,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        }
        let allowed: Vec<u32> = (0u32..)
            .zip(&logits)
            .filter(|&(_, &logit)| logit == 0.0)
            .map(|(id, _)| id)
            .collect();
        let token = allowed[usize::from(choice) % allowed.len()];
        if tokenizer.is_end_of_generation(token) {
            return;
        }
        constraint.accept(token).unwrap();
    }
});
