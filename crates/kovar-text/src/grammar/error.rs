use super::GrammarKind;

/// Why a text cannot be held to a grammar.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// No text.
    #[error("the {} is empty", kind.name())]
    Empty {
        /// The language.
        kind: GrammarKind,
    },
    /// A text that is too long.
    #[error("the {} has {len} bytes; {} are the most", kind.name(), kind.max_len())]
    TooLong {
        /// The language.
        kind: GrammarKind,
        /// Its bytes.
        len: usize,
    },
    /// A schema that is not JSON.
    #[error("the JSON schema is not JSON: {source}")]
    NotJson {
        /// Where and why.
        source: serde_json::Error,
    },
    /// A bound of a number leaves only numbers that are too large.
    #[error(
        "the JSON schema has `{keyword}: {value:?}`, beyond what can be bounded (about ±9.2e18)"
    )]
    Bound {
        /// The keyword.
        keyword: &'static str,
        /// Its value.
        value: f64,
    },
    /// It cannot be compiled: it is malformed, uses what is not supported, contradicts itself or needs too
    /// much work.
    #[error("the {} cannot be used: {source}", kind.name())]
    Invalid {
        /// The language.
        kind: GrammarKind,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No text satisfies it.
    #[error("no text satisfies the {}", kind.name())]
    Unsatisfiable {
        /// The language.
        kind: GrammarKind,
    },
    /// There is no thread to compile it.
    #[error("no thread can be started to compile the grammar: {source}")]
    Thread {
        /// Why.
        source: std::io::Error,
    },
    /// The tokens of a vocabulary cannot be matched.
    #[error("the vocabulary cannot be held to a grammar: {source}")]
    Vocabulary {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Matching needs too much work at this place of the text, or the text has left the grammar.
    #[error("the {} cannot be followed any further: {source}", kind.name())]
    Stuck {
        /// The language.
        kind: GrammarKind,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No token of the vocabulary goes on as the grammar wants.
    #[error(
        "no token of the vocabulary continues the text as the {} wants; the text so far has {tokens} tokens",
        kind.name()
    )]
    NoToken {
        /// The language.
        kind: GrammarKind,
        /// Tokens of the text so far.
        tokens: usize,
    },
}

/// How llguidance begins to tell of a fault of its own.
const PANIC: &str = "panic";

/// What users are told then.
pub(super) const FAULT: &str = "it is beyond what can be worked with";

/// What llguidance says is wrong, without what it adds for its developers.
pub(super) fn message(error: impl std::fmt::Display) -> Box<dyn std::error::Error + Send + Sync> {
    let text = error.to_string();
    if text.starts_with(PANIC) {
        return FAULT.into();
    }
    let text = text.split("\n<").next().unwrap_or_default();
    text.trim_end().into()
}
