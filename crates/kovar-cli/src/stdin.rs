//! Text that comes over stdin.

use std::io::{self, IsTerminal, Read};

use anyhow::{Context, anyhow};

/// The argument that stands for stdin.
pub const DASH: &str = "-";

/// The text of an argument: the argument itself, or stdin's text if it is `-`, or if there is no
/// argument and stdin is not a terminal.
///
/// # Errors
/// Stdin cannot be read or is not UTF-8.
pub fn text_or_stdin(argument: Option<&str>) -> anyhow::Result<Option<String>> {
    match argument {
        Some(text) if text != DASH => Ok(Some(text.to_owned())),
        None if io::stdin().is_terminal() => Ok(None),
        _ => read_all().map(Some),
    }
}

fn read_all() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .context("cannot read stdin")?;
    String::from_utf8(bytes).map_err(|error| not_utf8(error.utf8_error().valid_up_to()))
}

/// The error of text on stdin that is not UTF-8 from byte `at` on.
pub fn not_utf8(at: usize) -> anyhow::Error {
    anyhow!("the text on stdin is not UTF-8 (at byte {at})")
}

/// `text` without one newline at its end, which `echo` puts there.
pub fn without_newline(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_is_taken_off() {
        assert_eq!(without_newline("a\n"), "a");
        assert_eq!(without_newline("a\r\n"), "a");
        assert_eq!(without_newline("a\n\n"), "a\n");
        assert_eq!(without_newline("a"), "a");
    }
}
