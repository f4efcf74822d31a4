//! Output constrained by a JSON schema, a regular expression or a grammar.
//!
//! A [`Grammar`] defines the allowed texts. Before each token is sampled, all tokens that would
//! violate the grammar are masked. The matching is done by the llguidance crate: an Earley parser
//! over a lexer of derivatives, run over a trie of the vocabulary.

mod compiler;
mod constraint;
mod error;
mod schema;

pub(crate) use compiler::{CompilerSlot, GrammarCompiler};
pub use constraint::{Allowed, Constraint};
pub use error::GrammarError;

/// A definition of the allowed texts. It comes from a user and is not trusted: its length is
/// bounded here, and the work of matching is bounded at compilation and at each token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    kind: GrammarKind,
    text: String,
}

/// The language that a [`Grammar`] is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrammarKind {
    /// A JSON schema (<https://json-schema.org>); references must stay within the schema.
    JsonSchema,
    /// A regular expression for the whole text.
    Regex,
    /// A context-free grammar in the dialect of Lark that llguidance reads; `start` is its first
    /// rule.
    Lark,
}

impl GrammarKind {
    /// Its name in error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonSchema => "JSON schema",
            Self::Regex => "regular expression",
            Self::Lark => "grammar",
        }
    }

    /// The longest text of this kind, in bytes. Compiling a grammar or an expression may take
    /// quadratic time.
    pub fn max_len(self) -> usize {
        match self {
            Self::JsonSchema => 1 << 20,
            Self::Regex => 1 << 14,
            Self::Lark => 1 << 16,
        }
    }
}

impl Grammar {
    /// A grammar of this kind.
    ///
    /// # Errors
    /// A text that is empty or too long, or a schema that is not JSON.
    pub fn new(kind: GrammarKind, text: impl Into<String>) -> Result<Self, GrammarError> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(GrammarError::Empty { kind });
        }
        if text.len() > kind.max_len() {
            let len = text.len();
            return Err(GrammarError::TooLong { kind, len });
        }
        if kind == GrammarKind::JsonSchema {
            serde_json::from_str::<serde_json::Value>(&text)
                .map_err(|source| GrammarError::NotJson { source })?;
        }
        Ok(Self { kind, text })
    }

    /// Its language.
    pub fn kind(&self) -> GrammarKind {
        self.kind
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }
}
