//! What Hugging Face's `apply_chat_template` offers to templates beyond Jinja itself.

use std::io;
use std::time::SystemTime;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::date::strftime;
use super::error::Raised;

pub(super) fn add_to(env: &mut Environment<'static>) {
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.set_formatter(write_like_python);
    env.add_function("raise_exception", raise_exception);
    env.add_filter("tojson", to_json);
    set_clock(env, SystemTime::now);
}

/// Makes `strftime_now` tell the time of `clock`.
pub(super) fn set_clock(
    env: &mut Environment<'static>,
    clock: impl Fn() -> SystemTime + Send + Sync + 'static,
) {
    env.add_function("strftime_now", move |format: &str| {
        strftime(clock(), format)
    });
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raise_exception").with_source(Raised(message)))
}

/// Writes `True`, `False` and `None` as Python does.
fn write_like_python(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" })?,
        ValueKind::None => out.write_str("None")?,
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
    /// Deeper than any honest template would indent.
    const MAX_INDENT: usize = 16;
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get::<Option<usize>>("indent")?,
    };
    // Accepted and without effect: what they ask for is what is done.
    let _ = kwargs.get::<Option<bool>>("ensure_ascii")?;
    kwargs.assert_all_used()?;
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
    // One unit of fuel for 64 bytes, as the engine counts its own data.
    state.consume_fuel(json.len() as u64 / 64)?;
    Ok(Value::from_safe_string(json))
}

fn serialize<F: Formatter>(value: &Value, formatter: F) -> serde_json::Result<String> {
    let mut json = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut json, formatter))?;
    String::from_utf8(json).map_err(serde::ser::Error::custom)
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
