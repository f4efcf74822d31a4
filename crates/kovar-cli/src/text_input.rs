//! Text from stdin or from a file.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail};

use crate::format;

/// The argument that stands for stdin.
pub const DASH: &str = "-";

/// The maximum length of a prompt or message, in bytes: more than the longest context holds.
pub const MAX_PROMPT: u64 = 256 << 20;

/// The text of an argument: the argument itself, or the text on stdin if it is `-` or if there is
/// no argument and stdin is not a terminal.
///
/// # Errors
/// Stdin cannot be read, is not UTF-8 or is longer than [`MAX_PROMPT`].
pub fn text_or_stdin(argument: Option<&str>) -> anyhow::Result<Option<String>> {
    match argument {
        Some(text) if text != DASH => Ok(Some(text.to_owned())),
        None if io::stdin().is_terminal() => Ok(None),
        _ => read_text(io::stdin().lock(), MAX_PROMPT)
            .context("cannot read stdin")
            .map(Some),
    }
}

/// Reads all of `reader` as text of at most `max` bytes.
///
/// # Errors
/// It cannot be read, is not UTF-8 or is longer.
pub fn read_text(reader: impl Read, max: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    reader.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        bail!("the text is longer than {}", format::bytes(max));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(error.utf8_error().valid_up_to()))
}

/// Reads the file at `path` as text of at most `max` bytes.
///
/// # Errors
/// As [`read_text`]; the error names the file.
pub fn read_text_file(path: &Path, max: u64) -> anyhow::Result<String> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    read_text(file, max).with_context(|| format!("cannot read {name}"))
}

/// The error for text that is not UTF-8 at byte `at`.
pub fn not_utf8(at: usize) -> anyhow::Error {
    anyhow!("the text is not UTF-8 (at byte {at})")
}

/// `text` without one newline at its end, which `echo` adds.
pub fn without_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_is_removed() {
        assert_eq!(without_newline("a\n"), "a");
        assert_eq!(without_newline("a\r\n"), "a");
        assert_eq!(without_newline("a\n\n"), "a\n");
        assert_eq!(without_newline("a"), "a");
    }

    #[test]
    fn a_text_that_is_too_long_is_rejected() {
        assert_eq!(read_text(&b"abc"[..], 3).unwrap(), "abc");
        let error = read_text(io::repeat(b'a'), 4096).unwrap_err();
        assert_eq!(error.to_string(), "the text is longer than 4.0 KiB");
    }
}
