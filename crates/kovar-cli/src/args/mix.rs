use clap::builder::{PossibleValuesParser, TypedValueParser};
use kovar::quantize::Mix;

/// A parser of the name of a mix of number types. Its option needs `ignore_case`.
pub fn mix() -> impl TypedValueParser<Value = Mix> {
    PossibleValuesParser::new(Mix::all().map(Mix::name))
        .try_map(|name| Mix::from_name(&name).ok_or("unknown type"))
}
