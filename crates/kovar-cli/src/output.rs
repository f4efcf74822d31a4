//! Output to stdout and to files.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use serde::Serialize;

/// Writes `text` to stdout and flushes it.
///
/// # Errors
/// Stdout is closed or full.
pub fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write to stdout")
}

/// Writes `value` to stdout as one line of JSON.
///
/// # Errors
/// Stdout is closed or full.
pub fn write_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    write(&text)
}

/// `bytes` as text; bytes of incomplete characters are shown as `<0x9F>`.
pub fn bytes(bytes: &[u8]) -> String {
    shown(bytes, str::to_owned)
}

/// `bytes` as [`bytes`] shows them, in quotes and with control characters escaped.
pub fn quoted_bytes(bytes: &[u8]) -> String {
    let escaped = |text: &str| {
        let quoted = format!("{text:?}");
        quoted[1..quoted.len() - 1].to_owned()
    };
    format!("\"{}\"", shown(bytes, escaped))
}

fn shown(bytes: &[u8], text: impl Fn(&str) -> String) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&text(chunk.valid()));
        for byte in chunk.invalid() {
            shown.push_str(&format!("<0x{byte:02X}>"));
        }
    }
    shown
}

/// Checks that a file can be written to `path`: it does not exist, or `force` allows to replace it.
///
/// # Errors
/// `path` is not a regular file, or it exists and `force` is false.
pub fn check_path(path: &Path, force: bool) -> anyhow::Result<()> {
    let name = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => bail!("{name} is not a regular file"),
        Ok(_) if !force => bail!("{name} already exists; --force replaces it"),
        _ => Ok(()),
    }
}

/// A table of left- or right-aligned columns.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with these column titles; a title that starts with `>` aligns its column to the
    /// right.
    pub fn new(titles: &[&str]) -> Self {
        let right = titles.iter().map(|title| title.starts_with('>')).collect();
        let titles = titles
            .iter()
            .map(|title| title.trim_start_matches('>').to_owned());
        Self {
            rows: vec![titles.collect()],
            right,
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The lines of the table, each with `indent` before it.
    pub fn render(&self, indent: &str) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (column, cell) in row.iter().enumerate() {
                let width = widths.get(column).copied().unwrap_or(0);
                // Not `format!`, which panics on widths beyond 16 bits: cells may come from a file.
                let padding = || " ".repeat(width.saturating_sub(cell.chars().count()));
                if self.right.get(column) == Some(&true) {
                    line.push_str(&padding());
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    if column + 1 < row.len() {
                        line.push_str(&padding());
                    }
                }
                line.push_str("  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["name", ">bytes", "dtype"]);
        table.row(["a".into(), "1".into(), "F32".into()]);
        table.row(["longer".into(), "1000000".into(), "Q4_K".into()]);
        assert_eq!(
            table.render("  "),
            "  name      bytes  dtype\n  a             1  F32\n  longer  1000000  Q4_K\n"
        );
    }

    #[test]
    fn bytes_of_incomplete_characters_show_as_numbers() {
        assert_eq!(bytes(b"a\xf0\x9fb\n"), "a<0xF0><0x9F>b\n");
        assert_eq!(quoted_bytes(b"a\"\xf0\x9f\n"), r#""a\"<0xF0><0x9F>\n""#);
        assert_eq!(quoted_bytes("ä".as_bytes()), "\"ä\"");
    }

    #[test]
    fn a_cell_may_be_wider_than_a_format_width_can_be() {
        let wide = "x".repeat(70_000);
        for titles in [["a", ">b"], ["a", "b"], [">a", "b"]] {
            let mut table = Table::new(&titles);
            table.row([wide.clone(), "1".into()]);
            table.row(["y".into(), wide.clone()]);
            let text = table.render("");
            assert_eq!(text.matches(&wide).count(), 2);
            assert_eq!(text.lines().count(), 3);
        }
    }
}
