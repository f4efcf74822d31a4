/// What can be wrong with a vocabulary, or with text or ids given to a tokenizer.
///
/// `key` is the GGUF metadata key that holds the offending value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// Nothing is said of a tokenizer.
    #[error(
        "there is no tokenizer: the metadata lack {key}, which a folder's tokenizer.json gives"
    )]
    NoTokenizer {
        /// The key that every tokenizer has.
        key: &'static str,
    },
    /// A key that this kind of tokenizer cannot do without is absent.
    #[error("the metadata lack {key}")]
    MissingKey {
        /// The absent key.
        key: &'static str,
    },
    /// A key is present but holds another type than the format says.
    #[error(transparent)]
    Metadata(#[from] kovar_formats::MetadataError),
    /// `tokenizer.ggml.model` names a kind of tokenizer that is not built in.
    #[error("tokenizer.ggml.model is {model:?}; the known ones are {}", known.join(", "))]
    UnknownModel {
        /// The name found.
        model: String,
        /// The names that are accepted.
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
    /// A token that texts are searched for is longer than any honest one.
    #[error("{key}: token {id} has {len} bytes, the most is {most}")]
    LongToken {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
        /// Its bytes.
        len: usize,
        /// The most.
        most: usize,
    },
    /// Two ids have the same text.
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
    /// A token type is none of those that GGUF defines (1 to 6).
    #[error("{key}: token {id} has the unknown type {value}")]
    UnknownTokenType {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
        /// The value found.
        value: i32,
    },
    /// A score is not a number, so that merges cannot be ordered by it.
    #[error("{key}: the score of token {id} is NaN")]
    BadScore {
        /// The offending key.
        key: &'static str,
        /// Id of the token.
        id: u32,
    },
    /// A precompiled normalisation is damaged.
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
    /// A token of a vocabulary of byte strings stands for none.
    #[error("{key}: token {id} ({token:?}) has an escape that is cut short, or is empty")]
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
    /// A merge rule names, or makes, a token that is not in the vocabulary.
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
    /// A token is to be added around each text, but its id is not given.
    #[error("{flag} is true, but {key} is not set")]
    MissingSpecialId {
        /// The flag that asks for the token.
        flag: &'static str,
        /// The key of the token's id.
        key: &'static str,
    },
    /// A matcher for the vocabulary's tokens could not be built.
    #[error("{key}: the tokens are too large to search for")]
    SpecialTokens {
        /// The offending key.
        key: &'static str,
        /// Which limit they exceed.
        #[source]
        source: aho_corasick::BuildError,
    },
    /// The expressions of a pre-tokenizer could not be compiled.
    #[error("{key}: the expressions of this pre-tokenizer do not compile")]
    PreTokenizer {
        /// The key that names the pre-tokenizer.
        key: &'static str,
        /// Why.
        #[source]
        source: Box<regex_automata::meta::BuildError>,
    },
    /// The text is longer than 32-bit positions can address.
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
    /// An id outside the vocabulary was to be decoded.
    #[error("token id {id} lies outside the vocabulary of {tokens} tokens")]
    IdOutOfRange {
        /// The id.
        id: u32,
        /// Number of tokens.
        tokens: usize,
    },
}

/// What a user should be told about a vocabulary that can be used all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerWarning {
    /// `tokenizer.ggml.pre` is absent: text is split as by the `default` family.
    #[error(
        "the file names no pre-tokenizer; `default` is used, and the text may be split differently from training"
    )]
    MissingPreTokenizer,
    /// `tokenizer.ggml.pre` is none of the known names: text is split as by the `default` family.
    #[error(
        "the pre-tokenizer {name:?} is not known; `default` is used, and the text may be split differently from training (known: {})",
        known.join(", ")
    )]
    UnknownPreTokenizer {
        /// The name found.
        name: String,
        /// The names that are built in.
        known: Vec<&'static str>,
    },
    /// Some bytes that occur in UTF-8 have no token; they are left out of encoded text.
    #[error(
        "byte values of UTF-8 without a token in this vocabulary, left out of encoded text: {}",
        bytes.len()
    )]
    BytesWithoutToken {
        /// Those of the byte values that occur in UTF-8, in rising order.
        bytes: Vec<u8>,
    },
}
