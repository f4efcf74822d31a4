//! Progress of long work on stderr. Nothing is shown unless stderr is a terminal.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// Progress of work of unknown duration.
pub fn spinner(message: String) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Progress of `total` units of work.
pub fn bar(message: impl Into<Cow<'static, str>>, total: usize) -> ProgressBar {
    counted(message.into(), total as u64, "{pos}/{len}")
}

/// Progress of processing `total` bytes.
pub fn byte_bar(message: &'static str, total: u64) -> ProgressBar {
    counted(message.into(), total, "{binary_bytes}/{binary_total_bytes}")
}

fn counted(message: Cow<'static, str>, total: u64, count: &str) -> ProgressBar {
    let bar = ProgressBar::new(total).with_message(message);
    let template = format!("{{msg}} [{{bar:30}}] {count} {{eta}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
