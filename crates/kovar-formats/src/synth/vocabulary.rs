//! Vocabularies without meaning, for programs that load no file without a tokenizer.

use crate::gguf::{StringArray, Value};

/// The kind of tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// Byte-level BPE: the printable characters of ASCII, space and newline, and one merge.
    ByteLevel,
    /// RWKV World: every byte.
    World,
}

/// The values of `tokenizer.ggml.token_type`.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const UNUSED: i32 = 5;

/// The metadata of a tokenizer of `len` tokens. Tokens beyond those of the kind are unused.
pub(super) fn metadata(kind: Vocabulary, len: usize) -> Vec<(String, Value)> {
    let (model, end, mut tokens) = match kind {
        Vocabulary::ByteLevel => {
            // A space, a newline and a space before `a` in byte-level vocabularies.
            let spelled = ["\u{120}", "\u{10a}", "\u{120}a"].map(str::to_owned);
            let printable = ('!'..='~').map(String::from);
            let tokens: Vec<String> = printable.chain(spelled).collect();
            ("gpt2", "<|endoftext|>", tokens)
        }
        Vocabulary::World => {
            let bytes = (0..=u8::MAX).map(|byte| format!("\\x{byte:02x}"));
            ("rwkv", "<s>", bytes.collect())
        }
    };
    tokens.insert(0, end.to_owned());
    let n_used = tokens.len();
    tokens.extend((n_used..len).map(|id| format!("[PAD{id}]")));
    let type_of = |id: usize| match id {
        0 => CONTROL,
        id if id < n_used => NORMAL,
        _ => UNUSED,
    };
    let types: Vec<i32> = (0..tokens.len()).map(type_of).collect();
    let tokens: StringArray = tokens.iter().map(String::as_str).collect();
    let mut metadata: Vec<(&str, Value)> = vec![
        ("model", model.into()),
        ("tokens", tokens.into()),
        ("token_type", types.into()),
        ("bos_token_id", 0u32.into()),
        ("eos_token_id", 0u32.into()),
        ("add_bos_token", false.into()),
    ];
    if kind == Vocabulary::ByteLevel {
        let merges: StringArray = std::iter::once("\u{120} a").collect();
        metadata.push(("pre", "gpt-2".into()));
        metadata.push(("merges", merges.into()));
    }
    let key = |key: &str| format!("tokenizer.ggml.{key}");
    metadata
        .into_iter()
        .map(|(name, value)| (key(name), value))
        .collect()
}
