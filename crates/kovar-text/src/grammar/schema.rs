//! Preparing JSON schemas for llguidance.

use serde_json::{Value, json};

use super::GrammarError;

/// White space between JSON tokens: bounded, because a model could otherwise write it forever.
const WHITE_SPACE: &str = r"[\x20\x0A\x0D\x09]{0,16}";

/// The key for llguidance's own options in a schema.
const OPTIONS_KEY: &str = "x-guidance";

/// The largest bound, which llguidance stores as `i64`: the largest double below 2^63.
const LARGEST: f64 = 9_223_372_036_854_774_784.0;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords that bound a number on one side.
const BOUNDS: [(&str, Side); 4] = [
    ("exclusiveMaximum", Side::Above),
    ("exclusiveMinimum", Side::Below),
    ("maximum", Side::Above),
    ("minimum", Side::Below),
];

#[derive(Clone, Copy)]
enum Side {
    Below,
    Above,
}

/// The schema with bounded white space, unless it sets another pattern, and with number bounds that
/// llguidance supports.
pub(super) fn schema(text: &str) -> Result<Value, GrammarError> {
    let mut schema: Value =
        serde_json::from_str(text).map_err(|source| GrammarError::NotJson { source })?;
    bound(&mut schema)?;
    if let Some(schema) = schema.as_object_mut() {
        schema
            .entry(OPTIONS_KEY)
            .or_insert_with(|| json!({ "whitespace_pattern": WHITE_SPACE }));
    }
    Ok(schema)
}

/// Clamps bounds beyond the largest to the largest; every text that then matches also matches the
/// schema. The JSON parser limits the depth.
fn bound(schema: &mut Value) -> Result<(), GrammarError> {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().try_for_each(bound),
        Value::Object(members) => {
            for (keyword, side) in BOUNDS {
                let given = members.get_mut(keyword);
                let Some((place, value)) = given.and_then(|v| v.as_f64().map(|x| (v, x))) else {
                    continue;
                };
                let inwards = match side {
                    Side::Below => value,
                    Side::Above => -value,
                };
                if inwards > LARGEST {
                    return Err(GrammarError::Bound { keyword, value });
                }
                if inwards < -LARGEST {
                    *place = json!(LARGEST.copysign(value));
                }
            }
            let mut schemas = members
                .iter_mut()
                .filter(|(keyword, _)| !DATA.contains(&keyword.as_str()));
            schemas.try_for_each(|(_, schema)| bound(schema))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(mut schema: Value) -> Value {
        bound(&mut schema).unwrap();
        schema
    }

    #[test]
    fn bounds_far_out_come_in_and_others_and_data_stay() {
        let schema = json!({
            "minimum": -1e308, "maximum": u64::MAX, "exclusiveMinimum": i64::MIN,
            "anyOf": [{"exclusiveMaximum": 1e19}, {"minimum": -5, "maximum": 7}],
            "enum": [{"maximum": 1e19}],
        });
        let expected = json!({
            "minimum": -LARGEST, "maximum": LARGEST, "exclusiveMinimum": -LARGEST,
            "anyOf": [{"exclusiveMaximum": LARGEST}, {"minimum": -5, "maximum": 7}],
            "enum": [{"maximum": 1e19}],
        });
        assert_eq!(bounded(schema), expected);
        // A property of that name.
        let schema = json!({"properties": {"minimum": {"minimum": -1e19}}});
        let expected = json!({"properties": {"minimum": {"minimum": -LARGEST}}});
        assert_eq!(bounded(schema), expected);
    }

    #[test]
    fn bounds_that_leave_only_numbers_far_out_are_refused() {
        for (keyword, value, message) in [
            ("minimum", 1e19, "`minimum: 1e19`"),
            ("exclusiveMaximum", -1e300, "`exclusiveMaximum: -1e300`"),
        ] {
            let error = bound(&mut json!({"items": {keyword: value}})).unwrap_err();
            assert!(matches!(error, GrammarError::Bound { .. }), "{error:?}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
