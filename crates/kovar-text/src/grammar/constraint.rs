use llguidance::Matcher;

use super::error::message;
use super::{Grammar, GrammarError, GrammarKind};
use crate::tokenizer::Tokenizer;

/// The state of a text that is constrained by a grammar.
pub struct Constraint {
    matcher: Matcher,
    kind: GrammarKind,
    /// The id that stands for the end of the text in the matcher's masks.
    end: u32,
    /// Tokens of the text so far.
    tokens: usize,
}

/// What may follow in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Another token, or the end of the text if `end` is true.
    More {
        /// Whether the text may end.
        end: bool,
    },
    /// Nothing: the text is complete.
    Nothing,
}

impl Constraint {
    /// The constraint for an empty text, for tokens of `tokenizer`.
    ///
    /// The first grammar of a tokenizer takes longer: its vocabulary is sorted.
    ///
    /// # Errors
    /// [`GrammarError::Invalid`], [`GrammarError::Vocabulary`]
    pub fn compile(grammar: &Grammar, tokenizer: &Tokenizer) -> Result<Self, GrammarError> {
        tokenizer.grammar_compiler()?.compile(grammar)
    }

    pub(super) fn new(matcher: Matcher, kind: GrammarKind, end: u32) -> Self {
        Self {
            matcher,
            kind,
            end,
            tokens: 0,
        }
    }

    /// Sets the logits of tokens that cannot follow to minus infinity; `logits[id]` belongs to
    /// token `id`. The end tokens `ends` are kept if the text may end here.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`], or [`GrammarError::NoToken`] if no token is allowed and the text is
    /// not complete.
    pub fn mask(&mut self, logits: &mut [f32], ends: &[u32]) -> Result<Allowed, GrammarError> {
        if self.is_complete() {
            return Ok(Allowed::Nothing);
        }
        let kind = self.kind;
        let mask = self.matcher.compute_mask().map_err(|error| {
            let source = message(error);
            GrammarError::Stuck { kind, source }
        })?;
        let mask_len = mask.len();
        let is_allowed = |id: u32| (id as usize) < mask_len && mask.is_allowed(id);
        let end = is_allowed(self.end);
        let mut left = false;
        for (id, logit) in (0u32..).zip(logits.iter_mut()) {
            let is_end = id == self.end || ends.binary_search(&id).is_ok();
            if (is_allowed(id) && id != self.end) || (is_end && end && id != self.end) {
                left |= !is_end;
            } else {
                *logit = f32::NEG_INFINITY;
            }
        }
        match (left, end) {
            (true, _) => Ok(Allowed::More { end }),
            (false, true) => Ok(Allowed::Nothing),
            (false, false) => Err(GrammarError::NoToken {
                kind,
                tokens: self.tokens,
            }),
        }
    }

    /// Whether the text is complete: nothing may follow.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }

    /// Appends a token that [`mask`](Self::mask) allowed.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`] for a token that it did not allow.
    pub fn accept(&mut self, token: u32) -> Result<(), GrammarError> {
        let kind = self.kind;
        self.tokens += 1;
        self.matcher.consume_token(token).map_err(|error| {
            let source = message(error);
            GrammarError::Stuck { kind, source }
        })
    }
}

impl std::fmt::Debug for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Constraint")
            .field("kind", &self.kind)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}
