/// Errors of a vocabulary, or of the text or ids given to a tokenizer.
///
/// `key` is the GGUF metadata key that holds the offending value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The metadata describe no tokenizer.
    #[error(
        "there is no tokenizer: the metadata lack {key} (in a folder, tokenizer.json provides it)"
    )]
    NoTokenizer {
        /// The key that every tokenizer has.
        key: &'static str,
    },
    /// A key that this kind of tokenizer requires is absent.
    #[error("the metadata lack {key}")]
    MissingKey {
        /// The absent key.
        key: &'static str,
    },
    /// The value of a key has the wrong type.
    #[error(transparent)]
    Metadata(#[from] kovar_formats::MetadataError),
    /// `tokenizer.ggml.model` names an unsupported kind of tokenizer.
    #[error("tokenizer.ggml.model is {model:?}; supported are {}", known.join(", "))]
    UnknownModel {
        /// The name found.
        model: String,
        /// The supported names.
        known: &'static [&'static str],
    },
    /// The vocabulary has no tokens.
    #[error("{key} is empty")]
    EmptyVocabulary {
        /// The offending key.
        key: &'static str,
    },
    /// The vocabulary has more tokens than ids can count.
    #[error("{key} has {len} tokens, more than a 32-bit id can count")]
    TooManyTokens {
        /// The offending key.
        key: &'static str,
        /// Number of tokens.
        len: usize,
    },
    /// A per-token array is not as long as the token list.
    #[error("{key} has {len} entries for {tokens} tokens")]
    LengthMismatch {
        /// The offending key.
        key: &'static str,
        /// Its number of entries.
        len: usize,
        /// Number of tokens.
        tokens: usize,
    },
    /// A token is the empty string.
    #[error("{key}: token {id} is empty")]
    EmptyToken {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
    },
    /// A token that is searched for in texts is too long.
    #[error("{key}: token {id} has {len} bytes; at most {most} are allowed")]
    LongToken {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
        /// Its length in bytes.
        len: usize,
        /// The maximum.
        most: usize,
    },
    /// Two tokens have the same text.
    #[error("{key}: token {token:?} has the ids {first} and {second}")]
    DuplicateToken {
        /// The offending key.
        key: &'static str,
        /// The text of both.
        token: String,
        /// The lower id.
        first: u32,
        /// The higher id.
        second: u32,
    },
    /// A token type is not one of those that GGUF defines (1 to 6).
    #[error("{key}: token {id} has the unknown type {value}")]
    UnknownTokenType {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
        /// The value found.
        value: i32,
    },
    /// A score is NaN.
    #[error("{key}: the score of token {id} is NaN")]
    BadScore {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
    },
    /// The precompiled normalisation is damaged.
    #[error("{key} is damaged: {fault}")]
    BadCharsmap {
        /// The offending key.
        key: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A token of type `byte` is not written `<0xHH>`.
    #[error("{key}: token {id} is of type byte but its text is {token:?}, not <0xHH>")]
    BadByteToken {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
        /// Its text.
        token: String,
    },
    /// A token of a byte-string vocabulary is empty or has an incomplete escape.
    #[error("{key}: token {id} ({token:?}) has an incomplete escape, or is empty")]
    BadEscape {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
        /// Its text.
        token: String,
    },
    /// A merge rule is not two tokens separated by a space.
    #[error("{key}: rule {rank} ({rule:?}) is not two tokens separated by a space")]
    BadMerge {
        /// The offending key.
        key: &'static str,
        /// Index of the rule.
        rank: usize,
        /// The rule.
        rule: String,
    },
    /// A merge rule contains or produces a token that is not in the vocabulary.
    #[error(
        "{key}: rule {rank} ({rule:?}) needs the token {token:?}, which is not in the vocabulary"
    )]
    MergeOfUnknownToken {
        /// The offending key.
        key: &'static str,
        /// Index of the rule.
        rank: usize,
        /// The rule.
        rule: String,
        /// The missing token.
        token: String,
    },
    /// A special token's id lies outside the vocabulary.
    #[error("{key} is {id}, but the vocabulary has {tokens} tokens")]
    SpecialIdOutOfRange {
        /// The offending key.
        key: &'static str,
        /// The id found.
        id: u32,
        /// Number of tokens.
        tokens: usize,
    },
    /// A token is to be added to each text, but its id is missing.
    #[error("{flag} is true, but {key} is not set")]
    MissingSpecialId {
        /// The flag that enables the token.
        flag: &'static str,
        /// The key of the token's id.
        key: &'static str,
    },
    /// A matcher for the vocabulary's tokens could not be built.
    #[error("{key}: the tokens are too large to search for")]
    SpecialTokens {
        /// The offending key.
        key: &'static str,
        /// The exceeded limit.
        #[source]
        source: aho_corasick::BuildError,
    },
    /// The regular expressions of a pre-tokenizer could not be compiled.
    #[error("{key}: the regular expressions of this pre-tokenizer do not compile")]
    PreTokenizer {
        /// The key that names the pre-tokenizer.
        key: &'static str,
        /// The cause.
        #[source]
        source: Box<regex_automata::meta::BuildError>,
    },
    /// The text is longer than 32-bit positions allow.
    #[error("a text of {len} bytes is too long to tokenize at once")]
    TextTooLong {
        /// Length in bytes.
        len: usize,
    },
    /// The vocabulary has neither a token for a byte of the text nor an unknown token.
    #[error("the vocabulary has no token for the byte 0x{byte:02X} and no unknown token")]
    NoTokenForByte {
        /// The byte.
        byte: u8,
    },
    /// The id to decode lies outside the vocabulary.
    #[error("token id {id} lies outside the vocabulary of {tokens} tokens")]
    IdOutOfRange {
        /// The id.
        id: u32,
        /// Number of tokens.
        tokens: usize,
    },
}

/// A warning about a vocabulary that is still usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerWarning {
    /// `tokenizer.ggml.pre` is absent: text is split like the `default` family.
    #[error(
        "the file names no pre-tokenizer; `default` is used, and the text may be split differently from training"
    )]
    MissingPreTokenizer,
    /// `tokenizer.ggml.pre` is an unknown name: text is split like the `default` family.
    #[error(
        "the pre-tokenizer {name:?} is not known; `default` is used, and the text may be split differently from training (known: {})",
        known.join(", ")
    )]
    UnknownPreTokenizer {
        /// The name found.
        name: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// Some bytes that occur in UTF-8 have no token; they are omitted from encoded text.
    #[error(
        "byte values of UTF-8 without a token in this vocabulary, omitted from encoded text: {}",
        bytes.len()
    )]
    BytesWithoutToken {
        /// The byte values, in ascending order.
        bytes: Vec<u8>,
    },
}

impl TokenizerWarning {
    /// The warning about bytes that occur in UTF-8 but have no token, if there are any.
    pub(super) fn of_missing_bytes(has_token: impl Fn(u8) -> bool) -> Option<Self> {
        let in_utf8 = |byte: &u8| !matches!(byte, 0xC0 | 0xC1 | 0xF5..);
        let bytes = (0u8..=255).filter(in_utf8);
        let bytes: Vec<u8> = bytes.filter(|&byte| !has_token(byte)).collect();
        (!bytes.is_empty()).then_some(Self::BytesWithoutToken { bytes })
    }
}
