use aho_corasick::AhoCorasick;

use super::charsmap::Charsmap;
use super::error::TokenizerError;
use super::spm::SPACE;
use super::vocab::{ByteFallback, TokenType, Vocab, check_searched, leftmost_longest, too_large};

/// The score of a character without a piece is this much below the lowest score of a piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// How a text is prepared; see SentencePiece's `NormalizerSpec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnigramOptions {
    /// Add a space before the text.
    pub add_dummy_prefix: bool,
    /// Remove spaces at both ends, and all but one of consecutive spaces.
    pub remove_extra_whitespaces: bool,
}

/// SentencePiece's unigram model (Kudo 2018, <https://arxiv.org/abs/1804.10959>): of all ways to
/// split the prepared text into pieces, the one with the greatest sum of scores (log
/// probabilities). Characters without a piece are written as bytes, or each run of them as one
/// unknown token.
#[derive(Debug)]
pub(crate) struct Unigram {
    /// Finds all pieces in a text.
    pieces: AhoCorasick,
    /// By the number of the pattern, the piece's id and score.
    scored: Vec<(u32, f32)>,
    /// Finds pieces that are not normalised when a text is prepared.
    user_defined: Option<AhoCorasick>,
    unknown_score: f32,
    fallback: ByteFallback,
    charsmap: Option<Charsmap>,
    options: UnigramOptions,
}

/// The best path to a position of the text.
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
    /// The number of scores differs from the number of tokens, a score is NaN, `charsmap` is
    /// damaged, a byte token is invalid, or there are too many pieces to search for.
    pub fn new(
        vocab: &Vocab,
        scores: &[f32],
        unknown: Option<u32>,
        charsmap: Option<&[u8]>,
        options: UnigramOptions,
    ) -> Result<Self, TokenizerError> {
        vocab.check_scores(scores)?;
        let (mut least, mut greatest) = (f32::MAX, f32::MIN_POSITIVE);
        for ((_, _, token_type), &score) in vocab.iter().zip(scores) {
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
                // As in SentencePiece, so that they always win.
                TokenType::UserDefined => text.len() as f32 * greatest - 0.1,
                _ => continue,
            };
            check_searched(id, text.as_bytes())?;
            scored.push((id, score));
            texts.push(text);
        }
        let user_defined: Vec<&str> = vocab
            .iter()
            .filter(|&(_, _, token_type)| token_type == TokenType::UserDefined)
            .map(|(_, text, _)| text)
            .collect();
        let user_defined = match user_defined.as_slice() {
            [] => None,
            texts => Some(leftmost_longest(texts)?),
        };
        Ok(Self {
            pieces: AhoCorasick::new(texts).map_err(too_large)?,
            scored,
            user_defined,
            unknown_score: least - UNKNOWN_PENALTY,
            fallback: ByteFallback::new(vocab, unknown)?,
            charsmap: charsmap.map(Charsmap::new).transpose()?,
            options,
        })
    }

    pub fn adds_space_prefix(&self) -> bool {
        self.options.add_dummy_prefix
    }

    /// Appends the tokens of `text`. `first`: it begins a text or follows a control token.
    ///
    /// Linear in the length of the text plus the number of occurrences of pieces.
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
            after_unknown = self.fallback.push(piece, after_unknown, ids)?;
        }
        Ok(())
    }

    /// For each end position, the best path from the beginning of `text`.
    fn best_paths(&self, text: &str) -> Vec<Option<Path>> {
        let mut paths: Vec<Option<Path>> = vec![None; text.len() + 1];
        let score_at = |paths: &[Option<Path>], at: usize| match at {
            0 => Some(0.0),
            _ => paths.get(at).copied().flatten().map(|path| path.score),
        };
        // Pieces are found in the order of their ends; of those with the same end, the longest
        // first. So the paths to the start of a piece are already known.
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

    /// The normalised text, with spaces according to the options, written as U+2581.
    fn prepare(&self, text: &str, first: bool) -> Result<String, TokenizerError> {
        let UnigramOptions {
            add_dummy_prefix,
            remove_extra_whitespaces: removes,
        } = self.options;
        let mut prepared = String::with_capacity(text.len() + text.len() / 2);
        if first && add_dummy_prefix && !text.is_empty() {
            prepared.push(SPACE);
        }
        let mut user_defined = self
            .user_defined
            .iter()
            .flat_map(|search| search.find_iter(text))
            .peekable();
        let mut at = 0;
        let mut after_space = first;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (read, mut piece) = match user_defined.next_if(|found| found.start() == at) {
                Some(found) => {
                    let len = found.len();
                    (len, rest.get(..len).unwrap_or_default())
                }
                None => self.normalised(rest)?,
            };
            at += read;
            // A replaced text may contain the start of a user-defined piece.
            while user_defined.next_if(|found| found.start() < at).is_some() {}
            if after_space && removes {
                piece = piece.trim_start_matches(' ');
            }
            if piece.is_empty() {
                continue;
            }
            prepared.extend(piece.chars().map(|c| if c == ' ' { SPACE } else { c }));
            after_space = removes && piece.ends_with(' ');
        }
        if removes {
            prepared.truncate(prepared.trim_end_matches(SPACE).len());
        }
        Ok(prepared)
    }

    /// The length in bytes of the prefix of `text` that is normalised together, and its
    /// replacement.
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
