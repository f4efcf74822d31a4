//! Output to stderr: the log, notes and errors.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::hints;

/// The environment variable with the log filter, in the syntax of tracing's `EnvFilter`.
const LOG_VARIABLE: &str = "KOVAR_LOG";

/// The exit code for an invalid command line.
const USAGE: u8 = 2;

/// The exit code after Ctrl-C: 128 plus the number of the signal.
pub const INTERRUPTED: u8 = 130;

/// Starts the log on stderr: warnings only, more with `-v`, or as `KOVAR_LOG` defines.
pub fn start_log(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let chosen = log_variable();
    let only_warnings = verbose == 0 && chosen.is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(chosen.unwrap_or_else(|| EnvFilter::new(level)))
        .with_writer(io::stderr)
        .with_target(verbose > 1);
    if only_warnings {
        log.event_format(Warnings).init();
    } else {
        log.init();
    }
}

/// The form of warnings that are not part of a log.
struct Warnings;

impl<S, N> FormatEvent<S, N> for Warnings
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        to.write_str("warning: ")?;
        context.format_fields(to.by_ref(), event)?;
        writeln!(to)
    }
}

/// The filter in `KOVAR_LOG`; `None` if it is empty, or with a warning if it is invalid.
fn log_variable() -> Option<EnvFilter> {
    let value = std::env::var_os(LOG_VARIABLE)?;
    let text = value.to_string_lossy();
    if text.trim().is_empty() {
        return None;
    }
    let filter = EnvFilter::try_new(&text);
    let filter = filter.inspect_err(|error| {
        note(format_args!(
            "warning: {LOG_VARIABLE} is {text:?}, which is not a valid log filter ({error}); it is ignored"
        ));
    });
    filter.ok()
}

/// An invalid command line.
#[derive(Debug)]
pub struct UsageError {
    message: String,
    shows_usage: bool,
}

impl UsageError {
    /// An error with `message` and exit code 2.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            shows_usage: false,
        }
    }

    /// An error for a missing argument: [`new`](Self::new), with the command's usage.
    pub fn missing(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            shows_usage: true,
        }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UsageError {}

/// Writes a line to stderr, with [`visible`] characters only. Errors are ignored: stderr may be
/// closed.
pub fn note(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{}", visible(&line.to_string()));
}

/// `text` with control characters escaped: names in a model file may contain terminal commands.
fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => visible.push(c),
            // Controls, and characters that change the writing direction.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => visible.extend(c.escape_unicode()),
            _ if c.is_control() => visible.extend(c.escape_default()),
            _ => visible.push(c),
        }
    }
    visible
}

/// Writes an error with its causes to stderr and returns the exit code. A closed stdout is not an
/// error. `usage` returns the usage line of the command.
pub fn report(error: &anyhow::Error, usage: impl FnOnce() -> String) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    note(format_args!("error: {}", with_causes(error)));
    if let Some(hint) = hints::missing_device(error) {
        note(hint);
    }
    if let Some(error) = error.downcast_ref::<UsageError>() {
        if error.shows_usage {
            note(format_args!("\n{}", usage()));
        }
        note("\nFor more information, try '--help'.");
        return ExitCode::from(USAGE);
    }
    ExitCode::FAILURE
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The messages of an error and its causes, without those that the previous message already
/// contains.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for cause in error.chain() {
        let message = cause.to_string();
        if last.contains(&message) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&shortened(&message));
        last = message;
    }
    text
}

/// The most characters of one message that are shown: a damaged file may have names of any length.
const MAX_MESSAGE: usize = 1000;

fn shortened(message: &str) -> String {
    let more = message.chars().count().saturating_sub(MAX_MESSAGE);
    let kept = message.chars().take(MAX_MESSAGE).collect();
    if more == 0 {
        return kept;
    }
    format!("{kept}.. ({more} more characters)")
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn long_messages_are_cut() {
        let error = anyhow::anyhow!("key {:?} is wrong", "\u{e9}".repeat(70_000));
        let text = with_causes(&error.context("cannot open m.gguf"));
        assert!(
            text.starts_with("cannot open m.gguf: key \"\u{e9}"),
            "{text}"
        );
        assert!(text.ends_with(".. (69015 more characters)"), "{text}");
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = "a\x1b[31m\u{9b}\u{202e}\r\x07\u{e9}\n\tb";
        let shown = "a\\u{1b}[31m\\u{9b}\\u{202e}\\r\\u{7}\u{e9}\n\tb";
        assert_eq!(visible(text), shown);
    }

    #[test]
    fn causes_follow_the_error_and_none_is_repeated() {
        let error: anyhow::Error = Err::<(), _>(UsageError::new("no such thing"))
            .context("reading it: no such thing")
            .context("cannot start")
            .unwrap_err();
        assert_eq!(
            with_causes(&error),
            "cannot start: reading it: no such thing"
        );
    }
}
