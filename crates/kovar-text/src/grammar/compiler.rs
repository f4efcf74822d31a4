use std::fmt;
use std::sync::{Arc, OnceLock};

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};

use super::error::{FAULT, message};
use super::schema::schema;
use super::{Constraint, Grammar, GrammarError, GrammarKind};
use crate::tokenizer::{TokenType, Tokenizer};

/// Longer tokens, in bytes, are never sampled under a grammar: building the trie recurses over
/// their bytes.
const MAX_TOKEN_LEN: usize = 128;

/// The stack size of the compiling thread, in bytes; untouched pages need no memory.
const COMPILER_STACK: usize = 256 << 20;

/// The prefix of llguidance's message that no token may follow.
const NO_EXTENSION: &str = "NoExtension";

/// Compiles grammars for one vocabulary.
pub(crate) struct GrammarCompiler {
    factory: ParserFactory,
    /// The id that stands for the end of a text: the vocabulary's length.
    end: u32,
}

impl GrammarCompiler {
    pub fn new(tokenizer: &Tokenizer) -> Result<Self, GrammarError> {
        let end = tokenizer.vocab_len() as u32;
        let mut words = Vec::with_capacity(tokenizer.vocab_len() + 1);
        for id in 0..end {
            words.push(word(tokenizer, id));
        }
        words.push(special("<end of the text>"));
        let info = TokRxInfo::new(end + 1, end);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
        let mut factory = ParserFactory::new_simple(&environment).map_err(|error| {
            let source = message(error);
            GrammarError::Vocabulary { source }
        })?;
        *factory.limits_mut() = ParserLimits {
            max_grammar_size: 200_000,
            max_lexer_states: 100_000,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        factory.quiet();
        Ok(Self { factory, end })
    }

    /// The constraint for an empty text.
    ///
    /// # Errors
    /// [`GrammarError::Invalid`], [`GrammarError::Thread`]
    pub fn compile(&self, grammar: &Grammar) -> Result<Constraint, GrammarError> {
        // The compiler recurses along chains of rules, which may be as long as the grammar's text.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(COMPILER_STACK);
            let thread = thread
                .spawn_scoped(scope, || self.compile_here(grammar))
                .map_err(|source| GrammarError::Thread { source })?;
            match thread.join() {
                Ok(compiled) => compiled,
                Err(_) => Err(GrammarError::Invalid {
                    kind: grammar.kind(),
                    source: FAULT.into(),
                }),
            }
        })
    }

    fn compile_here(&self, grammar: &Grammar) -> Result<Constraint, GrammarError> {
        let kind = grammar.kind();
        let text = grammar.text();
        let compiled = match kind {
            GrammarKind::Lark => TopLevelGrammar::from_lark(text.to_owned()),
            GrammarKind::Regex => TopLevelGrammar::from_regex(text),
            GrammarKind::JsonSchema => TopLevelGrammar::from_json_schema(schema(text)?),
        };
        let invalid = |error: &dyn std::fmt::Display| GrammarError::Invalid {
            kind,
            source: message(error),
        };
        let parser = self.factory.create_parser(compiled);
        let mut matcher = Matcher::new(Ok(parser.map_err(|error| invalid(&error))?));
        // An unsatisfiable grammar is detected at the first mask.
        match matcher.compute_mask() {
            Ok(_) => Ok(Constraint::new(matcher, kind, self.end)),
            Err(error) if error.to_string().starts_with(NO_EXTENSION) => {
                Err(GrammarError::Unsatisfiable { kind })
            }
            Err(error) => Err(invalid(&error)),
        }
    }
}

/// The bytes that a token adds to the text, in the form of the trie.
fn word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let text = tokenizer.token_text(id).unwrap_or_default();
    let word = match tokenizer.token_type(id) {
        Some(TokenType::Control | TokenType::Unknown) => special(text),
        Some(TokenType::Unused) | None => Vec::new(),
        // A first byte of this value would mark a special token.
        _ => match tokenizer.token_bytes(id) {
            Ok(bytes) if bytes.first() != Some(&TokTrie::SPECIAL_TOKEN_MARKER) => bytes,
            _ => Vec::new(),
        },
    };
    if word.len() > MAX_TOKEN_LEN {
        return Vec::new();
    }
    word
}

/// A token that is allowed only where the grammar names it.
fn special(text: &str) -> Vec<u8> {
    [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat()
}

/// The tokenizer's slot for its compiler, filled on first use.
#[derive(Default)]
pub(crate) struct CompilerSlot(OnceLock<GrammarCompiler>);

impl CompilerSlot {
    /// The compiler for `tokenizer`, whose slot this is.
    ///
    /// # Errors
    /// [`GrammarError::Vocabulary`]
    pub fn get(&self, tokenizer: &Tokenizer) -> Result<&GrammarCompiler, GrammarError> {
        if let Some(compiler) = self.0.get() {
            return Ok(compiler);
        }
        let compiler = GrammarCompiler::new(tokenizer)?;
        Ok(self.0.get_or_init(|| compiler))
    }
}

impl fmt::Debug for CompilerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.0.get() {
            Some(_) => "built",
            None => "not built",
        };
        write!(f, "CompilerSlot({state})")
    }
}
