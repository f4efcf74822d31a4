//! Counts in text.

/// `count` with the plural of a regular word where it is not 1.
pub(crate) fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}
