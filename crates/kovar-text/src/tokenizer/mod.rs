//! Tokenizers, built from the metadata of a model file: text to token ids and back.

mod bpe;
mod byte_level;
mod charsmap;
mod decode;
mod end;
mod error;
mod merges;
mod pre;
mod spec;
mod special;
mod spm;
mod unigram;
mod vocab;
mod world;

use bpe::Bpe;
use pre::Family;
use spec::key;
use special::{Piece, SpecialTokens};
use spm::Spm;
use unigram::{Unigram, UnigramOptions};
use vocab::Vocab;
use world::World;

use crate::grammar::{CompilerSlot, GrammarCompiler, GrammarError};

pub use decode::DecodeOptions;
pub use error::{TokenizerError, TokenizerWarning};
pub use spec::TokenizerSpec;
pub use vocab::TokenType;

/// The values of `tokenizer.ggml.model` that [`Tokenizer::from_spec`] accepts.
pub const KNOWN_MODELS: &[&str] = &["gpt2", "llama", "rwkv", "t5"];

/// Options for encoding text to ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EncodeOptions {
    /// Add the begin and end tokens that the file asks for.
    pub add_special: bool,
    /// Encode control tokens in the text (`<|im_end|>`) as those tokens and not as ordinary text.
    /// Leave it off for text from users or documents.
    pub parse_special: bool,
    /// The text continues another one: no space is added or removed at its beginning.
    pub continues: bool,
}

/// Turns text into token ids and back.
///
/// The ids are those of llama.cpp for the same file.
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    algorithm: Algorithm,
    special: SpecialTokens,
    bos: Option<u32>,
    eos: Option<u32>,
    eot: Option<u32>,
    padding: Option<u32>,
    add_bos: bool,
    add_eos: bool,
    end_ids: Vec<u32>,
    chat_template: Option<String>,
    warnings: Vec<TokenizerWarning>,
    grammars: CompilerSlot,
}

/// What `tokenizer.ggml.model` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bpe,
    Spm,
    World,
    Unigram,
}

#[derive(Debug)]
enum Algorithm {
    Bpe(Bpe),
    Spm(Spm),
    World(World),
    Unigram(Unigram),
}

impl Kind {
    /// SentencePiece's default unknown, begin and end ids, for files without them.
    fn default_ids(self) -> [Option<u32>; 3] {
        match self {
            Self::Bpe | Self::World => [None; 3],
            Self::Spm => [Some(0), Some(1), Some(2)],
            // T5's.
            Self::Unigram => [Some(2), None, Some(1)],
        }
    }
}

impl Tokenizer {
    /// Checks the description of a tokenizer and builds the tokenizer.
    ///
    /// # Errors
    /// A [`TokenizerError`] that names the metadata key at fault: keys that are missing, arrays of
    /// unequal lengths, empty or repeated tokens, unknown token types, merges or ids that name no
    /// token.
    pub fn from_spec(spec: TokenizerSpec) -> Result<Self, TokenizerError> {
        let kind = match spec.model.as_str() {
            "gpt2" => Kind::Bpe,
            "llama" => Kind::Spm,
            "rwkv" => Kind::World,
            "t5" => Kind::Unigram,
            "" => return Err(TokenizerError::MissingKey { key: key::MODEL }),
            _ => {
                return Err(TokenizerError::UnknownModel {
                    model: spec.model,
                    known: KNOWN_MODELS,
                });
            }
        };
        let vocab = Vocab::new(spec.tokens, spec.token_types)?;
        for (key, id) in [
            (key::BOS, spec.bos),
            (key::EOS, spec.eos),
            (key::EOT, spec.eot),
            (key::EOM, spec.eom),
            (key::UNKNOWN, spec.unknown),
            (key::PADDING, spec.padding),
        ]
        .into_iter()
        .chain(spec.eos_ids.iter().map(|&id| (key::EOS_IDS, Some(id))))
        {
            if let Some(id) = id.filter(|&id| vocab.text(id).is_none()) {
                return Err(TokenizerError::SpecialIdOutOfRange {
                    key,
                    id,
                    tokens: vocab.len(),
                });
            }
        }
        let or_default = |id: Option<u32>, default: Option<u32>| {
            id.or(default.filter(|&default| vocab.text(default).is_some()))
        };
        let defaults = kind.default_ids();
        let unknown = or_default(spec.unknown, defaults[0]);
        let bos = or_default(spec.bos, defaults[1]);
        let eos = or_default(spec.eos, defaults[2]);

        let mut warnings = Vec::new();
        let missing = |key| TokenizerError::MissingKey { key };
        let (algorithm, [add_bos_default, add_eos_default]) = match kind {
            Kind::Bpe => {
                let rules = spec.merges.ok_or(missing(key::MERGES))?;
                let family = family(spec.pre, &mut warnings)?;
                let bpe = Bpe::new(&vocab, family, &rules, &mut warnings)?;
                (Algorithm::Bpe(bpe), [family.add_bos, false])
            }
            Kind::Spm => {
                let scores = spec.scores.ok_or(missing(key::SCORES))?;
                let prefix = spec.add_space_prefix.unwrap_or(true);
                let spm = Spm::new(&vocab, scores, unknown, prefix)?;
                (Algorithm::Spm(spm), [true, false])
            }
            Kind::World => {
                let world = World::new(&vocab, unknown, &mut warnings)?;
                (Algorithm::World(world), [false, false])
            }
            Kind::Unigram => {
                let scores = spec.scores.ok_or(missing(key::SCORES))?;
                let charsmap = spec.precompiled_charsmap.as_deref();
                let options = UnigramOptions {
                    add_dummy_prefix: spec.add_space_prefix.unwrap_or(false),
                    remove_extra_whitespaces: spec.remove_extra_whitespaces.unwrap_or(false),
                };
                let unigram = Unigram::new(&vocab, &scores, unknown, charsmap, options)?;
                (Algorithm::Unigram(unigram), [false, true])
            }
        };
        let add_bos = spec.add_bos.unwrap_or(add_bos_default);
        let add_eos = spec.add_eos.unwrap_or(add_eos_default);
        if add_bos && bos.is_none() {
            return Err(TokenizerError::MissingSpecialId {
                flag: key::ADD_BOS,
                key: key::BOS,
            });
        }
        if add_eos && eos.is_none() {
            return Err(TokenizerError::MissingSpecialId {
                flag: key::ADD_EOS,
                key: key::EOS,
            });
        }
        let eot = spec.eot.or_else(|| end::guess_turn_end(&vocab));
        Ok(Self {
            // Unigram finds user-defined tokens itself when it prepares a text.
            special: SpecialTokens::new(&vocab, kind != Kind::Unigram)?,
            end_ids: end::end_ids(&vocab, &[eos, eot, spec.eom], &spec.eos_ids),
            vocab,
            algorithm,
            bos,
            eos,
            eot,
            padding: spec.padding,
            add_bos,
            add_eos,
            chat_template: spec.chat_template,
            warnings,
            grammars: CompilerSlot::default(),
        })
    }

    /// The ids of `text`.
    ///
    /// O(n log n) for n bytes; O(n + m) for a unigram model with m occurrences of pieces.
    ///
    /// # Errors
    /// [`TokenizerError::TextTooLong`] for 4 GiB and more, [`TokenizerError::NoTokenForByte`] if a
    /// SentencePiece vocabulary has neither a token for a byte nor an unknown token,
    /// [`TokenizerError::BadCharsmap`] if the text reaches a damaged part of the normalisation.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, TokenizerError> {
        if u32::try_from(text.len()).is_err() {
            return Err(TokenizerError::TextTooLong { len: text.len() });
        }
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        ids.extend(self.bos.filter(|_| options.add_special && self.add_bos));
        let mut first = !options.continues;
        for piece in self.special.pieces(text, options.parse_special) {
            match (piece, &self.algorithm) {
                (Piece::Token(id), _) => ids.push(id),
                (Piece::Text(text), Algorithm::Bpe(bpe)) => {
                    bpe.encode(&self.vocab, text, &mut ids)?
                }
                (Piece::Text(text), Algorithm::Spm(spm)) => {
                    spm.encode(&self.vocab, text, first, &mut ids)?;
                }
                (Piece::Text(text), Algorithm::World(world)) => world.encode(text, &mut ids),
                (Piece::Text(text), Algorithm::Unigram(unigram)) => {
                    unigram.encode(text, first, &mut ids)?;
                }
            }
            first = matches!(piece, Piece::Token(_));
        }
        ids.extend(self.eos.filter(|_| options.add_special && self.add_eos));
        Ok(ids)
    }

    /// Number of tokens; ids are below it.
    pub fn vocab_len(&self) -> usize {
        self.vocab.len()
    }

    /// The id of the token whose text is `token`, as the file writes it.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.vocab.id_of(token)
    }

    /// The text of a token as the file writes it; [`Self::token_bytes`] returns its bytes.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.vocab.text(id)
    }

    /// The role of a token.
    pub fn token_type(&self, id: u32) -> Option<TokenType> {
        self.vocab.token_type(id)
    }

    /// The token that begins a text.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a text.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token that ends a turn of a conversation, named in the file or recognised by its text.
    pub fn eot(&self) -> Option<u32> {
        self.eot
    }

    /// The padding token of batches.
    pub fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// Whether [`EncodeOptions::add_special`] adds [`Self::bos`] before a text.
    pub fn adds_bos(&self) -> bool {
        self.add_bos
    }

    /// Whether [`EncodeOptions::add_special`] adds [`Self::eos`] after a text.
    pub fn adds_eos(&self) -> bool {
        self.add_eos
    }

    /// Whether generation stops at this token: an end token that the file names, or a control token
    /// that ends a turn in common model families (`<|im_end|>`, `<|eot_id|>`, `<end_of_turn>`,
    /// ...).
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.end_ids.binary_search(&id).is_ok()
    }

    /// Whether the vocabulary is RWKV World's.
    pub(crate) fn is_world(&self) -> bool {
        matches!(self.algorithm, Algorithm::World(_))
    }

    /// The Jinja source of the file's chat template.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// The grammar compiler for this vocabulary, built on first use.
    pub(crate) fn grammar_compiler(&self) -> Result<&GrammarCompiler, GrammarError> {
        self.grammars.get(self)
    }

    /// The tokens at which generation stops, in ascending order; see
    /// [`Self::is_end_of_generation`].
    pub fn end_ids(&self) -> &[u32] {
        &self.end_ids
    }

    /// Warnings about this vocabulary, for the user.
    pub fn warnings(&self) -> &[TokenizerWarning] {
        &self.warnings
    }
}

/// The pre-tokenizer family that a file asks for, or `default` with a warning.
fn family(
    name: Option<String>,
    warnings: &mut Vec<TokenizerWarning>,
) -> Result<&'static Family, TokenizerError> {
    match name {
        None => warnings.push(TokenizerWarning::MissingPreTokenizer),
        Some(name) => match Family::named(&name) {
            Some(family) => return Ok(family),
            None => warnings.push(TokenizerWarning::UnknownPreTokenizer {
                name,
                known: Family::known_names(),
            }),
        },
    }
    Family::named("default").ok_or(TokenizerError::MissingKey { key: key::PRE })
}
