//! Bounds the values of a template. The engine counts instructions and allocated bytes, but neither
//! the nesting depth of values nor how often values share another value. A loop that sets `x` to
//! `[x, x]` quickly makes a value that takes forever to write or compare. Each `set` therefore goes
//! through a filter, added to the source, that rejects such values.

use std::ops::ControlFlow;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

/// Maximum nesting depth of lists and mappings.
const MAX_DEPTH: usize = 64;
/// Maximum number of elements of a value, counted recursively, shared elements each time they are
/// reached; [`TEXT_UNIT`] bytes of text count as one element.
const MAX_ELEMENTS: usize = 1 << 18;
const TEXT_UNIT: usize = 64;
/// Visited elements per unit of fuel.
const ELEMENTS_PER_FUEL: usize = 4;

const NAME_FILTER: &str = "kovar_bounded_name";
const ATTRIBUTE_FILTER: &str = "kovar_bounded_attribute";

pub(super) fn add_to(env: &mut Environment<'static>) {
    env.add_filter(NAME_FILTER, |state: &State, value: Value| {
        Ok::<_, Error>(bounded(state, &value, true)?.unwrap_or(value))
    });
    // A namespace must not be stored in a namespace, or values could contain themselves.
    env.add_filter(ATTRIBUTE_FILTER, |state: &State, value: Value| {
        Ok::<_, Error>(bounded(state, &value, false)?.unwrap_or(value))
    });
}

/// Fails if `value` is too deep or too large to be written or compared.
pub(super) fn check(state: &State, value: &Value) -> Result<(), Error> {
    bounded(state, value, true).map(|_| ())
}

/// Checks `value` and consumes fuel for the walk. Returns a replacement if one is needed: a list
/// for a lazy iterable, which could hide a chain of others, and a copy for a mapping, which could
/// be a namespace. `value` itself may stay a namespace if `may_change`.
fn bounded(state: &State, value: &Value, may_change: bool) -> Result<Option<Value>, Error> {
    let mut left = MAX_ELEMENTS;
    let replaced = walk(value, may_change, MAX_DEPTH, &mut left);
    state.consume_fuel(((MAX_ELEMENTS - left) / ELEMENTS_PER_FUEL) as u64)?;
    replaced
}

fn take(left: &mut usize, elements: usize) -> Result<(), Error> {
    *left = left.checked_sub(elements).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("a value has more than {MAX_ELEMENTS} elements"),
        )
    })?;
    Ok(())
}

fn walk(
    value: &Value,
    may_change: bool,
    depth: usize,
    left: &mut usize,
) -> Result<Option<Value>, Error> {
    let kind = value.kind();
    if let Some(text) = value.as_str() {
        take(left, text.len() / TEXT_UNIT)?;
        return Ok(None);
    }
    if !matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(None);
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("values nest deeper than {MAX_DEPTH} levels"),
        ));
    };
    let mut is_replaced = kind == ValueKind::Iterable;
    let mut child = |value: Value| {
        take(left, 1)?;
        let other = walk(&value, false, depth, left)?;
        is_replaced |= other.is_some();
        Ok::<_, Error>(other.unwrap_or(value))
    };
    if kind == ValueKind::Map {
        let mut pairs = Vec::new();
        for key in value.try_iter()? {
            let item = value.get_item(&key)?;
            pairs.push((child(key)?, child(item)?));
        }
        is_replaced |= !may_change;
        return Ok(is_replaced.then(|| Value::from_pairs(pairs)));
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        items.push(child(item)?);
    }
    Ok(is_replaced.then(|| Value::from(items)))
}

/// `source` with a bounding filter on the value of each `set`. Line numbers are unchanged.
pub(super) fn bound_sets(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + source.len() / 4);
    let mut rest = source;
    while let Some(at) = rest.find("{") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let len = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map_or(tag.len(), |end| end + 2),
            Some(b'{') => closing(tag, "}}").map_or(tag.len(), |end| end + 2),
            Some(b'%') => match closing(tag, "%}") {
                Some(end) => {
                    let (block, after) = tag.split_at(end);
                    push_block(&mut out, block);
                    rest = after;
                    if keyword(block).0 == "raw" {
                        let raw = after.find("endraw").unwrap_or(after.len());
                        let (raw, after) = after.split_at(raw);
                        out.push_str(raw);
                        rest = after;
                    }
                    continue;
                }
                None => tag.len(),
            },
            _ => 1,
        };
        let (tag, after) = tag.split_at(len);
        out.push_str(tag);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The first word of a block that begins with `{%`, and what follows it.
fn keyword(block: &str) -> (&str, &str) {
    let inner = block.get(2..).unwrap_or_default();
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner).trim_start();
    let end = inner
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(inner.len());
    inner.split_at(end)
}

/// Appends a block without its `%}`.
fn push_block(out: &mut String, block: &str) {
    let (word, set) = keyword(block);
    if word != "set" {
        return out.push_str(block);
    }
    let body = set.strip_suffix(['-', '+']).unwrap_or(set);
    let control = set.get(body.len()..).unwrap_or_default();
    out.push_str(block.get(..block.len() - set.len()).unwrap_or_default());
    let target = find(body, |rest, depth| {
        depth == 0 && rest.starts_with(['=', '|'])
    });
    let (target, value) = body.split_at(target.unwrap_or(body.len()));
    let filter = if target.contains('.') {
        ATTRIBUTE_FILTER
    } else {
        NAME_FILTER
    };
    out.push_str(target);
    match value.strip_prefix('=') {
        Some(value) => out.extend(["=(", value, ")|", filter]),
        None if value.is_empty() => {}
        None => out.extend([value, "|", filter]),
    }
    out.push_str(control);
}

/// The end of the tag at the start of `tag`, ignoring strings and nested braces.
fn closing(tag: &str, end: &str) -> Option<usize> {
    let inner = tag.get(2..)?;
    find(inner, |rest, depth| {
        (depth == 0 || end == "%}") && rest.starts_with(end)
    })
    .map(|at| at + 2)
}

/// The first position outside strings where `is_it` is true for the rest of the text and the
/// bracket depth.
fn find(text: &str, is_it: impl Fn(&str, usize) -> bool) -> Option<usize> {
    let (mut quote, mut is_escaped, mut depth) = (None, false, 0usize);
    let found = text.char_indices().try_for_each(|(at, c)| {
        if let Some(open) = quote {
            if is_escaped {
                is_escaped = false;
            } else if c == '\\' {
                is_escaped = true;
            } else if c == open {
                quote = None;
            }
            return ControlFlow::Continue(());
        }
        if is_it(text.get(at..).unwrap_or_default(), depth) {
            return ControlFlow::Break(at);
        }
        match c {
            '\'' | '"' => quote = Some(c),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found.break_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_values_of_sets_are_rewritten() {
        let kept = "a {{ '{% set x = 1 %}' }} {# {% set x = 1 %} #}{% raw %}{% set x = 1 %}{% endraw %}\n\
                    {%- if set == '%}' -%}{% set text -%}x{% endset %}{{ {'a': {'b': 1}} }}{";
        assert_eq!(bound_sets(kept), kept);
        assert_eq!(
            bound_sets("{%- set x = a == '%}' -%}\n{% set n.x= {'=': 1} %}{%set a, b = 1, 2%}"),
            "{%- set x =( a == '%}' )|kovar_bounded_name-%}\n\
             {% set n.x=( {'=': 1} )|kovar_bounded_attribute%}{%set a, b =( 1, 2)|kovar_bounded_name%}"
        );
        assert_eq!(
            bound_sets("{% set x | upper %}a{% endset %}"),
            "{% set x | upper |kovar_bounded_name%}a{% endset %}"
        );
    }
}
