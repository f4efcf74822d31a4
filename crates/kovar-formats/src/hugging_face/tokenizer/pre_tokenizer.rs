//! Recognition of the pre-tokenizers, which cut text into words.

use serde_json::Value;

use super::kind;

/// A pre-tokenizer of GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Its name in `tokenizer.ggml.pre`.
    pub(super) name: &'static str,
    /// Whether a word that is itself a token is not cut further.
    pub(super) ignore_merges: bool,
}

const fn family_of(name: &'static str, ignore_merges: bool) -> Family {
    Family {
        name,
        ignore_merges,
    }
}

/// Pre-tokenizers by the expression that cuts the text before bytes are mapped to characters. The
/// first expression is that of `ByteLevel` itself.
///
/// Source: the tokenizers of the models.
const BY_PATTERN: &[(&str, Family)] = &[
    (
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        family_of("gpt-2", false),
    ),
    (
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        family_of("llama-bpe", true),
    ),
    (
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        family_of("qwen2", false),
    ),
];

const GPT2: Family = family_of("gpt-2", false);
const SMOLLM: Family = family_of("smollm", false);

/// One stage of a pre-tokenizer.
#[derive(Debug, PartialEq, Eq)]
enum Stage<'a> {
    /// Maps bytes to characters. If `cuts`, cuts by GPT-2's expression first.
    ByteLevel { cuts: bool },
    /// Cuts by an expression.
    Split(&'a str),
    /// Cuts off every digit.
    Digits,
}

/// The family that cuts like `pre_tokenizer`; `None` if there is none.
pub(super) fn family(pre_tokenizer: &Value) -> Option<Family> {
    let alone = std::slice::from_ref(pre_tokenizer);
    let stages = match kind(pre_tokenizer)? {
        "Sequence" => pre_tokenizer.get("pretokenizers")?.as_array()?,
        _ => alone,
    };
    let stages: Vec<Stage<'_>> = stages.iter().map(stage).collect::<Option<_>>()?;
    match *stages.as_slice() {
        [Stage::ByteLevel { cuts: true }] => Some(GPT2),
        [Stage::Digits, Stage::ByteLevel { cuts: true }] => Some(SMOLLM),
        [Stage::Split(pattern), Stage::ByteLevel { cuts: false }] => {
            let found = BY_PATTERN.iter().find(|(known, _)| *known == pattern);
            found.map(|(_, family)| *family)
        }
        _ => None,
    }
}

fn stage(stage: &Value) -> Option<Stage<'_>> {
    let flag = |key: &str| stage.get(key).map_or(Some(None), |v| v.as_bool().map(Some));
    match kind(stage)? {
        "ByteLevel" if flag("add_prefix_space")? != Some(true) => {
            let cuts = flag("use_regex")?.unwrap_or(true);
            Some(Stage::ByteLevel { cuts })
        }
        "Digits" if flag("individual_digits")? == Some(true) => Some(Stage::Digits),
        "Split" if flag("invert")? != Some(true) => {
            let behavior = stage.get("behavior")?.as_str()?;
            let pattern = stage.get("pattern")?.get("Regex")?.as_str()?;
            (behavior == "Isolated").then_some(Stage::Split(pattern))
        }
        _ => None,
    }
}
