//! The functions and filters that Hugging Face's `apply_chat_template` adds to Jinja.

use std::io;
use std::time::SystemTime;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::date::strftime;
use super::error::Raised;
use super::{Output, bounds};

pub(super) fn add_to(env: &mut Environment<'static>) {
    env.set_unknown_method_callback(python_method);
    env.set_formatter(write_like_python);
    env.add_function("raise_exception", raise_exception);
    env.add_filter("tojson", to_json);
    set_clock(env, SystemTime::now);
}

/// Makes `strftime_now` return the time of `clock`.
pub(super) fn set_clock(
    env: &mut Environment<'static>,
    clock: impl Fn() -> SystemTime + Send + Sync + 'static,
) {
    env.add_function("strftime_now", move |format: &str| {
        strftime(clock(), format)
    });
}

/// The methods of Python's strings, lists and mappings.
fn python_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    /// Maximum digits of a field width in `format`, which pads before any limit applies.
    const MAX_DIGITS: usize = 4;
    if method == "format" {
        let text = value.as_str().unwrap_or_default();
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        if numbers.any(|digits| digits.len() > MAX_DIGITS) {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "format with a width of more than four digits",
            ));
        }
        // Fields write values, like expressions.
        for value in args {
            bounds::check(state, value)?;
        }
    }
    unknown_method_callback(state, value, method, args)
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raise_exception").with_source(Raised(message)))
}

/// Writes `True`, `False` and `None` as Python does.
fn write_like_python(
    out: &mut minijinja::Output,
    state: &mut State,
    value: &Value,
) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" })?,
        ValueKind::None => out.write_str("None")?,
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            bounds::check(state, value)?;
            return minijinja::escape_formatter(out, state, value);
        }
        _ => return minijinja::escape_formatter(out, state, value),
    }
    Ok(())
}

/// Python's `json.dumps(value, ensure_ascii=False, indent=indent)`.
fn to_json(
    state: &State,
    value: &Value,
    indent: Option<usize>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    /// The maximum indentation; more than any ordinary template uses.
    const MAX_INDENT: usize = 16;
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get::<Option<usize>>("indent")?,
    };
    // Accepted without effect: the output is never restricted to ASCII.
    let _ = kwargs.get::<Option<bool>>("ensure_ascii")?;
    kwargs.assert_all_used()?;
    bounds::check(state, value)?;
    let json = match indent {
        None => serialize(value, OneLine),
        Some(indent) => {
            let spaces = [b' '; MAX_INDENT];
            let indent = spaces.get(..indent).unwrap_or(&spaces);
            serialize(value, PrettyFormatter::with_indent(indent))
        }
    };
    let json =
        json.map_err(|error| Error::new(ErrorKind::BadSerialization, "tojson").with_source(error))?;
    // One unit of fuel per 64 bytes, like the engine's own data.
    state.consume_fuel(json.len() as u64 / 64)?;
    Ok(Value::from_safe_string(json))
}

fn serialize<F: Formatter>(value: &Value, formatter: F) -> serde_json::Result<String> {
    let mut json = Output::default();
    value.serialize(&mut Serializer::with_formatter(&mut json, formatter))?;
    String::from_utf8(json.bytes).map_err(serde::ser::Error::custom)
}

/// JSON on one line with Python's separators: `, ` and `: `.
struct OneLine;

impl Formatter for OneLine {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
