//! What goes to stdout.

use std::io::{self, Write};

use serde::Serialize;

/// Writes `text` to stdout and flushes it.
///
/// # Errors
/// Stdout is closed or full.
pub fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes `value` to stdout as one line of JSON.
///
/// # Errors
/// Stdout is closed or full.
pub fn write_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    Ok(write(&text)?)
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

    /// The lines of the table, each behind `indent`.
    pub fn render(&self, indent: &str) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&self.right) {
                if right {
                    line.push_str(&format!("{cell:>width$}  "));
                } else {
                    line.push_str(&format!("{cell:<width$}  "));
                }
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
}
