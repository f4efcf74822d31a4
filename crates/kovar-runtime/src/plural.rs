//! Counts in dumps.

/// `count` with the plural of a regular word where it is not 1.
pub(crate) fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}
