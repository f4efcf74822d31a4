//! Progress of long work on stderr. Nothing is shown where stderr is no terminal.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// Work of which it isn't known how long it takes.
pub fn spinner(message: String) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Work of `total` steps.
pub fn bar(message: impl Into<Cow<'static, str>>, total: usize) -> ProgressBar {
    let bar = ProgressBar::new(total as u64).with_message(message);
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Work that goes through `total` bytes.
pub fn byte_bar(message: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total).with_message(message);
    let template = "{msg} [{bar:30}] {binary_bytes}/{binary_total_bytes} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
