/// A stop string is empty; every text would end before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stop string {index} is empty")]
pub struct EmptyStopString {
    /// Its index in the list.
    pub index: usize,
}

/// The stop string that ended a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopMatch {
    /// Its index in the list given to [`StopStrings::new`].
    pub index: usize,
}

/// Finds stop strings in streamed text, across token boundaries.
///
/// Text that may be the beginning of a stop string is held back until more text arrives. The stop
/// string that is complete first ends the text (the longest of those that end at the same place),
/// so the result does not depend on how the text is split into tokens.
#[derive(Debug, Clone, Default)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
}

impl StopStrings {
    /// Finds any of `stops`, which may be empty.
    ///
    /// # Errors
    /// [`EmptyStopString`]
    pub fn new(stops: Vec<String>) -> Result<Self, EmptyStopString> {
        match stops.iter().position(String::is_empty) {
            Some(index) => Err(EmptyStopString { index }),
            None => Ok(Self {
                stops,
                held: String::new(),
            }),
        }
    }

    /// Takes more text and appends to `out` what cannot belong to a stop string. On a match, the
    /// text before the stop string is appended; the stop string and everything after it are
    /// dropped.
    pub fn push(&mut self, text: &str, out: &mut String) -> Option<StopMatch> {
        self.held.push_str(text);
        let first = self
            .stops
            .iter()
            .enumerate()
            .filter_map(|(index, stop)| {
                self.held
                    .find(stop.as_str())
                    .map(|at| (index, at, stop.len()))
            })
            .min_by_key(|&(_, at, len)| (at + len, at));
        if let Some((index, at, _)) = first {
            out.extend(self.held.drain(..at));
            self.held.clear();
            return Some(StopMatch { index });
        }
        let certain = self.held.len() - self.undecided();
        out.extend(self.held.drain(..certain));
        None
    }

    /// Ends the text: appends what was held back. The next text may then begin.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }

    /// Length in bytes of the longest suffix of the held text that is a prefix of a stop string.
    fn undecided(&self) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest.saturating_sub(1));
        self.held
            .char_indices()
            .map(|(at, _)| at)
            .filter(|&at| at >= from)
            .filter_map(|at| self.held.get(at..))
            .find(|tail| self.stops.iter().any(|stop| stop.starts_with(tail)))
            .map_or(0, str::len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watch(stops: &[&str], pieces: &[&str]) -> (Vec<String>, Option<usize>) {
        let mut watch =
            StopStrings::new(stops.iter().map(|stop| stop.to_string()).collect()).unwrap();
        let mut outs = Vec::new();
        for piece in pieces {
            let mut out = String::new();
            let found = watch.push(piece, &mut out);
            outs.push(out);
            if let Some(StopMatch { index }) = found {
                return (outs, Some(index));
            }
        }
        let mut out = String::new();
        watch.finish(&mut out);
        outs.push(out);
        (outs, None)
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| text.to_string()).collect()
    }

    #[test]
    fn a_stop_string_is_found_across_tokens() {
        let (outs, found) = watch(&["\nUser:"], &["Hi", "\nUs", "er", ": no"]);
        assert_eq!((outs, found), (strings(&["Hi", "", "", ""]), Some(0)));
    }

    #[test]
    fn text_that_only_began_like_a_stop_string_is_released() {
        let (outs, found) = watch(&["\nUser:"], &["a\nU", "S", "\n"]);
        assert_eq!((outs, found), (strings(&["a", "\nUS", "", "\n"]), None));
    }

    #[test]
    fn the_stop_string_that_is_complete_first_wins() {
        let (outs, found) = watch(&["bcde", "cd"], &["abcdef"]);
        assert_eq!((outs, found), (strings(&["ab"]), Some(1)));
        let (outs, found) = watch(&["d", "bcd"], &["abcd"]);
        assert_eq!((outs, found), (strings(&["a"]), Some(1)));
    }

    #[test]
    fn no_stop_strings_hold_nothing_back() {
        let (outs, found) = watch(&[], &["a", "b"]);
        assert_eq!((outs, found), (strings(&["a", "b", ""]), None));
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        let error = StopStrings::new(strings(&["a", ""])).unwrap_err();
        assert_eq!(error, EmptyStopString { index: 1 });
    }

    proptest! {
        #[test]
        fn the_cut_into_tokens_does_not_matter(
            stops in prop::collection::vec("[abé]{1,4}", 0..4),
            pieces in prop::collection::vec("[abé]{0,4}", 0..8),
        ) {
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let whole = pieces.concat();
            let (in_pieces, found) = watch(&stops, &pieces);
            let (at_once, found_at_once) = watch(&stops, &[whole.as_str()]);
            prop_assert_eq!(found, found_at_once);
            prop_assert_eq!(in_pieces.concat(), at_once.concat());
        }
    }
}
