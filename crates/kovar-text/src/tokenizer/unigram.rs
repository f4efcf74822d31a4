use aho_corasick::{AhoCorasick, MatchKind};

use super::charsmap::Charsmap;
use super::error::TokenizerError;
use super::spec::key;
use super::spm::SPACE;
use super::vocab::{TokenType, Vocab};

/// What the score of text without a piece lies below the least score of a piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// How a text is prepared, as SentencePiece's `NormalizerSpec` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnigramOptions {
    /// Put a space before the text.
    pub add_dummy_prefix: bool,
    /// Leave out spaces at both ends, and all but one of several.
    pub remove_extra_whitespaces: bool,
}

/// SentencePiece's unigram model (Kudo 2018, <https://arxiv.org/abs/1804.10959>): of all ways to cut the
/// prepared text into pieces, the one whose scores (log probabilities) have the greatest sum. Characters
/// without a piece are written as bytes, or all that follow each other as one unknown token.
#[derive(Debug)]
pub(crate) struct Unigram {
    /// Finds all pieces in a text.
    pieces: AhoCorasick,
    /// By the number of the pattern, the piece's id and score.
    scored: Vec<(u32, f32)>,
    /// Finds pieces that are left as they are in preparing a text.
    user_defined: Option<AhoCorasick>,
    unknown_score: f32,
    bytes: [Option<u32>; 256],
    unknown: Option<u32>,
    charsmap: Option<Charsmap>,
    options: UnigramOptions,
}

/// The best way found so far to a position of the text.
#[derive(Debug, Clone, Copy)]
struct Path {
    score: f32,
    start: u32,
    /// The last piece; `None` for text without one.
    id: Option<u32>,
}

impl Unigram {
    /// `scores` are by id; `charsmap` is SentencePiece's precompiled normalisation.
    ///
    /// # Errors
    /// Scores that are not as many as the tokens or not numbers, a damaged `charsmap`, byte tokens that are
    /// none, more pieces than can be searched for.
    pub fn new(
        vocab: &Vocab,
        scores: &[f32],
        unknown: Option<u32>,
        charsmap: Option<&[u8]>,
        options: UnigramOptions,
    ) -> Result<Self, TokenizerError> {
        if scores.len() != vocab.len() {
            return Err(TokenizerError::LengthMismatch {
                key: key::SCORES,
                len: scores.len(),
                tokens: vocab.len(),
            });
        }
        let (mut least, mut greatest) = (f32::MAX, f32::MIN_POSITIVE);
        for ((id, _, token_type), &score) in vocab.iter().zip(scores) {
            if score.is_nan() {
                return Err(TokenizerError::BadScore {
                    key: key::SCORES,
                    id,
                });
            }
            if token_type == TokenType::Normal {
                least = least.min(score);
                greatest = greatest.max(score);
            }
        }
        let mut scored = Vec::new();
        let mut texts = Vec::new();
        for ((id, text, token_type), &score) in vocab.iter().zip(scores) {
            let score = match token_type {
                TokenType::Normal => score,
                // SentencePiece's way to have them always win.
                TokenType::UserDefined => text.len() as f32 * greatest - 0.1,
                _ => continue,
            };
            scored.push((id, score));
            texts.push(text);
        }
        let user_defined: Vec<&str> = vocab
            .iter()
            .filter(|&(_, _, token_type)| token_type == TokenType::UserDefined)
            .map(|(_, text, _)| text)
            .collect();
        let too_large = |source| TokenizerError::SpecialTokens {
            key: key::TOKENS,
            source,
        };
        let user_defined = match user_defined.as_slice() {
            [] => None,
            texts => Some(
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(texts)
                    .map_err(too_large)?,
            ),
        };
        Ok(Self {
            pieces: AhoCorasick::new(texts).map_err(too_large)?,
            scored,
            user_defined,
            unknown_score: least - UNKNOWN_PENALTY,
            bytes: vocab.byte_tokens()?,
            unknown,
            charsmap: charsmap.map(Charsmap::new).transpose()?,
            options,
        })
    }

    pub fn adds_space_prefix(&self) -> bool {
        self.options.add_dummy_prefix
    }

    /// Appends the tokens of `text`; `first` says that it begins a text or follows a control token.
    ///
    /// Takes time in the length of the text and the number of pieces that occur in it.
    pub fn encode(
        &self,
        text: &str,
        first: bool,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let text = self.prepare(text, first)?;
        if u32::try_from(text.len()).is_err() {
            return Err(TokenizerError::TextTooLong { len: text.len() });
        }
        let mut paths = self.best_paths(&text);
        // From the end of the text back to its beginning.
        let mut end = text.len();
        let mut cut = Vec::new();
        while let Some(Some(path)) = paths.get_mut(end) {
            let start = path.start as usize;
            cut.push((start..end, path.id));
            end = start;
        }
        let mut after_unknown = false;
        for (range, id) in cut.into_iter().rev() {
            if let Some(id) = id {
                ids.push(id);
                after_unknown = false;
                continue;
            }
            let piece = text.get(range).unwrap_or_default();
            after_unknown = self.push_without_piece(piece, after_unknown, ids)?;
        }
        Ok(())
    }

    /// By the position behind its last piece, the best path from the beginning of `text`.
    fn best_paths(&self, text: &str) -> Vec<Option<Path>> {
        let mut paths: Vec<Option<Path>> = vec![None; text.len() + 1];
        let score_at = |paths: &[Option<Path>], at: usize| match at {
            0 => Some(0.0),
            _ => paths.get(at).copied().flatten().map(|path| path.score),
        };
        // Pieces come up in the order of their ends, of those that end together the longest first, so that
        // all ways to where one starts are known.
        let mut pieces = self.pieces.find_overlapping_iter(text).peekable();
        for (start, character) in text.char_indices() {
            let end = start + character.len_utf8();
            let mut best: Option<Path> = None;
            let mut is_piece = false;
            while let Some(found) = pieces.next_if(|found| found.end() <= end) {
                let scored = self.scored.get(found.pattern().as_usize());
                let before = score_at(&paths, found.start());
                let (Some(&(id, score)), Some(before)) = (scored, before) else {
                    continue;
                };
                is_piece |= found.start() == start;
                let score = before + score;
                if best.is_none_or(|best| score > best.score) {
                    best = Some(Path {
                        score,
                        start: found.start() as u32,
                        id: Some(id),
                    });
                }
            }
            if !is_piece && let Some(before) = score_at(&paths, start) {
                let score = before + self.unknown_score;
                if best.is_none_or(|best| score > best.score) {
                    best = Some(Path {
                        score,
                        start: start as u32,
                        id: None,
                    });
                }
            }
            if let Some(path) = paths.get_mut(end) {
                *path = best;
            }
        }
        paths
    }

    /// Appends the bytes of a character without a piece, or an unknown token unless `after_unknown` holds;
    /// returns whether it was one.
    fn push_without_piece(
        &self,
        piece: &str,
        after_unknown: bool,
        ids: &mut Vec<u32>,
    ) -> Result<bool, TokenizerError> {
        let tokens = piece.bytes().map(|byte| {
            let id = self.bytes.get(usize::from(byte)).copied().flatten();
            id.ok_or(TokenizerError::NoTokenForByte { byte })
        });
        match (tokens.collect::<Result<Vec<_>, _>>(), self.unknown) {
            (Ok(tokens), _) => {
                ids.extend(tokens);
                Ok(false)
            }
            (Err(_), Some(unknown)) => {
                ids.extend((!after_unknown).then_some(unknown));
                Ok(true)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// The text with its characters normalised and its spaces as the options say, written as U+2581.
    fn prepare(&self, text: &str, first: bool) -> Result<String, TokenizerError> {
        let UnigramOptions {
            add_dummy_prefix,
            remove_extra_whitespaces: removes,
        } = self.options;
        let mut prepared = String::with_capacity(text.len() + text.len() / 2);
        if first && add_dummy_prefix && !text.is_empty() {
            prepared.push(SPACE);
        }
        let mut kept_as_they_are = self
            .user_defined
            .iter()
            .flat_map(|search| search.find_iter(text))
            .peekable();
        let mut at = 0;
        let mut after_space = first;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (read, mut part) = match kept_as_they_are.next_if(|found| found.start() == at) {
                Some(found) => {
                    let len = found.len();
                    (len, rest.get(..len).unwrap_or_default())
                }
                None => self.normalised(rest)?,
            };
            at += read;
            // A replacement may swallow what is found behind its beginning.
            while kept_as_they_are
                .next_if(|found| found.start() < at)
                .is_some()
            {}
            if after_space && removes {
                part = part.trim_start_matches(' ');
            }
            if part.is_empty() {
                continue;
            }
            prepared.extend(part.chars().map(|c| if c == ' ' { SPACE } else { c }));
            after_space = removes && part.ends_with(' ');
        }
        if removes {
            prepared.truncate(prepared.trim_end_matches(SPACE).len());
        }
        Ok(prepared)
    }

    /// The bytes at the beginning of `text` that are normalised together, and what they become.
    fn normalised<'t>(&'t self, text: &'t str) -> Result<(usize, &'t str), TokenizerError> {
        let replaced = match &self.charsmap {
            Some(charsmap) => charsmap.replacement(text)?,
            None => None,
        };
        Ok(replaced.unwrap_or_else(|| {
            let len = text.chars().next().map_or(0, char::len_utf8);
            (len, text.get(..len).unwrap_or_default())
        }))
    }
}
