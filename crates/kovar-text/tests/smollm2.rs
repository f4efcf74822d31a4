//! A real chat model, SmolLM2-135M-Instruct in Q4_1, through its own template.

mod common;

use std::ops::ControlFlow;

use common::cpu;
use kovar_formats::Gguf;
use kovar_text::{
    FinishReason, GenerateOptions, LanguageModel, Message, ModelOptions, Progress, SamplerParams,
    TemplateKind,
};

#[test]
#[ignore = "needs KOVAR_SMOLLM2, the file that scripts/test fetches"]
fn a_chat_model_knows_the_capital_of_france_and_keeps_the_conversation() {
    let path = std::env::var("KOVAR_SMOLLM2").expect("KOVAR_SMOLLM2 names the model file");
    let file = Gguf::open(path).unwrap();
    let mut model = LanguageModel::load(file, cpu(), &ModelOptions::default()).unwrap();
    assert_eq!(model.template().unwrap().kind(), TemplateKind::Source);
    let greedy = SamplerParams::greedy();
    let options = GenerateOptions {
        max_tokens: Some(48),
        ..GenerateOptions::default()
    };
    let mut streamed = String::new();
    // With most system messages, the template's default one included, English and French words are
    // nearly tied as the first of the answer of this 4-bit file (in llama.cpp as well), so that
    // SIMD levels, which round activations differently, give other answers.
    let mut messages = vec![
        Message::new("system", "Answer in one sentence."),
        Message::new("user", "What is the capital of France?"),
    ];
    let answer = model
        .answer(&messages, &greedy, &options, &mut |progress| {
            if let Progress::Text(text) = progress {
                streamed.push_str(text);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(answer.text.contains("Paris"), "{}", answer.text);
    assert_eq!(answer.text, streamed);
    assert_eq!(answer.finish, FinishReason::End);

    messages.push(Message::new("assistant", answer.text));
    messages.push(Message::new("user", "And of Italy?"));
    let again = model
        .answer(&messages, &greedy, &options, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(again.text.contains("Rome"), "{}", again.text);
    assert!(
        again.prompt_evaluated < 24,
        "{} tokens were evaluated again",
        again.prompt_evaluated
    );
}
