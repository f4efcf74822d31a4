//! Recognising how text is cut into words.

use serde_json::Value;

use super::kind;

/// A pre-tokenizer of GGUF.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Its name in `tokenizer.ggml.pre`.
    pub(super) name: &'static str,
    /// Whether a word that is a token is taken whole, as its tokenizers have it.
    pub(super) ignore_merges: bool,
}

const fn family_of(name: &'static str, ignore_merges: bool) -> Family {
    Family {
        name,
        ignore_merges,
    }
}

/// By the expression that cuts before the bytes are mapped; the first is that of `ByteLevel` itself.
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

/// One step of a pre-tokenizer.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    /// Maps bytes to characters, and cuts by GPT-2's expression if so.
    ByteLevel { cuts: bool },
    /// Cuts by an expression.
    Split(&'a str),
    /// Cuts off every digit.
    Digits,
}

/// The family whose cuts `pre_tokenizer` makes; `None` if there is none.
pub(super) fn family(pre_tokenizer: &Value) -> Option<Family> {
    let alone = std::slice::from_ref(pre_tokenizer);
    let steps = match kind(pre_tokenizer)? {
        "Sequence" => pre_tokenizer.get("pretokenizers")?.as_array()?,
        _ => alone,
    };
    let steps: Vec<Step<'_>> = steps.iter().map(step).collect::<Option<_>>()?;
    match *steps.as_slice() {
        [Step::ByteLevel { cuts: true }] => Some(GPT2),
        [Step::Digits, Step::ByteLevel { cuts: true }] => Some(SMOLLM),
        [Step::Split(pattern), Step::ByteLevel { cuts: false }] => {
            let found = BY_PATTERN.iter().find(|(known, _)| *known == pattern);
            found.map(
                |(
                    _,
                    Family {
                        name,
                        ignore_merges,
                    },
                )| family_of(name, *ignore_merges),
            )
        }
        _ => None,
    }
}

fn step(step: &Value) -> Option<Step<'_>> {
    let flag = |key: &str| step.get(key).map_or(Some(None), |v| v.as_bool().map(Some));
    match kind(step)? {
        "ByteLevel" if flag("add_prefix_space")? != Some(true) => {
            let cuts = flag("use_regex")?.unwrap_or(true);
            Some(Step::ByteLevel { cuts })
        }
        "Digits" if flag("individual_digits")? == Some(true) => Some(Step::Digits),
        "Split" if flag("invert")? != Some(true) => {
            let behavior = step.get("behavior")?.as_str()?;
            let pattern = step.get("pattern")?.get("Regex")?.as_str()?;
            (behavior == "Isolated").then_some(Step::Split(pattern))
        }
        _ => None,
    }
}
