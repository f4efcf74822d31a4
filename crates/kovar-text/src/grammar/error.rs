use super::GrammarKind;

/// Why a text cannot be constrained by a grammar.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// The grammar is empty.
    #[error("the {} is empty", kind.name())]
    Empty {
        /// The language.
        kind: GrammarKind,
    },
    /// The grammar is too long.
    #[error("the {} has {len} bytes; the limit is {}", kind.name(), kind.max_len())]
    TooLong {
        /// The language.
        kind: GrammarKind,
        /// Its bytes.
        len: usize,
    },
    /// The schema is not JSON.
    #[error("the JSON schema is not JSON: {source}")]
    NotJson {
        /// The position and the cause.
        source: serde_json::Error,
    },
    /// A bound that allows only numbers beyond the supported range.
    #[error(
        "the JSON schema has `{keyword}: {value:?}`, beyond the supported bounds (about ±9.2e18)"
    )]
    Bound {
        /// The keyword.
        keyword: &'static str,
        /// Its value.
        value: f64,
    },
    /// It cannot be compiled: it is malformed, uses unsupported features, is contradictory or needs
    /// too much work.
    #[error("the {} cannot be used: {source}", kind.name())]
    Invalid {
        /// The language.
        kind: GrammarKind,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No text satisfies it.
    #[error("no text satisfies the {}", kind.name())]
    Unsatisfiable {
        /// The language.
        kind: GrammarKind,
    },
    /// The thread that compiles it cannot be started.
    #[error("no thread can be started to compile the grammar: {source}")]
    Thread {
        /// Why.
        source: std::io::Error,
    },
    /// The tokens of a vocabulary cannot be matched.
    #[error("the vocabulary cannot be constrained by a grammar: {source}")]
    Vocabulary {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Matching needs too much work at this position of the text, or the text violates the grammar.
    #[error("the {} cannot be followed any further: {source}", kind.name())]
    Stuck {
        /// The language.
        kind: GrammarKind,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No token of the vocabulary is allowed next.
    #[error(
        "no token of the vocabulary continues the text as the {} requires; the text so far has {tokens} tokens",
        kind.name()
    )]
    NoToken {
        /// The language.
        kind: GrammarKind,
        /// Tokens of the text so far.
        tokens: usize,
    },
}

/// The prefix of llguidance's messages about internal errors.
const PANIC: &str = "panic";

/// The message for users in this case.
pub(super) const FAULT: &str = "it is too complex";

/// The message of llguidance without the details for its developers.
pub(super) fn message(error: impl std::fmt::Display) -> Box<dyn std::error::Error + Send + Sync> {
    let text = error.to_string();
    if text.starts_with(PANIC) {
        return FAULT.into();
    }
    let text = text.split("\n<").next().unwrap_or_default();
    text.trim_end().into()
}
